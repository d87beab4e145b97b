// Package crashfs is a disk in memory that behaves like the worst legal one: every call can be made to fail or to hang, space
// can run out, and a crash keeps only what was synced, plus any part of the rest.
//
// It owns the model of what power loss may leave; stores are tested against the guarantees of package vfs and nothing more.
//
// # Model
//
// Durable are a file's bytes and size at its last Sync that succeeded, and a folder's names at its last SyncDir. Everything done since is
// a set of effects, each of which a crash keeps or loses by itself, whatever happened to the others and in whatever order they
// were done:
//
//   - Each 512-byte sector is the durable one or what any write since made of it, also one that was overwritten later: the
//     system writes back when it likes. No sector is torn inside. A sector that was never written back reads as zeros.
//   - The size is the durable one, any the file had since, or, when a write made it grow, any sector's end on the way there (Crash with a rng
//     takes any byte: copying may have paused there). A file can so be longer than its bytes that survived (zeros) or shorter (cut).
//   - Each name of a folder leads to what it durably led to or to what any change since made of it. A rename is two effects, the
//     old name and the new one: after a crash both may be there (and lead to the same file), or none, or the replaced file
//     still. Journaling file systems keep the two together; POSIX promises it only to running programs, and two folders may lie in
//     two blocks, so a store that syncs each folder it changed is safe everywhere. A name never leads to anything it did not lead to before.
//   - A folder is in one place only, as file system repair makes it: once the folder it was moved to is synced, it is nowhere else.
//
// A failed Sync makes nothing durable and drops the dirty state, as Linux does: the bytes stay readable, a later Sync claims
// success, and a crash then leaves the bytes from before, the lost ones, or any mix. Only writing them again and syncing makes
// them durable. (The size is not dropped; the next Sync that succeeds makes it durable.) A failed SyncDir changes nothing.
//
// [FS.Crash] gives one such state, [FS.Subsets] all of them or a sample, [FS.All] the disk after a mere kill of the process.
// Space, faults and handles are explained at [FS.SetSpace], [Fault] and [FS.OpenFiles].
//
// # Using a trace
//
// [FS.Record] notes each step that changes the disk, so that a test runs an operation once and then visits every moment of it:
//
//	trace := disk.Record()
//	run(disk, func(id string) { trace.Mark(id) }) // marks what it acknowledged
//	for i := range trace.Len() + 1 {
//		for after := range trace.At(i).Subsets(64) {
//			check(after, i, trace.Marks())
//		}
//	}
//
// The moment before a step is At(i-1), the one after it At(i). A recovery can be recorded and visited in the same way.
//
// # Limits
//
// Permissions are kept but not enforced, times are not part of the model, and there are no links. Of a file changed more than
// 1024 times without a sync, some states in between small appends are forgotten. A sector of a crash state is never
// anything but zeros or bytes written to it: rot is [FS.Flip].
//
// An FS, its files and a Trace are safe for concurrent use. Start reading at change.go for what a call does, then crash.go.
package crashfs
