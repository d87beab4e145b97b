// Package content is the learner's files and what is known about them: it reads them, changes them durably and undoably, and keeps the
// history of each. It knows no actors, no protocol, and not who may do what; its caller says who acts.
//
// Words: an operation is one change of any number of files and catalog records, all or nothing, with an id that its caller chose. The base
// of a change is the revision that it relies on. The journal is the log of operations; the catalog is what they made of the items.
//
// Guarantees. Durability: when a call that changes something returns nil, the change survives kill -9 and power loss; before, either all or
// nothing of it does, or it is reported as needing recovery. Two waits for the disk, one after the other: first the bodies in the store, the
// prepare record and the temporary files, at the same time; then the folders after the renames. The confirmation rides with the next record, or follows
// within milliseconds: an operation without one, of which a file is as it wanted it, is completed when the journal is opened.
// Nothing is lost: the bytes before and after each change are in the store, held by the operation, until it is pruned. What another program
// wrote between our look at a file and our rename is kept as an observed revision.
// Idempotency: the same id with the same input is answered with the first result, whatever became of the files since.
// Order: operations of a space follow one another; reads wait for nobody.
// Concurrency: all methods are safe for concurrent use.
//
// # Journal records
//
// The payload of each is a JSON object, read leniently (unknown members are ignored). All have version 1.
//
//	type 32, prepared:    {"id", "hash", "method", "time", "by", "files": [{"path", "before", "after", "temp"?, "was"?, "from"?}],
//	                       "items": [{"before"?, "after"}], "result", "undoes"?}
//	type 33, confirmed:   {"id"}
//	type 34, rolled back: {"id", "code", "error"}
//	type 35, in conflict: {"id", "code", "error", "conflicts": [path]}
//	type 36, reconciled:  {"id"}
//	type 37, pruned:      {"ids": [id]}
//	type 38, observed:    {"id", "time", "files": [{"path", "before", "after"}]}   done by somebody outside; needs no confirmation
//
// by is {"actor", "session"?, "run"?, "request"?}. before and after are {"kind": "absent" | "directory" | "file", "body"?, "size"?, "mode"?}: body is the
// object id of the bytes, absent when they were not read; mode is the permission bits. Times are milliseconds since 1970. An operation without files
// is one prepared and one confirmed record, appended as one.
package content
