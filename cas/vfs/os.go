package vfs

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/gofrs/flock"
)

const (
	readOnly        = os.O_RDONLY
	createExclusive = os.O_WRONLY | os.O_CREATE | os.O_EXCL
)

func randomSuffix() string {
	var b [6]byte
	rand.Read(b[:]) // never fails (crypto/rand since Go 1.24)
	return hex.EncodeToString(b[:])
}

// OS opens an existing directory of the operating system as an FS.
func OS(dir string) (*OSFS, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, err
	}
	return &OSFS{root: root, dir: abs}, nil
}

// OSFS is the operating-system form of FS.
type OSFS struct {
	root *os.Root
	dir  string
}

// Dir returns the absolute path of the root at the time it was opened, for messages and for starting processes.
func (o *OSFS) Dir() string { return o.dir }

// OpenFile implements FS. It opens without blocking on a pipe and refuses anything but files and directories.
func (o *OSFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := o.root.OpenFile(filepath.FromSlash(name), flag|nonBlock, perm)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("neither a file nor a directory")}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return osFile{f}, nil
}

// Mkdir implements FS.
func (o *OSFS) Mkdir(name string, perm fs.FileMode) error {
	return o.root.Mkdir(filepath.FromSlash(name), perm)
}

// Rename implements FS.
func (o *OSFS) Rename(oldName, newName string) error {
	return o.root.Rename(filepath.FromSlash(oldName), filepath.FromSlash(newName))
}

// RenameTo implements FS.
func (o *OSFS) RenameTo(oldName string, to FS, newName string) error {
	target, ok := to.(*OSFS)
	if !ok || strings.ContainsAny(oldName+newName, `/\`) || !fs.ValidPath(oldName) || !fs.ValidPath(newName) {
		return &os.LinkError{Op: "rename", Old: oldName, New: newName, Err: fs.ErrInvalid}
	}
	if err := renameBetween(o.root, oldName, target.root, newName); err != nil {
		return &os.LinkError{Op: "rename", Old: oldName, New: newName, Err: err}
	}
	return nil
}

// Remove implements FS.
func (o *OSFS) Remove(name string) error { return o.root.Remove(filepath.FromSlash(name)) }

// Stat implements FS.
func (o *OSFS) Stat(name string) (fs.FileInfo, error) { return o.root.Stat(filepath.FromSlash(name)) }

// Lstat implements FS.
func (o *OSFS) Lstat(name string) (fs.FileInfo, error) {
	return o.root.Lstat(filepath.FromSlash(name))
}

// Readlink implements FS.
func (o *OSFS) Readlink(name string) (string, error) {
	target, err := o.root.Readlink(filepath.FromSlash(name))
	return filepath.ToSlash(target), err
}

// ReadDir implements FS.
func (o *OSFS) ReadDir(name string) ([]fs.DirEntry, error) {
	d, err := o.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// SyncDir implements FS. Windows has no such call; NTFS journals its names by itself.
func (o *OSFS) SyncDir(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := o.root.Open(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

// Lock implements FS with flock on Unix and LockFileEx on Windows.
func (o *OSFS) Lock(name string) (io.Closer, error) {
	// Made through the root first: a symbolic link that leads outside is refused there.
	f, err := o.root.OpenFile(filepath.FromSlash(name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	l := flock.New(filepath.Join(o.dir, filepath.FromSlash(name)))
	ok, err := l.TryLock()
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, &fs.PathError{Op: "lock", Path: name, Err: ErrLocked}
	}
	return l, nil
}

// Sub implements FS.
func (o *OSFS) Sub(name string) (FS, error) {
	root, err := o.root.OpenRoot(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	return &OSFS{root: root, dir: filepath.Join(o.dir, filepath.FromSlash(name))}, nil
}

// Close implements io.Closer.
func (o *OSFS) Close() error { return o.root.Close() }

type osFile struct{ *os.File }

// Preallocate implements File.
func (f osFile) Preallocate(size int64) error {
	info, err := f.Stat()
	if err != nil || info.Size() >= size {
		return err
	}
	return preallocate(f.File, info.Size(), size)
}

// Underlying returns the *os.File of a file opened by an OSFS, to hand it to a process; false for any other file.
func Underlying(f File) (*os.File, bool) {
	o, ok := f.(osFile)
	return o.File, ok
}
