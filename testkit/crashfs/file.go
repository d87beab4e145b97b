package crashfs

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"time"
)

type file struct {
	fs     *FS
	n      *node
	name   string
	append bool
	at     int64
	closed bool
}

func (f *file) begin(op string) error {
	err := f.fs.begin(op, f.name)
	if err == nil && f.closed {
		err = pathError(op, f.name, fs.ErrClosed)
	}
	return err
}

// Name implements vfs.File.
func (f *file) Name() string { return f.name }

func (f *file) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.at)
	f.at += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	err := f.begin("read")
	defer f.fs.end()
	if err != nil {
		return 0, err
	}
	if off >= int64(len(f.n.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.n.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) Write(p []byte) (int, error) {
	n, err := f.write(p, f.at, f.append)
	if !f.append {
		f.at += int64(n)
	}
	return n, err
}

func (f *file) WriteAt(p []byte, off int64) (int, error) { return f.write(p, off, false) }

func (f *file) write(p []byte, off int64, atEnd bool) (int, error) {
	err := f.begin("write")
	defer f.fs.end()
	var short error
	if errors.Is(err, ErrShortWrite) {
		p, short, err = p[:len(p)/2], io.ErrShortWrite, nil
	}
	if err != nil {
		return 0, err
	}
	if atEnd {
		off = int64(len(f.n.data))
	}
	// A fresh slice: the durable bytes and readers keep the old one.
	data := make([]byte, max(len(f.n.data), int(off)+len(p)))
	copy(data, f.n.data)
	copy(data[off:], p)
	f.n.touch(min(int(off), len(f.n.data)), int(off)+len(p))
	f.n.data, f.n.modified = data, time.Now()
	return len(p), short
}

// Sync implements vfs.File.
func (f *file) Sync() error {
	err := f.begin("sync")
	defer f.fs.end()
	if errors.Is(err, fs.ErrClosed) {
		return err
	}
	if err == nil {
		f.n.flush()
	}
	clear(f.n.dirty) // also after a failure: the kernel forgets the dirty pages
	return err
}

func (n *node) flush() {
	durable := make([]byte, len(n.data))
	copy(durable, n.durable)
	for s := range n.dirty {
		if at := s * sector; at < len(n.data) {
			copy(durable[at:min(at+sector, len(durable))], n.data[at:])
		}
	}
	n.durable = durable
}

func (n *node) touch(from, to int) {
	if n.dirty == nil {
		n.dirty = map[int]bool{}
	}
	for s := from / sector; s*sector < to; s++ {
		n.dirty[s] = true
	}
}

// Truncate implements vfs.File.
func (f *file) Truncate(size int64) error { return f.resize("truncate", size, true) }

// Preallocate implements vfs.File.
func (f *file) Preallocate(size int64) error { return f.resize("preallocate", size, false) }

func (f *file) resize(op string, size int64, shrink bool) error {
	err := f.begin(op)
	defer f.fs.end()
	if err != nil || (!shrink && size <= int64(len(f.n.data))) {
		return err
	}
	data := make([]byte, size)
	copy(data, f.n.data)
	f.n.touch(min(len(f.n.data), len(data)), len(data))
	f.n.data, f.n.modified = data, time.Now()
	return nil
}

// Stat implements vfs.File.
func (f *file) Stat() (fs.FileInfo, error) {
	err := f.begin("stat")
	defer f.fs.end()
	if err != nil {
		return nil, err
	}
	return f.n.info(path.Base(f.name)), nil
}

// Close implements vfs.File.
func (f *file) Close() error {
	err := f.begin("close")
	defer f.fs.end()
	if err == nil {
		f.closed = true
	}
	return err
}
