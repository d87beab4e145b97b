//go:build unix

package watch

import (
	"io/fs"
	"syscall"
)

// inodeOf tells a file from another that took its name.
func inodeOf(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}
