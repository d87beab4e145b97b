// Package rpc is one end of a JSON-RPC 2.0 conversation over one WebSocket, the same code for server and client.
//
// It owns framing, the order of what goes out, back-pressure, the heartbeat and the matching of answers to calls. It does not know any
// method and makes no decision about tokens or hosts: its owner is a Handler.
//
// # Words
//
// A peer is one end. A call comes in and is answered exactly once. A source is something that has frames when asked, such as a
// subscription: the peer pulls one frame at a time from it, so what a slow reader misses gathers (and merges) at the source and not in the queue.
//
// # Guarantees
//
// Order: frames go out in the order in which Reply, Fail, Notify and Push were called; a source gives one frame at its place and then
// queues behind what has come since. So the first frame of a source that is pushed before an answer goes out before that answer.
//
// Bounds: an inbound message has at most 8 MiB; more closes the socket with 1009. At most 256 calls are unanswered, further ones get the domain error busy. A
// batch has at most 256 calls. More than 8 MiB of unsent frames closes the socket with 1013: the reader is too slow and has to
// resynchronise. One write may take 30 s. A ping goes out every 30 s; a peer that has not answered the last one is cut.
//
// Concurrency: one goroutine reads, one writes, one pings; Run owns them and returns when all have ended. Handler is called from the
// reading goroutine and must not block; Source.Next is called from the writing one. Everything else may be called from anywhere.
//
// Whatever bytes come in, the answer is a valid JSON-RPC error, nothing, or a closed socket.
//
// Start reading at peer.go; parse.go is the reading of one frame.
package rpc
