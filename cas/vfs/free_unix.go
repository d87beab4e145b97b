//go:build unix && !netbsd && !solaris && !illumos && !aix

package vfs

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Free returns how many bytes the user may still write to the disk of the tree.
func (o *OSFS) Free() (n int64, err error) {
	d, err := o.root.Open(".")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(d.Fd()), &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil // of different types on different systems
}
