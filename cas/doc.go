// Package cas is the content-addressed store of a space: every immutable byte string lives in it once, named by the BLAKE3-256
// digest of its uncompressed bytes, for as long as somebody holds it.
//
// Words: an [ID] names an object; [Sum] gives the id of bytes, and is the only digest function of the product. An [Owner]
// holds objects: a document, a session, a request, a lease … An object is one record, or, above 1 MiB, pieces that are cut where
// the content says, so that versions of a large file share what they have in common, and a list of them, the manifest. Records
// lie in packs, append-only files that are also called segments. A checkpoint is the index as it was at some place in the log
// of packs; the tail is what was appended after it. Collection gives the disk back what nobody holds.
//
// # Guarantees
//
// Durability. A call that stores or holds returns nil only after its bytes were synced; calls that wait together share one write
// and one sync (group commit). A call of PutHeld, or a batch, is all or nothing as to its holds: no hold is ever durable before
// what it holds. A write or sync that failed is reported to everybody who waited for it, and nothing of it is trusted: the pack is
// given up at the place up to which it was synced, and the next write begins another; a sync is never repeated to see whether it
// succeeds now. After a crash the last write is made again in a new pack, because the machine's memory may show bytes that the
// disk does not have.
//
// Truth. Reads return the bytes that the id names or an error: an object in one record is verified by its id; of a large one, each
// group of 1 MiB is verified by its subtree value, and the values by the id, so that a range costs no more than the groups it
// touches. Damage names the object and its owners, leaves the file as it is, and leaves everything else readable; when the same
// bytes are put again, the object is whole again.
//
// Holds. What is held, open, or put by a batch that has not ended is never collected; neither is, for the grace period, what was
// put, asked for or released a short while ago. Holds are sets, not counters: repeating a call changes nothing. Hold before
// publishing, release after. Leases run by a clock that only goes forward, and only while the store is open.
//
// Concurrency. A [Store] is safe for concurrent use. One goroutine, the writer, appends to packs and changes the state; readers
// see a state in which everything is synced. Puts, reads, holds, collection, verification and checkpoints run at the same time. One
// process owns a store; others may open it for reading only, beside the owner, and see it as it was when they opened it.
//
// Recovery. Open reads the newest intact checkpoint and replays the tail. A torn end of the newest pack, which nobody was told is
// durable, is passed over. Damage anywhere else is kept and reported ([Store.Verify]); when it may have hidden holds, nothing is
// collected before [Store.Repair].
//
// What it does not do: it knows nothing of files, names or spaces, and never deletes what is held to make room.
//
// Start reading with [Store] and [Open], then writer.go (how bytes become durable), load.go (how they are found again), object.go
// (how they are verified), collect.go.
//
// # Format, version 1
//
// All numbers are little-endian. A store is a folder:
//
//	lock, owner.json              the operating system's lock, and {"pid":N} of its holder for messages
//	packs/GGGGGGGG.pack           packs, named by their generation, 8 lower-case hexadecimal digits from 00000001 on
//	checkpoint-SSSSSSSSSSSSSSSS   the two newest checkpoints, named by their sequence number
//	reserve                       room for a collection on a full disk; its content means nothing
//	damaged/                      what Repair moved aside
//
// A pack begins with a header of 64 bytes:
//
//	0  8  magic "repapack"
//	8  4  format version, 1
//	12 4  generation
//	16 4  generation of the pack that was written before this one; 0: none
//	20 4  0
//	24 8  where the records of that pack end; what is behind it was never acknowledged
//	32 16 name of the hash, "blake3-256", padded with zeros
//	48 12 0
//	60 4  CRC-32C of bytes 0 to 59
//
// and goes on with frames as package frame describes them, of the pack's generation: length, type, version 1, flags, CRC-32C over all.
// Flag 2 marks the first frame of a write: everything before it had been synced. Zeros may follow the last frame. Payloads by
// type:
//
//	1 object   32 id, 4 size, 1 encoding (0 raw, 1 zstd), 3 zero, 4 dictionary (0: none), then the bytes in that encoding
//	2 large    32 id, 8 size, 4 number of pieces, for each piece 32 id and 4 size, then for each group of 1 MiB the 32 bytes of
//	           its BLAKE3 chaining value (not root; see package tree); the pieces' records come before this one
//	3 hold     an owner and ids: adds holds
//	4 replace  an owner and ids: what it holds from now on; none: the owner is gone
//	5 lease    an owner, 8 nanoseconds that remain, and ids: what it holds, and until when
//	6 renew    an owner, 8 nanoseconds that remain
//	7 end      an owner: the lease has ended; its name is remembered
//	8 release  an owner and ids: ends these holds
//	9 removed  4-byte generations of packs whose live records were copied further on; the files may be gone
//
// An owner is 2 bytes of length and its text; ids are 32 bytes each up to the end of the payload. The records of all packs in order
// of their generation are the log; a later record of the same object takes the place of an earlier one.
//
// A frame that does not check is a torn end when it is in the newest pack and no frame with flag 2 follows it; otherwise it is damage.
//
// A checkpoint consists of frames whose generation is its sequence number, of version 1, in this order:
//
//	1 head      4 generation and 8 offset in the log that it covers; the last collection: 8 objects, 8 bytes, 8 packs, 8 time in
//	            milliseconds since 1970
//	3 owners    for each: 2 length and the text, 8 nanoseconds that remain (all ones: no lease), 4 number of holds, 4-byte numbers of
//	            objects; an owner may come more than once. The text of a large object that holds its pieces is a zero byte and its id
//	4 ended     for each lease that has ended: 2 length and the text
//	2 segments  for each pack: 4 generation, 8 end
//	5 objects   for each: 4 number, 32 id, 4 generation, 4 offset of the frame, 4 length of the frame, 4 size (all ones: large)
//	6 sizes     for each large object: 4 number, 8 size
//	7 end       empty
//
// It is exact for the place it covers, or ahead of it in parts; replaying the log from there gives the same state either way.
//
// A reader refuses a newer format version, and a newer record makes the store read-only; both leave every file as it is.
package cas
