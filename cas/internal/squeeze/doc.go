// Package squeeze compresses single records when that pays, and opens them again.
//
// Words: compression pays when it saves at least a tenth. Below that, opening the record again for every read costs more than the
// bytes are worth.
//
// [Encode] finds out cheaply what is worth trying, since most large things that a learner brings are compressed already: first
// how unevenly byte values occur in a sample, then, for large sources that look even, what becomes of 16 KiB from the beginning
// and 16 KiB from the middle. The last word has the size of the result. So a small source whose bytes are even but repeat is kept
// as it is, and so is a large one that is even in both places and uneven elsewhere.
//
// The form is one zstd frame (RFC 8878): a single segment with its content size, no checksum, no dictionary. What must notice
// changed bytes is the digest that names the object; [Decode] notices only what cannot be decoded.
//
// Guarantees: everything is safe for concurrent use, keeps no goroutine, and allocates nothing when dst has room, once as many
// coders exist as calls run at once. A coder is built when first needed, never when the program starts, and is given back to the
// garbage collector when it has not been used for a while: an encoder holds about 1.5 MiB, which an idle program should not.
// That is why they are in a sync.Pool rather than in a list of fixed length, which would keep them for ever and make callers wait.
package squeeze
