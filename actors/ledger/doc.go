// Package ledger is the durable record of a space's requests and runs: what was admitted, how it ended, and which sessions' queues
// are paused. It turns facts into journal records and journal records back into state.
//
// Words: a fact is one thing that happened; facts that belong together are appended as one. State is what all facts say.
//
// Guarantees: an appended fact survives kill -9 and power loss (see cas/recordlog); Replay of the records gives the state that
// Apply of the facts gave. A run that has no end when the journal is opened was interrupted: Interrupt makes the facts that say
// so, and nothing is executed again. Whether an input entered the history is not a fact of the ledger: the session file alone
// says that, and the state's deliveries are corrected from it.
//
// A State is owned by one actor and not safe for concurrent use; the records in it are immutable.
//
// # Record format
//
// The payload of each record is a JSON object, read leniently (unknown members are ignored). Version of all types: 1.
//
//	type 1, admitted: {"request": Request, "run"?: Run}      the request as admitted; run when it starts one at once
//	type 2, ended:    {"run": Run, "requests": [End], "paused": bool}
//	type 3, settled:  {"requests": [End]}                    requests that end without a run
//	type 4, queue:    {"sessionId": id, "paused": bool}
//
// Request and Run are those of protocol version 1. End is {"requestId", "status", "delivery", "error"?, "modelAttempts"?}. A type
// that this version does not know belongs to a newer one: the ledger is then opened read-only.
package ledger
