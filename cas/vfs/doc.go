// Package vfs is the one disk interface of every durable package, and its operating-system form.
//
// It owns opening files: no other package of the product does. An [FS] is a directory tree with one root; names are
// slash-separated paths below that root, "." is the root itself. No name, symbolic link or race reaches outside the root:
// the operating-system form is built on [os.Root].
//
// Guarantees: an FS and its files are safe for concurrent use. A write survives power loss only after File.Sync returned nil
// for its bytes and FS.SyncDir returned nil for each directory in which a name was created, renamed or removed. After a Sync
// that failed, the file's contents are unknown until they were written anew; callers must not sync again and claim success.
// A lock is the operating system's: it ends with the process that holds it, however that process ends.
//
// What it does not do: it caches nothing and retries nothing. Tests replace it by testkit/crashfs, which fails, tears and
// crashes on order. Start reading at FS and File; [WriteFile] is the recipe for replacing a small file durably.
package vfs
