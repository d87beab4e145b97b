// Package connection makes model connections: which provider speaks to which endpoint with which credential.
//
// Words: a Definition is a connection without its secret. A Lent connection is a definition together with a secret that a front
// end handed over; it exists in memory only, for the host that lent it. Builtin is the connection that needs nothing: its model,
// offline, is no language model. A Bound connection is what a run was admitted with: definition, model and secret.
//
// Guarantees: a secret is in no exported field, no error and no text form of these types. A connection uses exactly the endpoint
// and the secret it was made with, never the environment of the backend.
//
// Everything here is safe for concurrent use; nothing touches disk or network before a provider is asked to stream.
package connection
