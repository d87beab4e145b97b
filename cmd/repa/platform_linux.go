package main

import (
	"bytes"
	"strconv"

	"github.com/repa-app/repa/cas/vfs"
)

// zombie reports whether a process has ended and only waits to be collected by its parent (proc_pid_stat(5): the state follows
// the name in parentheses).
func zombie(pid int) bool {
	proc, err := vfs.OS("/proc")
	if err != nil {
		return false
	}
	defer proc.Close()
	stat, err := vfs.ReadFile(proc, strconv.Itoa(pid)+"/stat", 4096)
	if err != nil {
		return false
	}
	_, rest, ok := bytes.Cut(stat, []byte(") "))
	return ok && len(rest) > 0 && rest[0] == 'Z'
}
