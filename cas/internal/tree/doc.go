// Package tree is the arithmetic of BLAKE3 hash trees: it hashes, and it cuts the tree of a large object into groups that can
// each be checked against the object's id.
//
// Words: a group is [GroupSize] bytes of an object at a multiple of GroupSize, the last one possibly fewer. The [Value] of a
// group is the chaining value at the top of its part of the tree. The values of all groups of an object determine its id, and
// [Root] computes it. So whoever holds an id, a list of values whose Root is that id, and one group whose [GroupValue] is in
// its place of the list, knows that the group is genuine, and has read nothing else of the object. An object of at most
// GroupSize bytes has no values: it is checked whole, with [Sum].
//
// Guarantees: every result is plain BLAKE3-256, without key, so any other implementation gives the same ids. The functions
// keep no state and start no goroutine; a [Hasher] belongs to one goroutine at a time. Nothing here knows disks, and nothing
// is built when the program starts.
//
// Speed comes from lukechampine.com/blake3/guts, which compresses 16 chunks at once with AVX-512, 8 with AVX2. The package
// blake3 above it is not used: it starts goroutines for every piece and is slower for it.
//
// Start reading at subtree in tree.go.
package tree
