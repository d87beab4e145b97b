// Package space is a learning space on disk, without actors: the folder's identity, its lock, its content-addressed store and the
// operations on its content.
//
// Words: the space is the learner's folder; its own data lies in the sub-folder .repa. A document is a file of the space outside
// .repa. A revision is the id of a document's bytes (cas.Sum). A base is the revision that a change relies on.
//
// Guarantees. Identity: a space keeps its id wherever the folder is moved. Ownership: one process at a time has a space open;
// the lock is the operating system's and ends with the process. Confinement: no path, symbolic link or race reaches outside the
// folder or into .repa. Durability: a write that returned nil survives kill -9 and power loss, and at every moment either the old
// or the new bytes are there. Lost updates: a change whose base is no longer current is refused with revision_conflict and
// changes nothing. Storage: the store (package cas, in .repa/cas) is open exactly as long as the space; damage in it keeps no space
// from being opened. Concurrency: a Space is safe for concurrent use; changes of content happen one after the other.
//
// What it does not do: it knows no sessions, requests or models. The folder below, search, finds text. Start reading at Open.
//
// # .repa/space.json, version 1
//
//	{"format": "repa.space", "version": 1, "id": "<id>"}
//
// Unknown members are kept by never rewriting the file. A newer version is refused.
package space
