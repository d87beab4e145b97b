//go:build unix

package main

import (
	"io/fs"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// inheritable is above every descriptor that a shell hands to a command; bash keeps its own at 255.
const inheritable = 256

// detach lets a process live on when the command that started it ends or its terminal is closed. It gets none of the files that the
// command was started with: a pipe, a terminal or a lock of a script must not stay open as long as a backend.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	for fd := 3; fd < inheritable; fd++ {
		syscall.CloseOnExec(fd)
	}
}

func ownedByUser(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}

// private reports whether only the owner has rights.
func private(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 == 0 }

func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return pid > 0 && (err == nil || err == syscall.EPERM)
}

// freeDisk returns the bytes that the user may still write where path is.
func freeDisk(path string) (uint64, bool) {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil {
		return 0, false
	}
	return uint64(s.Bavail) * uint64(s.Bsize), true
}

var stopSignals = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
