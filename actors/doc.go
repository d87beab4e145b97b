// Package actors is the coordinator: it puts the agent, the spaces and the protocol together, each owner of state an actor.
//
//	coordinator ─┬─ host (one per front end)      the connections that it lent, what it holds, disconnect grace
//	             └─ space (one per open space)    its sessions, requests and runs; admission
//	                  └─ session (when needed)    the session file, steer routing, one active run
//	                       └─ run                 one execution of the agent; input that waits for it, cancel
//	socket (one per WebSocket)                    calls, subscriptions
//
// Start reading at backend.go; each actor's file begins with the messages that it receives. A call enters in socket.go, goes
// through methods.go to the actor that owns what it is about, and is answered from there. The folders below: engine, the typed
// layer over the actor library; feed, the published state; ledger, the durable record of requests and runs; wire, conversions.
//
// # Ordering promises
//
//   - Bytes before facts: what a journal record or a session entry names lies in the space's store, synced and held by the request or
//     the session, before it is written.
//   - Facts before answers: an admission is acknowledged after its journal record is synced, and runs after it was acknowledged to
//     the session. A mailbox is never the only place of an accepted request.
//   - Prepare before files, files before confirm: a change of contents has its bodies, its prepare record and its temporary files synced before the first
//     rename, and the folders before its answer (package content of the space). Contents are worked on from the worker that has the call, beside the actor
//     of the space: operations of a space follow one another by themselves.
//   - The session file alone says what entered history: entries carry the request id. After a crash deliveries are read from it.
//   - Release last: a hold is dropped after the fact that ended its need. A crash may leave holds of nobody; they are dropped when the
//     space is opened, those of sessions only when every session file can be read.
//   - Everything durable of a session goes through its one worker, in order: admissions, history, ends.
//   - A record that changed reaches the space before the change is published: whoever sees a change and asks gets at least it.
//   - A run's live events are published from the agent's goroutine, so deltas come before the message that replaces them.
//   - A steer is admitted for the run that it names or kept as not entered; it never reaches another run.
//
// # Failures
//
// A panic in a run fails that run. A panic in a session without a run unloads it; it is read again when it is next needed. A panic
// in a space ends its actor and with it the open space; opening its folder again reads it from disk. Runs that a crash ended are
// marked interrupted when the space is opened; nothing is executed twice.
package actors
