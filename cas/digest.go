package cas

import (
	"github.com/zeebo/blake3"
)

// Context separates digests of records by their role (the key-derivation mode of BLAKE3). The list below is complete; a
// context string is never changed or used again for something else.
type Context string

// The contexts in use.
const (
	// ContextSubmission: the canonical JSON of a submission, compared when a request id comes again.
	ContextSubmission Context = "repa 2026-12-01 request submission v1"
	// ContextLentConnection: host id, provider, endpoint and secret of a lent connection, so that lending the same again
	// gives the same connection id.
	ContextLentConnection Context = "repa 2026-12-01 lent connection v1"
)

// Digest returns the digest of canonical JSON (UTF-8, object members sorted by the bytes of their names, no insignificant
// space) in the given context. It does not check the form.
func Digest(context Context, canonicalJSON []byte) ID {
	h := blake3.NewDeriveKey(string(context))
	h.Write(canonicalJSON) // a hash never fails to write
	var id ID
	h.Sum(id[:0])
	return id
}
