package crashfs

import (
	"io/fs"
	"slices"
	"time"
)

// node is a file or a folder. Besides what it is now it knows what a crash may leave of it.
type node struct {
	dir      bool
	mode     fs.FileMode
	modified time.Time
	links    int // names that lead here now
	handles  int // that are open

	// Of a file. Versions are in the order of their writing; the lost ones come before the pending ones.
	now, durable image
	lost         []version // since a sync that failed: in memory, no longer marked as to be written
	pending      []version // since the last sync

	// Of a folder. past holds, for each name changed since the last SyncDir, what it led to after each change (nil: nothing).
	names, kept map[string]*node
	past        map[string][]*node
	left        []place // where a folder was before it moved, until its new place is durable
}

type place struct {
	dir  *node
	name string
}

func newFile(perm fs.FileMode, at time.Time) *node { return &node{mode: perm.Perm(), modified: at} }

func newDir(perm fs.FileMode, at time.Time) *node {
	return &node{dir: true, mode: perm.Perm() | fs.ModeDir, modified: at,
		names: map[string]*node{}, kept: map[string]*node{}, past: map[string][]*node{}}
}

// change is one thing done to a disk. The live disk and the replica of a Trace change by nothing else, so they stay equal.
type change struct {
	Step
	node   *node // the file or folder made, written, synced, moved or removed
	dir    *node // the folder that holds it, and under which name
	name   string
	to     *node // rename only
	toName string
	data   []byte // write only
	flip   byte   // flip only
	at     time.Time
}

func (c change) apply() {
	switch c.Op {
	case "create", "mkdir":
		c.dir.set(c.name, c.node)
	case "remove":
		c.dir.set(c.name, nil)
	case "rename":
		if c.node.dir {
			c.node.left = append(c.node.left, place{c.dir, c.name})
		}
		c.dir.set(c.name, nil)
		c.to.set(c.toName, c.node)
	case "syncdir":
		c.node.settle()
	case "write":
		c.node.write(c.data, c.Offset, c.at)
	case "truncate", "preallocate":
		c.node.resize(c.Size, c.Op == "preallocate", c.at)
	case "sync":
		c.node.sync(!c.Failed)
	case "flip":
		c.node.flip(c.Offset, c.flip)
	}
}

// set makes a name lead to child, or to nothing.
func (n *node) set(name string, child *node) {
	if old := n.names[name]; old != nil {
		old.links--
	}
	delete(n.names, name)
	if child != nil {
		child.links++
		n.names[name] = child
	}
	n.past[name] = append(n.past[name], child)
}

// settle makes the names durable. A folder that moved in is then in no other place: a tree stays a tree.
func (n *node) settle() {
	for name := range n.past {
		child := n.names[name]
		if child == nil {
			delete(n.kept, name)
			continue
		}
		n.kept[name] = child
		for _, old := range child.left {
			if old.dir != n {
				old.dir.forget(old.name, child)
			}
		}
		child.left = nil
	}
	clear(n.past)
}

// forget makes sure that a crash does not find child under name.
func (n *node) forget(name string, child *node) {
	if n.kept[name] == child {
		delete(n.kept, name)
	}
	for i, p := range n.past[name] {
		if p == child {
			n.past[name][i] = nil
		}
	}
}

// version says what one change did to a file: the sectors [from, to), whose bytes are data and zeros behind it, and the size.
type version struct {
	from, to int64
	data     []byte
	size     int64
	sized    bool // the size is not durable
	grown    bool // by a write: a part of the growth is possible too
}

func (v version) sector(s int64) []byte {
	if at := (s - v.from) * sector; at < int64(len(v.data)) {
		return v.data[at : at+sector]
	}
	return zeros[:sector]
}

func sectors(bytes int64) int64 { return (bytes + sector - 1) / sector }

// versionOf describes the change from n.now to next in the bytes [from, to); those from data on are zero.
func (n *node) versionOf(next image, from, to, data int64) version {
	v := version{from: from / sector, to: sectors(to), size: next.size, sized: true}
	if data > from {
		v.data = make([]byte, (sectors(data)-v.from)*sector)
		next.read(v.data, v.from*sector)
	}
	return v
}

func (n *node) write(p []byte, off int64, at time.Time) {
	next := n.now.write(p, off)
	v := n.versionOf(next, off, off+int64(len(p)), off+int64(len(p)))
	v.grown = next.size > n.now.size
	n.add(v)
	n.now, n.modified = next, at
}

func (n *node) resize(size int64, reserve bool, at time.Time) {
	next := n.now.resize(size)
	if reserve {
		next = n.now.reserve(size)
	}
	// Growing changes no byte: there were zeros. Shrinking leaves zeros where there was something.
	from, to := size, n.now.end()
	if from >= to {
		from, to = 0, 0
	}
	n.add(n.versionOf(next, from, to, min(to, sectors(from)*sector)))
	n.now, n.modified = next, at
}

const (
	// versionsKept bounds the memory of a file that is written in small pieces and never synced. No step of a store has as many.
	versionsKept = 1024
	// mergeSectors bounds a merged version, and so the copying when many are merged.
	mergeSectors = 16
)

// add notes a change. Past versionsKept a change that touches the one before is merged with it: the bytes in between are
// forgotten, which leaves fewer crash states, never wrong ones.
func (n *node) add(v version) {
	if len(n.pending) >= versionsKept {
		last := n.pending[len(n.pending)-1]
		if v.grown && last.grown && v.from >= last.from && v.from <= last.to && v.to >= last.to && v.to-last.from <= mergeSectors {
			v.from, v.data = last.from, slices.Concat(last.data[:(v.from-last.from)*sector], v.data)
			n.pending[len(n.pending)-1] = v
			return
		}
	}
	n.pending = append(n.pending, v)
}

// sync makes the pending bytes and the size durable. One that failed makes nothing durable, and no later one will make these
// bytes so: the kernel has forgotten that they are to be written.
func (n *node) sync(ok bool) {
	switch {
	case !ok:
		n.lost = append(n.lost, n.pending...)
	case len(n.lost) == 0:
		n.durable = n.now
	default:
		n.syncPast()
	}
	n.pending = nil
}

// syncPast syncs a file that lost bytes before: only what was written since becomes durable.
func (n *node) syncPast() {
	e := n.durable.resize(n.now.size).edit()
	written := map[int64]bool{}
	for _, v := range n.pending {
		for s := v.from; s < v.to; s++ {
			written[s] = true
			if at := s * sector; at < n.now.size {
				e.write(n.now.sector(s)[:min(sector, n.now.size-at)], at)
			}
		}
	}
	n.durable = e.image
	var lost []version
	for _, v := range n.lost {
		for s := v.from; s < v.to; s++ {
			if !written[s] {
				lost = append(lost, version{from: s, to: s + 1, data: v.sector(s), size: n.now.size})
			}
		}
	}
	n.lost = lost
}

func (n *node) flip(off int64, mask byte) {
	invert := func(m image) image {
		var b [1]byte
		if m.read(b[:], off) == 0 {
			return m
		}
		b[0] ^= mask
		return m.write(b[:], off)
	}
	n.now, n.durable = invert(n.now), invert(n.durable)
	for _, list := range [][]version{n.lost, n.pending} {
		for i, v := range list {
			if at := off - v.from*sector; at >= 0 && at < int64(len(v.data)) && off < v.size {
				list[i].data = slices.Clone(v.data) // copies of the file share the old bytes
				list[i].data[at] ^= mask
			}
		}
	}
}
