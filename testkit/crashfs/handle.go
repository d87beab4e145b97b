package crashfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"
)

// file is an open file. All its fields that change are guarded by the disk's lock.
type file struct {
	fs     *FS
	n      *node
	name   string
	flag   int
	at     int64
	closed bool
}

// begin is FS.begin for a file opened in another access mode than the refused one.
func (f *file) begin(op string, refused int) error {
	err := f.fs.begin(op, f.name)
	switch {
	case err != nil && !errors.Is(err, ErrShortWrite):
	case f.closed:
		err = pathError(op, f.name, fs.ErrClosed)
	case refused != allowed && f.flag&accessMode == refused:
		err = pathError(op, f.name, syscall.EBADF)
	}
	return err
}

// allowed is no access mode: the call is allowed in all of them.
const allowed = -1

// Name implements vfs.File.
func (f *file) Name() string { return f.name }

// Read implements vfs.File.
func (f *file) Read(p []byte) (int, error) {
	err := f.begin("read", os.O_WRONLY)
	defer f.fs.end()
	if err != nil {
		return 0, err
	}
	n, err := f.read(p, f.at)
	f.at += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

// ReadAt implements vfs.File.
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	err := f.begin("read", os.O_WRONLY)
	defer f.fs.end()
	if err != nil {
		return 0, err
	}
	return f.read(p, off)
}

func (f *file) read(p []byte, off int64) (int, error) {
	if f.n.dir {
		return 0, pathError("read", f.name, syscall.EISDIR)
	}
	if off < 0 {
		return 0, pathError("read", f.name, errors.New("negative offset"))
	}
	n := f.n.now.read(p, off)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Write implements vfs.File.
func (f *file) Write(p []byte) (int, error) {
	err := f.begin("write", os.O_RDONLY)
	defer f.fs.end()
	if f.flag&os.O_APPEND != 0 {
		f.at = f.n.now.size
	}
	n, err := f.write(p, f.at, err)
	f.at += int64(n)
	return n, err
}

// WriteAt implements vfs.File.
func (f *file) WriteAt(p []byte, off int64) (int, error) {
	err := f.begin("write", os.O_RDONLY)
	defer f.fs.end()
	switch {
	case err != nil && !errors.Is(err, ErrShortWrite):
	case f.flag&os.O_APPEND != 0:
		err = pathError("write", f.name, errors.New("WriteAt on a file opened for appending"))
	case off < 0:
		err = pathError("write", f.name, errors.New("negative offset"))
	}
	return f.write(p, off, err)
}

// write writes as much as the fault begun and the space allow, as the operating system does.
func (f *file) write(p []byte, off int64, begun error) (n int, err error) {
	switch {
	case errors.Is(begun, ErrShortWrite):
		p, err = p[:len(p)/2], io.ErrShortWrite
	case begun != nil:
		return 0, begun
	}
	if fits := f.n.now.fit(off, int64(len(p)), f.fs.d.free()); fits < int64(len(p)) {
		p, err = p[:fits], pathError("write", f.name, syscall.ENOSPC)
	}
	if len(p) > 0 {
		f.do(change{Step: Step{Op: "write", Offset: off, Size: int64(len(p))}, data: p})
	}
	return len(p), err
}

func (f *file) do(c change) {
	c.node = f.n
	if c.data != nil && f.fs.d.trace != nil {
		c.data = slices.Clone(c.data) // the caller may reuse its buffer
	}
	f.fs.do(c, f.name)
}

// Sync implements vfs.File.
func (f *file) Sync() error {
	err := f.begin("sync", allowed)
	defer f.fs.end()
	switch {
	case f.closed:
	case !f.n.dir:
		f.do(change{Step: Step{Op: "sync", Failed: err != nil}})
	case err == nil:
		f.do(change{Step: Step{Op: "syncdir"}})
	}
	return err
}

// Truncate implements vfs.File.
func (f *file) Truncate(size int64) error {
	err := f.begin("truncate", os.O_RDONLY)
	defer f.fs.end()
	if err == nil && size < 0 {
		err = pathError("truncate", f.name, syscall.EINVAL)
	}
	if err != nil || size == f.n.now.size {
		return err
	}
	f.do(change{Step: Step{Op: "truncate", Size: size}})
	return nil
}

// Preallocate implements vfs.File. Without the space for all of it nothing changes.
func (f *file) Preallocate(size int64) error {
	err := f.begin("preallocate", os.O_RDONLY)
	defer f.fs.end()
	now := f.n.now
	if err != nil || size <= now.size {
		return err
	}
	if now.fit(now.size, size-now.size, f.fs.d.free()) < size-now.size {
		return pathError("preallocate", f.name, syscall.ENOSPC)
	}
	f.do(change{Step: Step{Op: "preallocate", Size: size}})
	return nil
}

// Stat implements vfs.File.
func (f *file) Stat() (fs.FileInfo, error) {
	err := f.begin("stat", allowed)
	defer f.fs.end()
	if err != nil {
		return nil, err
	}
	return f.n.info(path.Base(f.name)), nil
}

// Close implements vfs.File. The file is closed also when it returns an error.
func (f *file) Close() error {
	err := f.begin("close", allowed)
	defer f.fs.end()
	f.closed = true
	f.fs.d.closed(f)
	return err
}
