// Package ledger is the durable record of a space's requests and runs: what was admitted, how it ended, and which sessions' queues
// are paused. It turns facts into journal records and journal records back into state.
//
// Words: a fact is one thing that happened; facts that belong together are appended as one. State is what all facts say. A text that
// lies apart is in the space's store, held by its request, and only named here.
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
// The payload of each record is a JSON object, read leniently (unknown members are ignored). Version of all types: 1, and 2 for an
// admission with texts that lie apart.
//
//	type 1, admitted: {"request": Request, "run"?: Run}      the request as admitted; run when it starts one at once
//	version 2:        {"request": Request, "run"?: Run, "texts": [{"part", "id", "size"}]}
//	type 2, ended:    {"run": Run, "requests": [End], "paused": bool}
//	type 3, settled:  {"requests": [End]}                    requests that end without a run
//	type 4, queue:    {"sessionId": id, "paused": bool}
//
// In version 2, texts names the parts of the input, counted from 0, whose text is the object id of the store and size bytes long; that text is
// "" in request.input and request.submission.input, and so is run.text, which follows from the input. An ended run whose text is "" has
// the text of its admission. Version 1 is written for every other admission, so that an older Repa goes on with a space that never needed
// more.
//
// Request and Run are those of protocol version 1. End is {"requestId", "status", "delivery", "error"?, "modelAttempts"?}. A type
// that this version does not know belongs to a newer one: the ledger is then opened read-only.
package ledger
