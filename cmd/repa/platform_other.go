//go:build !unix

package main

import (
	"io/fs"
	"os"
	"os/exec"
)

func detach(*exec.Cmd) {}

// Access lists decide on this platform; the user's own folders are private by default.
func ownedByUser(fs.FileInfo) bool { return true }
func private(fs.FileInfo) bool     { return true }

func alive(pid int) bool {
	_, err := os.FindProcess(pid)
	return err == nil
}

func freeDisk(string) (uint64, bool) { return 0, false }

var stopSignals = []os.Signal{os.Interrupt}
