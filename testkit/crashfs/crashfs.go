// Package crashfs is a disk in memory that behaves like the worst legal one: every call can be made to fail, and a crash keeps
// only what was synced, plus any part of the rest.
//
// Model. A file has its current bytes and its durable bytes (those at its last Sync); a folder has its current names and its
// durable names (those at its last SyncDir). Crash returns the disk as a machine could find it after power loss: per file, each
// 512-byte sector is the durable or the current one; per folder, each name that changed is there or not. A failed Sync leaves
// the durable bytes as they were and drops the dirty state, as Linux does: a later Sync claims success although the bytes written before are gone after a crash.
//
// An FS is safe for concurrent use.
package crashfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/repa-app/repa/cas/vfs"
)

// Call is one disk call, shown to a fault function before it takes effect. N counts from 1 over the whole disk.
type Call struct {
	N    int
	Op   string // open, create, mkdir, rename, remove, stat, readdir, syncdir, lock, read, write, sync, truncate, preallocate, close
	Path string
}

// Fault decides about a call: nil lets it through, ErrShortWrite lets half of a write through, anything else fails it.
type Fault func(Call) error

// ErrShortWrite makes a write stop half-way and report io.ErrShortWrite.
var ErrShortWrite = errors.New("short write wanted")

// FS is one disk. New makes an empty one.
type FS struct {
	d    *disk
	root *node
	base string
}

type disk struct {
	mu    sync.Mutex
	n     int
	fault Fault
	locks map[*node]bool
}

type node struct {
	dir      bool
	mode     fs.FileMode
	modified time.Time
	data     []byte
	durable  []byte
	dirty    map[int]bool // sectors written since the last Sync
	names    map[string]*node
	kept     map[string]*node // durable names
}

// New returns an empty disk.
func New() *FS {
	return &FS{d: &disk{locks: map[*node]bool{}}, root: newDir(0o700)}
}

func newDir(perm fs.FileMode) *node {
	return &node{dir: true, mode: perm | fs.ModeDir, names: map[string]*node{}, kept: map[string]*node{}}
}

// SetFault installs the fault function; nil removes it. It may not call the disk.
func (f *FS) SetFault(fault Fault) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.fault = fault
}

// Calls returns how many calls were made so far.
func (f *FS) Calls() int {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.d.n
}

// FailNth fails the n-th call from now on (1 is the next one) with err, once.
func (f *FS) FailNth(n int, err error) {
	at := f.Calls() + n
	f.SetFault(func(c Call) error {
		if c.N == at {
			return err
		}
		return nil
	})
}

// Crash returns the disk as it may be found after power loss; f itself goes on unharmed. With a nil rng only what was synced
// is kept; otherwise rng decides about every unsynced sector and name. Locks are free on the new disk.
func (f *FS) Crash(rng *rand.Rand) *FS {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return &FS{d: &disk{locks: map[*node]bool{}}, root: f.root.crash(rng)}
}

func (n *node) crash(rng *rand.Rand) *node {
	if !n.dir {
		data := slices.Clone(n.durable)
		if rng != nil {
			data = mix(n.durable, n.data, rng)
		}
		return &node{mode: n.mode, modified: n.modified, data: data, durable: slices.Clone(data)}
	}
	out := newDir(n.mode.Perm())
	all := map[string]bool{}
	for name := range n.names {
		all[name] = true
	}
	for name := range n.kept {
		all[name] = true
	}
	for _, name := range slices.Sorted(mapKeys(all)) {
		child := n.kept[name]
		if rng != nil && n.names[name] != child && rng.IntN(2) == 0 {
			child = n.names[name]
		}
		if child != nil {
			c := child.crash(rng)
			out.names[name], out.kept[name] = c, c
		}
	}
	return out
}

func mapKeys(m map[string]bool) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

const sector = 512

func mix(durable, current []byte, rng *rand.Rand) []byte {
	size := len(durable)
	if len(current) != size && rng.IntN(2) == 0 {
		size = len(current)
		if len(current) > len(durable) {
			size = len(durable) + rng.IntN(len(current)-len(durable)+1)
		}
	}
	out := make([]byte, size)
	for at := 0; at < size; at += sector {
		from := durable
		if rng.IntN(2) == 0 {
			from = current
		}
		if at < len(from) {
			copy(out[at:min(at+sector, size)], from[at:])
		}
	}
	return out
}

// begin counts a call and asks the fault function. The disk is locked from here on.
func (f *FS) begin(op, name string) error {
	f.d.mu.Lock()
	f.d.n++
	if f.d.fault == nil {
		return nil
	}
	if err := f.d.fault(Call{N: f.d.n, Op: op, Path: path.Join(f.base, name)}); err != nil {
		if errors.Is(err, ErrShortWrite) {
			return err
		}
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

func (f *FS) end() { f.d.mu.Unlock() }

// find walks to name's parent and returns it with the last element; "." gives the root itself and an empty element.
func (f *FS) find(name string) (parent *node, last string, err error) {
	if !fs.ValidPath(name) {
		return nil, "", fs.ErrInvalid
	}
	if name == "." {
		return f.root, "", nil
	}
	parts := strings.Split(name, "/")
	n := f.root
	for _, p := range parts[:len(parts)-1] {
		n = n.names[p]
		if n == nil {
			return nil, "", fs.ErrNotExist
		}
		if !n.dir {
			return nil, "", errors.New("not a directory")
		}
	}
	return n, parts[len(parts)-1], nil
}

func (f *FS) lookup(name string) (*node, error) {
	parent, last, err := f.find(name)
	if err != nil || last == "" {
		return parent, err
	}
	if n := parent.names[last]; n != nil {
		return n, nil
	}
	return nil, fs.ErrNotExist
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// OpenFile implements vfs.FS.
func (f *FS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	op := "open"
	if flag&os.O_CREATE != 0 {
		op = "create"
	}
	err := f.begin(op, name)
	defer f.end()
	if err != nil {
		return nil, err
	}
	parent, last, err := f.find(name)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	n := parent
	if last != "" {
		n = parent.names[last]
	}
	switch {
	case n == nil && flag&os.O_CREATE == 0:
		return nil, pathError(op, name, fs.ErrNotExist)
	case n == nil:
		n = &node{mode: perm.Perm(), modified: time.Now()}
		parent.names[last] = n
	case flag&os.O_EXCL != 0 && flag&os.O_CREATE != 0:
		return nil, pathError(op, name, fs.ErrExist)
	case flag&os.O_TRUNC != 0:
		n.data, n.dirty = nil, nil
	}
	return &file{fs: f, n: n, name: name, append: flag&os.O_APPEND != 0}, nil
}

// Mkdir implements vfs.FS.
func (f *FS) Mkdir(name string, perm fs.FileMode) error {
	err := f.begin("mkdir", name)
	defer f.end()
	if err != nil {
		return err
	}
	parent, last, err := f.find(name)
	switch {
	case err != nil:
	case last == "" || parent.names[last] != nil:
		err = fs.ErrExist
	default:
		parent.names[last] = newDir(perm.Perm())
	}
	return pathError("mkdir", name, err)
}

// Rename implements vfs.FS.
func (f *FS) Rename(oldName, newName string) error {
	err := f.begin("rename", oldName)
	defer f.end()
	if err != nil {
		return err
	}
	from, old, err := f.find(oldName)
	if err != nil {
		return pathError("rename", oldName, err)
	}
	to, last, err := f.find(newName)
	if err != nil {
		return pathError("rename", newName, err)
	}
	n := from.names[old]
	if n == nil {
		return pathError("rename", oldName, fs.ErrNotExist)
	}
	delete(from.names, old)
	to.names[last] = n
	return nil
}

// Remove implements vfs.FS.
func (f *FS) Remove(name string) error {
	err := f.begin("remove", name)
	defer f.end()
	if err != nil {
		return err
	}
	parent, last, err := f.find(name)
	switch {
	case err != nil:
	case last == "" || parent.names[last] == nil:
		err = fs.ErrNotExist
	case parent.names[last].dir && len(parent.names[last].names) > 0:
		err = errors.New("directory not empty")
	default:
		delete(parent.names, last)
	}
	return pathError("remove", name, err)
}

// Stat implements vfs.FS. There are no symbolic links on this disk.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	err := f.begin("stat", name)
	defer f.end()
	if err != nil {
		return nil, err
	}
	n, err := f.lookup(name)
	if err != nil {
		return nil, pathError("stat", name, err)
	}
	return n.info(path.Base(name)), nil
}

// Lstat implements vfs.FS.
func (f *FS) Lstat(name string) (fs.FileInfo, error) { return f.Stat(name) }

// ReadDir implements vfs.FS.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	err := f.begin("readdir", name)
	defer f.end()
	if err != nil {
		return nil, err
	}
	n, err := f.lookup(name)
	if err == nil && !n.dir {
		err = errors.New("not a directory")
	}
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	var out []fs.DirEntry
	for childName, child := range n.names {
		out = append(out, fs.FileInfoToDirEntry(child.info(childName)))
	}
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out, nil
}

// SyncDir implements vfs.FS.
func (f *FS) SyncDir(name string) error {
	err := f.begin("syncdir", name)
	defer f.end()
	if err != nil {
		return err
	}
	n, err := f.lookup(name)
	if err != nil {
		return pathError("syncdir", name, err)
	}
	n.kept = map[string]*node{}
	for childName, child := range n.names {
		n.kept[childName] = child
	}
	return nil
}

// Lock implements vfs.FS.
func (f *FS) Lock(name string) (io.Closer, error) {
	l, err := f.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	n := l.(*file).n
	err = f.begin("lock", name)
	defer f.end()
	if err == nil && f.d.locks[n] {
		err = pathError("lock", name, vfs.ErrLocked)
	}
	if err != nil {
		return nil, err
	}
	f.d.locks[n] = true
	return unlock{f.d, n}, nil
}

type unlock struct {
	d *disk
	n *node
}

func (u unlock) Close() error {
	u.d.mu.Lock()
	defer u.d.mu.Unlock()
	delete(u.d.locks, u.n)
	return nil
}

// Sub implements vfs.FS. Calls below it count on the same disk and are named from its root.
func (f *FS) Sub(name string) (vfs.FS, error) {
	err := f.begin("open", name)
	defer f.end()
	if err != nil {
		return nil, err
	}
	n, err := f.lookup(name)
	if err == nil && !n.dir {
		err = errors.New("not a directory")
	}
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &FS{d: f.d, root: n, base: path.Join(f.base, name)}, nil
}

// Close implements io.Closer.
func (f *FS) Close() error { return nil }

// Flip inverts one bit of a file, current and durable, as rotting hardware does.
func (f *FS) Flip(name string, offset int, bit uint) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	n, err := f.lookup(name)
	if err != nil {
		panic(fmt.Sprintf("flip %s: %v", name, err))
	}
	for _, data := range [][]byte{n.data, n.durable} {
		if offset < len(data) {
			data[offset] ^= 1 << bit
		}
	}
}

func (n *node) info(name string) fs.FileInfo {
	return info{name: name, size: int64(len(n.data)), mode: n.mode, modified: n.modified}
}

type info struct {
	name     string
	size     int64
	mode     fs.FileMode
	modified time.Time
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return i.modified }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }
