// Package space is a learning space on disk, without actors: the folder's identity, its lock and its content-addressed store, and what works on its
// contents.
//
// Words: the space is the learner's folder; its own data lies in the sub-folder .repa. A document is a file of the space outside
// .repa.
//
// Guarantees. Identity: a space keeps its id wherever the folder is moved. Ownership: one process at a time has a space open;
// the lock is the operating system's and ends with the process. Storage: the store (package cas, in .repa/cas) is open exactly as long as the space; damage
// in it keeps no space from being opened. Concurrency: a Space is safe for concurrent use.
//
// What it does not do: it knows no sessions, requests or models. The folders below: content reads and changes files durably and keeps their history,
// over text, patch, links and catalog; watch notices what other programs do; grant says what may be read outside; search finds text. Start reading at
// Open, then at content.Engine.
//
// # .repa/space.json, version 1
//
//	{"format": "repa.space", "version": 1, "id": "<id>"}
//
// Unknown members are kept by never rewriting the file. A newer version is refused.
package space
