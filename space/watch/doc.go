// Package watch notices what other programs change in the folders of spaces. It looks at names, sizes, times and inodes, never at bytes.
//
// Words: a tree is the table of the files and folders of one space as they were last seen. A scan compares all of it with the disk. A watcher follows
// any number of trees: by the system's notices, and by scans where those do not reach.
//
// Guarantees. Convergence: every change that stays is reported, at the latest by the next scan; lost notices, an overflow of the system's queue and
// exhausted limits lead to a scan. A file that is written again within the clock's grain of the look at it is reported again: its time
// would not tell. Order: none; a report says which paths are not as they were, and its receiver looks for itself. Delay: the first notice
// of a burst goes out at once, the following ones are gathered. Concurrency: a Tree and a Watcher are safe for concurrent use; the reports of one
// space come one after the other.
//
// What it does not do: symbolic links are not followed, and the folders .repa, .git and node_modules are left out.
//
// # The saved table, version 1
//
// It is a cache: a damaged one is dropped and made anew, which forgets only what changed while nobody watched. All numbers are little-endian or
// unsigned varints.
//
//	0  8  magic "repaseen"
//	8  1  version, 1
//	9  8  when it was saved, nanoseconds since 1970
//	17 …  folders: varint length and bytes of the path, varint number of entries; entries: varint length and bytes of the name, 1 byte kind
//	      (0 file, 1 folder), varint size, 8 bytes modification time in nanoseconds, 8 bytes inode
//	…  4  CRC-32C of everything before
package watch
