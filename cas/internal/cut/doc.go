// Package cut decides where a large object is cut into pieces, so that two objects that share long runs of bytes share pieces.
//
// Words: a piece is what [Next] takes from the front of an object. A place is where a piece may end: where the hash of the
// [window] bytes before it is below a limit. Places belong to the content around them and not to their distance from the
// beginning, so after an insertion the cuts fall on the old places again, a piece or two later.
//
// The method is FastCDC: Xia, Zou, Jiang and others, "The Design of Fast Content-Defined Chunking for Data Deduplication Based
// Storage Systems", IEEE Transactions on Parallel and Distributed Systems 31(9), 2020. It gives the gear hash, the leap over the
// bytes below the least size, two bytes a step, and normalised chunking: places are rare before a piece has its normal size and
// frequent afterwards, so that few pieces are much smaller or larger than the average. Two things differ. A hash is compared with
// a limit, not with a mask: the most significant bits of a gear hash are those that the whole window reaches. And the hash has
// read a full window before the first place, so a place does not depend on where its piece began.
//
// Guarantees: the same bytes are cut at the same places for all time. A change of anything here would store every large object a
// second time at its next change; nothing would be unreadable. The functions keep no state.
//
// What it does not do: resist an author of bytes who wants large or small pieces. Such bytes still give pieces within the bounds.
package cut
