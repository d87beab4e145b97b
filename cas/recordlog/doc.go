// Package recordlog is an append-only log of framed, checksummed records: the form of the space's journal and of every other
// log whose records must survive a crash.
//
// Words: a record is a type, a version and a payload; the log gives it no meaning. A segment is one file of the log; its
// generation is its number, starting at 1. The tail is the end of the newest segment.
//
// Guarantees. Durability: Append returns nil only after the records' bytes were synced; appends that wait together share one
// write and one sync (group commit), and the records of one Append call become durable together or not at all: replay hands
// over all of them or none. Order: records are replayed in the order in which Append accepted them. Failure: after a failed
// write or sync the log accepts nothing more until it is opened again, because what reached the disk is unknown; a second
// sync is never tried. Recovery: a torn tail, which no Append acknowledged, is cut at open, its bytes kept beside the segment;
// damage before the tail is an error that names segment and offset, and the files stay as they are. Concurrency: Append may
// be called from any goroutine; one writer goroutine owns the file.
//
// Laziness: what Defer takes is written with the next append or by Close, and a crash may lose it. Checkpoint: a file beside the segments may say what the
// log says up to a place, in sections that mean something to the caller; without it, or when it is damaged, everything is replayed.
//
// What it does not do: it takes no lock (the owner of the folder does) and removes no segment.
//
// # Format, version 1
//
// All numbers are little-endian. A segment is a file named by its generation, 16 lower-case hexadecimal digits and ".log". It
// begins with a 16-byte header
//
//	0  8  magic "repalog\x00"
//	8  4  format version, 1
//	12 4  CRC-32C of bytes 0 to 11 followed by the generation as 8 bytes
//
// and goes on with frames as package frame describes them, of the generation of the segment; a frame's payload is a record's.
// Flag 1 joins the records of one Append call. A reader refuses a newer format version and does not touch the files.
//
// The file "checkpoint" consists of frames of generation 0. The first, type 0, has 32 bytes:
//
//	0  8  magic "repackpt"
//	8  4  version, 1
//	12 4  number of sections
//	16 8  segment and
//	24 8  offset up to which it covers the log
//
// Section n, from 1 on, is the payload of a frame of type n.
//
// A frame that does not check is a torn tail when no intact frame with flag 2 follows it in the newest segment; otherwise what
// stood there had been acknowledged, and it is damage.
package recordlog
