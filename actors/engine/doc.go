// Package engine is the small typed layer over the actor library (protoactor-go) on which the coordinator runs. It is the only
// place that knows the library, so that the library can be replaced here.
//
// Words: a [System] holds actors; one per process. An actor is a Go value whose Receive handles one message at a time, in the
// order of arrival; its fields need no lock. A [Ref] is the typed address of an actor. A [Reply] travels in a message that wants
// an answer. Work is a function that an actor hands to a worker goroutine because it may wait; its result comes back as a
// message.
//
// Guarantees.
//   - Order: messages of one sender to one actor arrive in the order they were sent.
//   - Bounds: Tell refuses with [ErrBusy] when the actor's queue is full, at once; Post is for facts that must not be refused (an
//     actor's own workers, children and timers), whose number the sender bounds.
//   - Panics: a panic in Receive is logged with its stack and fails the reply that its message carried. The actor goes on with its
//     next message when it says so (Panicked), but never more than 3 times a minute; otherwise it stops. Nothing restarts by
//     itself. A panic in work is logged and comes back as a message.
//   - End: an actor's children end before it; its work's context is cancelled, and Done is closed when its last worker returned.
//     Whoever waits for a reply of an actor that ended gets [ErrStopped].
//
// Receive must not block: no disk, no network, no Ask. Ask is for goroutines outside of actors and for work.
//
// What the library does that this layer keeps away: a nil message spins an actor; its receive timeout races; bounded mailboxes
// spin or lose messages; messages with a batch method arrive twice; its shutdown stops nothing and panics when repeated; its
// supervision restarts silently and drops the message; stash, futures inside Receive, passivation and persistence. Each has a
// test here.
package engine
