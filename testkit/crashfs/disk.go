package crashfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/repa-app/repa/cas/vfs"
)

// FS is one disk, or a folder of it opened by Sub. New makes an empty disk.
type FS struct {
	d    *disk
	root *node
	base string
}

type disk struct {
	mu    sync.Mutex
	root  *node
	n     int
	fault Fault
	trace *Trace
	limit int64 // negative: none
	used  int64
	seed  uint64
	locks map[*node]bool
	open  map[any]handle // by *file, *FS of a Sub, or *lock
}

// handle is something open: a leak when it stays.
type handle struct {
	path string
	node *node
}

// New returns an empty disk without a limit of space.
func New() *FS { return newDisk(newDir(0o700, time.Now()), noLimit, 0) }

func newDisk(root *node, limit int64, seed uint64) *FS {
	root.links = 1 // the disk itself: the root is never removed
	return &FS{root: root, d: &disk{root: root, limit: limit, used: usedBy(root), seed: seed,
		locks: map[*node]bool{}, open: map[any]handle{}}}
}

// Calls returns how many calls were made so far.
func (f *FS) Calls() int {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.d.n
}

// OpenFiles lists what is open by the path it was opened with, sorted: files, locks that are held, and folders opened by Sub,
// these with a slash at the end.
func (f *FS) OpenFiles() []string {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	out := []string{}
	for _, h := range f.d.open {
		out = append(out, h.path)
	}
	slices.Sort(out)
	return out
}

// begin counts a call and asks the fault function while the disk is free for others; after it the disk is locked, also with
// an error.
func (f *FS) begin(op, name string) error {
	f.d.mu.Lock()
	f.d.n++
	call, fault := Call{N: f.d.n, Op: op, Path: path.Join(f.base, name)}, f.d.fault
	if fault != nil {
		f.d.mu.Unlock()
		err := fault(call)
		f.d.mu.Lock()
		if err != nil && !(op == "write" && errors.Is(err, ErrShortWrite)) {
			return &fs.PathError{Op: op, Path: name, Err: err}
		} else if err != nil {
			return err
		}
	}
	if f.root != f.d.root && f.d.open[f] == (handle{}) {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrClosed}
	}
	return nil
}

func (f *FS) end() { f.d.mu.Unlock() }

// do changes the disk and notes the step.
func (f *FS) do(c change, name string) {
	c.Path, c.at = path.Join(f.base, name), time.Now()
	var replaced *node
	if c.to != nil {
		replaced = c.to.names[c.toName]
	}
	before := c.node.cost() + replaced.cost()
	c.apply()
	f.d.used += c.node.cost() + replaced.cost() - before
	if f.d.trace != nil {
		f.d.trace.add(c)
	}
}

func (d *disk) opened(key any, path string, n *node) {
	d.open[key] = handle{path, n}
	n.handles++
}

func (d *disk) closed(key any) {
	if h, ok := d.open[key]; ok {
		delete(d.open, key)
		before := h.node.cost()
		h.node.handles--
		d.used += h.node.cost() - before
	}
}

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
			return nil, "", syscall.ENOTDIR
		}
	}
	return n, parts[len(parts)-1], nil
}

// findNew is find for a name that is to be made.
func (f *FS) findNew(name string) (parent *node, last string, err error) {
	parent, last, err = f.find(name)
	switch {
	case err != nil:
	case last == "":
		err = fs.ErrExist
	case parent.links == 0:
		err = fs.ErrNotExist // the folder of a Sub was removed
	}
	return parent, last, err
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

func (f *FS) lookupDir(name string) (*node, error) {
	n, err := f.lookup(name)
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	return n, err
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

const accessMode = os.O_RDONLY | os.O_WRONLY | os.O_RDWR

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
	n, err := f.openNode(name, flag, perm)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	h := &file{fs: f, n: n, name: name, flag: flag}
	f.d.opened(h, path.Join(f.base, name), n)
	return h, nil
}

func (f *FS) openNode(name string, flag int, perm fs.FileMode) (*node, error) {
	n, err := f.lookup(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0:
		return f.makeNode("create", name, newFile(perm, time.Now()))
	case err != nil:
		return nil, err
	case flag&os.O_EXCL != 0 && flag&os.O_CREATE != 0:
		return nil, fs.ErrExist
	case n.dir && flag&(accessMode|os.O_CREATE|os.O_TRUNC) != 0:
		return nil, syscall.EISDIR
	case flag&os.O_TRUNC != 0 && n.now.size > 0:
		f.do(change{Step: Step{Op: "truncate"}, node: n}, name)
	}
	return n, nil
}

func (f *FS) makeNode(op, name string, n *node) (*node, error) {
	parent, last, err := f.findNew(name)
	if err == nil && parent.names[last] != nil {
		err = fs.ErrExist
	}
	if err == nil && f.d.free() < nodeCost {
		err = syscall.ENOSPC
	}
	if err != nil {
		return nil, err
	}
	f.do(change{Step: Step{Op: op}, node: n, dir: parent, name: last}, name)
	return n, nil
}

// Mkdir implements vfs.FS.
func (f *FS) Mkdir(name string, perm fs.FileMode) error {
	err := f.begin("mkdir", name)
	defer f.end()
	if err != nil {
		return err
	}
	_, err = f.makeNode("mkdir", name, newDir(perm, time.Now()))
	return pathError("mkdir", name, err)
}

// Rename implements vfs.FS. As on Unix, a file replaces a file and a folder replaces an empty folder.
func (f *FS) Rename(oldName, newName string) error { return f.rename(oldName, f, newName) }

// RenameTo implements vfs.FS.
func (f *FS) RenameTo(oldName string, to vfs.FS, newName string) error {
	target, ok := to.(*FS)
	if !ok || target.d != f.d || strings.Contains(oldName+newName, "/") {
		return pathError("rename", newName, fs.ErrInvalid)
	}
	return f.rename(oldName, target, newName)
}

func (f *FS) rename(oldName string, target *FS, newName string) error {
	err := f.begin("rename", oldName)
	defer f.end()
	if err != nil {
		return err
	}
	from, old, err := f.find(oldName)
	if err != nil {
		return pathError("rename", oldName, err)
	}
	to, last, err := target.findNew(newName)
	if err != nil {
		return pathError("rename", newName, err)
	}
	n, replaced := from.names[old], to.names[last]
	switch {
	case old == "":
		err = fs.ErrInvalid
	case n == nil:
		return pathError("rename", oldName, fs.ErrNotExist)
	case n == replaced:
		return nil
	case n.dir && (n == to || strings.HasPrefix(path.Join(target.base, newName), path.Join(f.base, oldName)+"/")):
		err = syscall.EINVAL
	case replaced == nil:
	case replaced.dir && !n.dir:
		err = syscall.EISDIR
	case n.dir && !replaced.dir:
		err = syscall.ENOTDIR
	case len(replaced.names) > 0:
		err = syscall.ENOTEMPTY
	}
	if err != nil {
		return pathError("rename", newName, err)
	}
	f.do(change{Step: Step{Op: "rename", To: path.Join(target.base, newName)}, node: n, dir: from, name: old, to: to, toName: last}, oldName)
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
	case last == "":
		err = fs.ErrInvalid
	case parent.names[last] == nil:
		err = fs.ErrNotExist
	case len(parent.names[last].names) > 0:
		err = syscall.ENOTEMPTY
	default:
		f.do(change{Step: Step{Op: "remove"}, node: parent.names[last], dir: parent, name: last}, name)
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

// Readlink implements vfs.FS: there are no symbolic links here.
func (f *FS) Readlink(name string) (string, error) {
	return "", pathError("readlink", name, fs.ErrInvalid)
}

// ReadDir implements vfs.FS.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	err := f.begin("readdir", name)
	defer f.end()
	if err != nil {
		return nil, err
	}
	n, err := f.lookupDir(name)
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

// SyncDir implements vfs.FS. One that fails changes nothing: the names are still to be written.
func (f *FS) SyncDir(name string) error {
	err := f.begin("syncdir", name)
	defer f.end()
	if err != nil {
		return err
	}
	n, err := f.lookupDir(name)
	if err != nil {
		return pathError("syncdir", name, err)
	}
	f.do(change{Step: Step{Op: "syncdir"}, node: n}, name)
	return nil
}

// Lock implements vfs.FS.
func (f *FS) Lock(name string) (io.Closer, error) {
	opened, err := f.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	h := opened.(*file)
	err = f.begin("lock", name)
	defer f.end()
	defer f.d.closed(h)
	if err == nil && f.d.locks[h.n] {
		err = pathError("lock", name, vfs.ErrLocked)
	}
	if err != nil {
		return nil, err
	}
	l := &lock{f.d, h.n}
	f.d.locks[h.n] = true
	f.d.opened(l, path.Join(f.base, name), h.n)
	return l, nil
}

type lock struct {
	d *disk
	n *node
}

func (l *lock) Close() error {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	if _, held := l.d.open[l]; held {
		delete(l.d.locks, l.n)
		l.d.closed(l)
	}
	return nil
}

// Sub implements vfs.FS. Calls below it count on the same disk and are named from its root.
func (f *FS) Sub(name string) (vfs.FS, error) {
	err := f.begin("open", name)
	defer f.end()
	if err != nil {
		return nil, err
	}
	n, err := f.lookupDir(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	sub := &FS{d: f.d, root: n, base: path.Join(f.base, name)}
	f.d.opened(sub, sub.base+"/", n)
	return sub, nil
}

// Close implements io.Closer. A folder opened by Sub then refuses calls; the disk itself does not care.
func (f *FS) Close() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.closed(f)
	return nil
}

// Flip inverts one bit of a file, current and durable, as rotting hardware does. A trace shows it as a step of its own.
func (f *FS) Flip(name string, offset int, bit uint) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	n, err := f.lookup(name)
	if err != nil {
		panic(fmt.Sprintf("flip %s: %v", name, err))
	}
	f.do(change{Step: Step{Op: "flip", Offset: int64(offset), Size: 1}, node: n, flip: 1 << bit}, name)
}

func (n *node) info(name string) fs.FileInfo {
	return info{name: name, size: n.now.size, mode: n.mode, modified: n.modified}
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
