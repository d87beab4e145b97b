package crashfs

import "math"

// nodeCost is what a file or folder costs besides its pages: a sector for its name and its data about itself. A disk without
// a byte left can so make no new one.
const nodeCost = sector

const noLimit = -1

// SetSpace gives the disk a capacity of so many bytes; a negative number removes it. What is on the disk counts: a file costs
// its pages of 4 KiB that are not holes, and each file or folder 512 bytes. A write takes what fits and then fails with
// syscall.ENOSPC, a preallocation fails whole, a creation fails. Removing or truncating frees at once; a removed file that is
// open keeps its bytes until its last handle is closed.
func (f *FS) SetSpace(bytes int64) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.limit = max(bytes, noLimit)
}

// Free returns how many bytes are left, 0 when more is used than SetSpace allows, and math.MaxInt64 without a limit.
func (f *FS) Free() int64 {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.d.free()
}

func (d *disk) free() int64 {
	if d.limit == noLimit {
		return math.MaxInt64
	}
	return max(0, d.limit-d.used)
}

func (n *node) cost() int64 {
	if n == nil || n.links == 0 && n.handles == 0 {
		return 0
	}
	return nodeCost + n.now.pages*pageSize
}

func usedBy(root *node) int64 {
	total, seen := int64(0), map[*node]bool{}
	var visit func(*node)
	visit = func(n *node) {
		if seen[n] {
			return
		}
		seen[n] = true
		total += n.cost()
		for _, child := range n.names {
			visit(child)
		}
	}
	visit(root)
	return total
}
