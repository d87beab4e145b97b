// Package cas holds the identity of bytes: every immutable byte string of a space is named by the BLAKE3-256 digest of its
// uncompressed content.
//
// Words: an [ID] names an object. [Sum] gives the id of bytes; a document's body revision is that id. It is the only digest
// function of the product.
//
// The folders below carry what every durable package stands on: vfs, the one disk interface, and recordlog, the append-only
// log of framed, checksummed records that the journal is made of.
//
// Everything here is safe for concurrent use and touches no disk.
package cas
