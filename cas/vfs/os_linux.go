package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const nonBlock = unix.O_NONBLOCK

func preallocate(f *os.File, from, to int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, from, to-from)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return f.Truncate(to)
		default:
			return os.NewSyscallError("fallocate", err)
		}
	}
}
