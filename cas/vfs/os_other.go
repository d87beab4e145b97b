//go:build !linux

package vfs

import "os"

// Opening a pipe may block here; Repa opens only names that a directory listing showed as files on these platforms.
const nonBlock = 0

func preallocate(f *os.File, _, to int64) error { return f.Truncate(to) }
