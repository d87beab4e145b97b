package vfs

import (
	"errors"
	"io"
	"io/fs"
	"path"
)

// ErrLocked is returned by FS.Lock when another process, or this one, holds the lock.
var ErrLocked = errors.New("locked by another process")

// FS is a directory tree. Errors are *fs.PathError or *os.LinkError and answer errors.Is for fs.ErrNotExist and the like.
type FS interface {
	// OpenFile opens name with the os.O_* flags; perm counts when the file is created. Devices, sockets and pipes are refused.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// Mkdir makes one directory.
	Mkdir(name string, perm fs.FileMode) error
	// Rename replaces newName atomically.
	Rename(oldName, newName string) error
	// RenameTo is Rename into another tree of the same disk. Both names are of one component, so that a symbolic link that is swapped in on the way
	// to either tree changes nothing.
	RenameTo(oldName string, to FS, newName string) error
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// Stat follows symbolic links inside the root; Lstat does not follow the last one.
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	// Readlink returns what a symbolic link says.
	Readlink(name string) (string, error)
	// ReadDir lists a directory, sorted by name.
	ReadDir(name string) ([]fs.DirEntry, error)
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
	// Lock takes an exclusive lock on the file name, made when absent, without waiting: ErrLocked when it is held.
	Lock(name string) (io.Closer, error)
	// Sub opens a directory as a tree of its own. Closing either leaves the other usable.
	Sub(name string) (FS, error)
	io.Closer
}

// File is an open file. ReadAt and WriteAt may run concurrently; Read and Write share a position.
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer
	io.WriterAt
	io.Closer
	// Sync makes the file's bytes and size durable.
	Sync() error
	Truncate(size int64) error
	// Preallocate reserves disk space up to size and extends the file to it with zero bytes, where the platform can reserve;
	// elsewhere it only extends. It never shrinks.
	Preallocate(size int64) error
	Stat() (fs.FileInfo, error)
	Name() string
}

// ReadFile reads a whole file of at most limit bytes; a longer one is refused with ErrTooLarge. A negative limit is none.
func ReadFile(fsys FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.OpenFile(name, readOnly, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: ErrIsDir}
	}
	if limit < 0 {
		return io.ReadAll(f)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, &fs.PathError{Op: "read", Path: name, Err: ErrTooLarge}
	}
	return data, err
}

// ErrTooLarge is returned by ReadFile for a file above the limit, ErrIsDir for a directory.
var (
	ErrTooLarge = errors.New("file is larger than allowed")
	ErrIsDir    = errors.New("is a directory")
)

// WriteFile replaces or creates name with data so that after a crash at any moment either the old or the new file is there,
// and the new one for certain once it returned nil. The temporary name is name plus ".tmp" plus a random suffix in the same
// directory; it is removed again on failure.
func WriteFile(fsys FS, name string, data []byte, perm fs.FileMode) error {
	if err := replace(fsys, name, data, perm, true); err != nil {
		return err
	}
	return fsys.SyncDir(path.Dir(name))
}

// PublishFile replaces or creates name with data for other processes: they see the old or the new file, never a part. It does not
// outlive a crash of the machine and costs no sync: for files that say something about a running process.
func PublishFile(fsys FS, name string, data []byte, perm fs.FileMode) error {
	return replace(fsys, name, data, perm, false)
}

func replace(fsys FS, name string, data []byte, perm fs.FileMode, durable bool) error {
	temp, err := writeTemp(fsys, name, data, perm, durable)
	if err != nil {
		return err
	}
	if err := fsys.Rename(temp, name); err != nil {
		return errors.Join(err, fsys.Remove(temp))
	}
	return nil
}

func writeTemp(fsys FS, name string, data []byte, perm fs.FileMode, durable bool) (string, error) {
	temp := name + ".tmp" + randomSuffix()
	f, err := fsys.OpenFile(temp, createExclusive, perm)
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil && durable {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return "", errors.Join(err, fsys.Remove(temp))
	}
	return temp, nil
}

// MkdirAll makes a directory with all its parents, each durable, and accepts what is there already.
func MkdirAll(fsys FS, name string, perm fs.FileMode) error {
	if name == "." {
		return nil
	}
	if info, err := fsys.Stat(name); err == nil {
		if info.IsDir() {
			return nil
		}
		return &fs.PathError{Op: "mkdir", Path: name, Err: errors.New("a file is in the way")}
	}
	if err := MkdirAll(fsys, path.Dir(name), perm); err != nil {
		return err
	}
	if err := fsys.Mkdir(name, perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return fsys.SyncDir(path.Dir(name))
}
