// Package client is a front end's side of the protocol: calls, and replicas that follow a scope.
//
// It owns the connection and its renewal, the strict reading of results and the folding of deliveries. It has no user interface and
// never repeats a call by itself: after a drop or a timeout the caller asks again under the same request id.
//
// # Guarantees
//
// A Client stays connected: after a drop it comes back with growing pauses, is the same host again and resumes each replica at its
// last cursor. It gives up after a refused token or version, a close with 1000, or Close. A call waits for the connection and for its answer,
// together at most 15 s unless ctx says otherwise.
//
// A Replica holds the state of its scope. Changes reach it in order, none twice and none lost; when it sees that one is missing it asks
// for a snapshot. Updates that the user has not taken yet are kept up to a bound, then a snapshot stands for them all.
//
// Everything is safe for concurrent use. Close and Drop end all goroutines before they return.
//
// Start reading at client.go, then replica.go.
package client
