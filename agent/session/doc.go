// Package session keeps one session as a tree of entries in one file: the Pi session format, version 3, so that either
// program opens the other's files.
//
// Words. A file is a header line and entry lines, JSON Lines in UTF-8. Each [Entry] names its parent; the leaf is the last
// entry of the file, unless power failure took the lines before it; the branch is the path from its root to the leaf; the context is what the branch says to a model after
// compactions and context edits are applied. A [Snapshot] is all of that at one moment. Our own extra member on an entry is
// `repa: {requestId}`: which request the entry belongs to.
//
// Guarantees.
//   - What Append or Create returned for, and what Open showed, survives power loss. A batch is one write and one sync; a crash
//     in the middle leaves a prefix of its lines, the last of them perhaps torn.
//   - No byte that was once acknowledged is rewritten or removed. Lines that are no entries stay where they are and are reported
//     as [Damage]; unknown fields and entry types are kept. A torn last line is closed by the next append, which starts a new one.
//   - An append that failed leaves no trace in memory. After a sync that failed or a write that stopped half-way the store
//     refuses further appends until it is opened again: the system may have dropped the written bytes and yet report success later.
//   - A Snapshot never changes. Reading one, also from other goroutines, never waits for an append or for the disk. Append,
//     Close and At belong to one owner.
//
// What it does not do: it locks nothing (the owner of the space does), deletes and renames nothing, decides nothing about
// compaction, and does not migrate files of version 1 or 2, which it leaves untouched.
//
// Start reading at store.go, then context.go (what the model sees), scan.go (the line parser) and peek.go (listings).
package session
