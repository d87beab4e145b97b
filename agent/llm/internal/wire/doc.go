// Package wire is what the wire families share: one HTTP exchange beneath the SDKs, and one message in the making above them.
//
// A [Conn] is an endpoint with its credential. [Conn.Run] performs one call: it gives the family a context for its SDK and an
// [Answer] to fill, and turns whatever happened into a message and an error. Beneath the SDK the connection's transport
// records the status, the provider's error and the end of the stream, so errors do not depend on what an SDK makes of them, and
// rewrites the stream into the form that the SDK reads without surprises.
//
// Guarantees: an answer counts as complete only when the family saw its terminal event and the transport saw no fault. Nothing
// of the credential gets into an error. Redirects are not followed: they would carry the key to another host. A Conn is safe for
// concurrent use, an Answer belongs to one call.
package wire
