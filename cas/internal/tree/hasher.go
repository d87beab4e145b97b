package tree

import "lukechampine.com/blake3/guts"

// Hasher computes the digest and the values of an object that arrives in parts. The zero value is ready. It keeps 18 KiB and
// 32 bytes for each MiB written, and never a part of the caller's.
type Hasher struct {
	values []Value // of the complete groups that bytes followed
	leaves stack   // of the group after them, without buf
	chunk  uint64  // number of the first chunk in buf
	fill   int
	buf    *[width]byte // a leaf; a complete one stays until it is known that bytes follow
}

// Write adds p to the object. It never fails.
func (h *Hasher) Write(p []byte) (int, error) {
	n := len(p)
	h.open()
	for len(p) > 0 {
		if h.fill == width {
			h.settle()
		}
		c := copy(h.buf[h.fill:], p)
		h.fill += c
		p = p[c:]
	}
	return n, nil
}

// settle gives the complete leaf its place in the tree, now that bytes follow it.
func (h *Hasher) settle() {
	leaf := h.leaf()
	if h.leaves.count < GroupSize/width-1 {
		h.leaves.push(guts.ChainingValue(leaf))
	} else {
		h.values = append(h.values, value(h.leaves.top(leaf)))
		h.leaves.count = 0
	}
	h.chunk += guts.MaxSIMD
	h.fill = 0
}

func (h *Hasher) leaf() guts.Node { return guts.CompressBuffer(h.buf, h.fill, &guts.IV, h.chunk, 0) }

// open gives the zero value its buffer, which is apart from it for the sake of its alignment.
func (h *Hasher) open() {
	if h.buf == nil {
		h.buf = new([width]byte)
	}
}

// Sum returns the BLAKE3-256 digest of what was written, and the values of its groups: nil for at most GroupSize bytes. The
// values are the caller's. Writing may continue.
func (h *Hasher) Sum() (root [32]byte, values []Value) {
	h.open()
	top := h.leaves.top(h.leaf())
	if len(h.values) == 0 {
		return digest(top), nil
	}
	values = make([]Value, len(h.values)+1)
	copy(values, h.values)
	values[len(h.values)] = value(top)
	return digest(join(values)), values
}

// Reset makes h ready for another object. It keeps the memory.
func (h *Hasher) Reset() {
	h.values = h.values[:0]
	h.leaves.count = 0
	h.chunk, h.fill = 0, 0
}
