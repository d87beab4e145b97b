//go:build unix && !linux

package backend

import "syscall"

// dieWithParent can do nothing here: only Linux ties a process to the life of another.
func dieWithParent(*syscall.SysProcAttr) {}
