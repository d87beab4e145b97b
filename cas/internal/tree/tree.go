package tree

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync"

	"lukechampine.com/blake3/guts"
)

// GroupSize is the length of a group. A power of two of BLAKE3's 1 KiB chunks makes each group a complete subtree; 1 MiB costs
// 32 bytes of values for each MiB stored, and at most a quarter of a millisecond of hashing to check one byte that was read.
const GroupSize = 1 << 20

// width is the length of a leaf: what guts compresses at once.
const width = guts.MaxSIMD * guts.ChunkSize

// Value is the chaining value of a group's subtree, in BLAKE3's byte order. It is no digest of the group: it depends on the
// group's place in the object too.
type Value [32]byte

// Sum returns the BLAKE3-256 digest of data, which may have any size.
func Sum(data []byte) [32]byte { return digest(subtree(data, 0)) }

// GroupValue returns the value of the group that is number index, from 0, of an object that has more than one group. It panics
// when group is empty or longer than GroupSize or index is negative: no object has such a group.
func GroupValue(group []byte, index int64) Value {
	if len(group) == 0 || len(group) > GroupSize || index < 0 {
		panic(fmt.Sprintf("tree: group %d of %d bytes", index, len(group)))
	}
	return value(subtree(group, uint64(index)*(GroupSize/guts.ChunkSize)))
}

// Root returns the BLAKE3-256 digest of an object of size bytes from the values of its groups. It reports false, and no digest,
// when there are not as many values as such an object has groups, or when size is at most GroupSize, so that there are none:
// lists of values come from disk.
func Root(values []Value, size int64) ([32]byte, bool) {
	if size <= GroupSize || uint64(len(values)) != (uint64(size)+GroupSize-1)/GroupSize {
		return [32]byte{}, false
	}
	return digest(join(values)), true
}

// join returns the top of the tree over two or more values. BLAKE3 gives the left side as many values as the largest power of
// two that leaves something to the right.
func join(values []Value) guts.Node {
	left := 1 << (bits.Len(uint(len(values)-1)) - 1)
	return guts.ParentNode(joined(values[:left]), joined(values[left:]), &guts.IV, 0)
}

func joined(values []Value) [8]uint32 {
	if len(values) == 1 {
		return words(values[0])
	}
	return guts.ChainingValue(join(values))
}

// subtree returns the top of the tree over data, which begins at chunk number chunk of its object.
func subtree(data []byte, chunk uint64) guts.Node {
	if len(data) <= guts.ChunkSize {
		return guts.CompressChunk(data, &guts.IV, chunk, 0)
	}
	return chunks(data, chunk)
}

// chunks is subtree for more than one chunk. It copies each leaf into a buffer before compressing it: guts reads all of its
// buffer whatever the length, and reads it at 16 places at once. Of bytes that are not in the cache yet, the copy makes that half
// as fast again; of bytes that are, it takes 4 %.
func chunks(data []byte, chunk uint64) guts.Node {
	buf := buffers.Get().(*[width]byte)
	defer buffers.Put(buf)
	var left stack
	for ; len(data) > width; data = data[width:] {
		left.push(guts.ChainingValue(guts.CompressBuffer(buf, copy(buf[:], data), &guts.IV, chunk, 0)))
		chunk += guts.MaxSIMD
	}
	return left.top(guts.CompressBuffer(buf, copy(buf[:], data), &guts.IV, chunk, 0))
}

// buffers holds memory for leaves. On the heap they begin at a cache line; on the stack they need not, and then every read of 64
// bytes is two, which takes a quarter of the speed.
var buffers = sync.Pool{New: func() any { return new([width]byte) }}

// stack holds the subtrees to the left of a leaf that is still to come: bit i of count says that values[i] is the top of 2^i
// leaves. Two subtrees of one size are merged at once, so at most one of each size is kept.
type stack struct {
	count  uint64
	values [maxHeight][8]uint32
}

// maxHeight is enough for an object of the largest size an int64 can say: 2^63 bytes are 2^49 leaves.
const maxHeight = 49

// push adds a leaf that is known not to be the last one.
func (s *stack) push(cv [8]uint32) {
	i := 0
	for ; s.count>>i&1 == 1; i++ {
		cv = guts.ChainingValue(guts.ParentNode(s.values[i], cv, &guts.IV, 0))
	}
	s.values[i] = cv
	s.count++
}

// top returns the top of the tree whose last leaf is last. It leaves the stack as it is.
func (s *stack) top(last guts.Node) guts.Node {
	for rest := s.count; rest != 0; rest &= rest - 1 {
		last = guts.ParentNode(s.values[bits.TrailingZeros64(rest)], guts.ChainingValue(last), &guts.IV, 0)
	}
	return last
}

func digest(top guts.Node) [32]byte {
	top.Flags |= guts.FlagRoot
	return value(top)
}

func value(top guts.Node) (v Value) {
	for i, w := range guts.ChainingValue(top) {
		binary.LittleEndian.PutUint32(v[4*i:], w)
	}
	return v
}

func words(v Value) (cv [8]uint32) {
	for i := range cv {
		cv[i] = binary.LittleEndian.Uint32(v[4*i:])
	}
	return cv
}
