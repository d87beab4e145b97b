// Package frames plays recorded protocol exchanges against a running backend and says where it departs from them.
//
// A file is an array of steps: frames that a client sends, frames that the server must send, HTTP calls, closes, and what the harness
// does in between. Play reads a file, acts and matches; the Harness starts the backend and scripts its model.
//
// Matching: answers by connection and id, updates by connection and subscription, both streams may interleave unless a step is strict. The
// changes of consecutive deliveries of one subscription are joined; those of a step must occur in the given order, others may lie between;
// previousCursor always equals the cursor before. Deltas may be cut differently: where a step expects one delta, only its place counts.
//
// Socket is a WebSocket client of its own, so that the server is not judged by the library that it uses itself, and so that tests can send
// what no library sends.
//
// Start reading at play.go.
package frames
