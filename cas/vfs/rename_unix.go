//go:build unix

package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// renameBetween renames relative to the open directories, whatever their paths lead to by now.
func renameBetween(from *os.Root, oldName string, to *os.Root, newName string) (err error) {
	a, err := from.Open(".")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	b, err := to.Open(".")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	return unix.Renameat(int(a.Fd()), oldName, int(b.Fd()), newName)
}
