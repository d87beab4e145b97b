package watch

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/repa-app/repa/cas/vfs"
)

// entry is what was seen of a file or folder.
type entry struct {
	name   string
	folder bool
	size   int64
	mtime  int64 // ns since 1970
	inode  uint64
}

// Tree is the table of one space. Its methods are safe for concurrent use.
type Tree struct {
	root vfs.FS

	mu      sync.Mutex
	folders map[string][]entry // by path, entries by name
	seen    int64              // ns since 1970: when the last complete scan began
	files   int
}

// NewTree is the tree of a folder of which nothing is known yet.
func NewTree(root vfs.FS) *Tree { return &Tree{root: root, folders: map[string][]entry{}} }

// Known reports whether the tree was ever complete: before, everything is new and nothing is a change.
func (t *Tree) Known() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen != 0
}

// Files and Folders count what is in the table.
func (t *Tree) Files() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.files
}

// Folders lists the folders of the table, "." first.
func (t *Tree) Folders() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]string, 0, len(t.folders))
	for name := range t.folders {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Found is what a look at the disk shows: paths that are not as they were, and paths that look as they did but were written so shortly before the last look
// that their time would not tell another write.
type Found struct{ Changed, Fresh []string }

func (f *Found) add(other Found) {
	f.Changed, f.Fresh = append(f.Changed, other.Changed...), append(f.Fresh, other.Fresh...)
}

func (f *Found) sort() {
	slices.Sort(f.Changed)
	slices.Sort(f.Fresh)
	f.Changed, f.Fresh = slices.Compact(f.Changed), slices.Compact(f.Fresh)
}

// grain is how exact modification times are at worst: FAT keeps two seconds.
const grain = int64(2 * time.Second)

// skipped are folders whose files nobody wrote by hand.
func skipped(name string) bool {
	return name == ".git" || name == "node_modules" || strings.EqualFold(name, ".repa") ||
		strings.HasPrefix(name, ".repa-") && strings.HasSuffix(name, ".tmp")
}

// Scan compares the whole table with the disk, makes it true, and returns the paths that are not as they were: files, and folders that came or
// went. A tree that is not known finds everything changed. enter, when not nil, is called with each folder before it is read, so that no notice of what happens in it later is missed. Errors: that of
// ctx, and of the disk for the space's own folder; a folder below that cannot be read is left as it was.
func (t *Tree) Scan(ctx context.Context, enter func(folder string)) (Found, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	began := time.Now().UnixNano()
	root, err := t.root.Sub(".")
	if err != nil {
		return Found{}, err
	}
	s := &scan{tree: t, ctx: ctx, enter: enter, next: make(map[string][]entry, len(t.folders))}
	err = s.folder(root, ".")
	if err = errors.Join(err, root.Close()); err != nil {
		return Found{}, err
	}
	for name, entries := range t.folders { // what is gone, with everything below
		if _, still := s.next[name]; !still {
			for _, e := range entries {
				if !e.folder {
					s.found.Changed = append(s.found.Changed, path.Join(name, e.name))
				}
			}
		}
	}
	t.folders, t.files = s.next, s.files
	if t.seen = began; t.seen == 0 {
		t.seen = 1
	}
	s.found.sort()
	return s.found, nil
}

// scan is one pass over a folder and what is below it.
type scan struct {
	tree  *Tree
	ctx   context.Context
	enter func(string)
	next  map[string][]entry
	files int
	found Found
}

// folder scans an open folder, which stands at name.
func (s *scan) folder(open vfs.FS, name string) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if s.enter != nil {
		s.enter(name)
	}
	list, err := open.ReadDir(".")
	if err != nil {
		if name == "." {
			return err
		}
		s.keep(name)
		return nil
	}
	old := s.tree.folders[name]
	entries := make([]entry, 0, len(list))
	var below []string
	for _, d := range list {
		if skipped(d.Name()) || !d.IsDir() && !d.Type().IsRegular() {
			continue
		}
		info, err := open.Lstat(d.Name())
		if err != nil {
			continue // gone again
		}
		e := entryOf(d.Name(), info)
		if e.folder {
			below = append(below, e.name)
		} else {
			s.files++
		}
		entries = append(entries, e)
		was, known := find(old, e.name)
		switch {
		case !known, was != e:
			s.found.Changed = append(s.found.Changed, path.Join(name, e.name))
		case !e.folder && s.tree.seen != 0 && e.mtime >= s.tree.seen-grain:
			s.found.Fresh = append(s.found.Fresh, path.Join(name, e.name))
		}
	}
	for _, was := range old {
		if _, still := find(entries, was.name); !still {
			s.found.Changed = append(s.found.Changed, path.Join(name, was.name))
		}
	}
	s.next[name] = entries
	for _, b := range below {
		sub, err := open.Sub(b)
		if err != nil {
			s.keep(path.Join(name, b))
			continue
		}
		err = s.folder(sub, path.Join(name, b))
		if err = errors.Join(err, sub.Close()); err != nil {
			return err
		}
	}
	return nil
}

// keep leaves a folder that cannot be read, with what is below it, as it was known.
func (s *scan) keep(name string) {
	for folder, entries := range s.tree.folders {
		if folder == name || strings.HasPrefix(folder, name+"/") {
			s.next[folder] = entries
			for _, e := range entries {
				if !e.folder {
					s.files++
				}
			}
		}
	}
}

func entryOf(name string, info fs.FileInfo) entry {
	return entry{name: name, folder: info.IsDir(), size: sizeOf(info), mtime: mtimeOf(info), inode: inodeOf(info)}
}

// A folder's own size and time say nothing that its entries do not.
func sizeOf(info fs.FileInfo) int64 {
	if info.IsDir() {
		return 0
	}
	return info.Size()
}

func mtimeOf(info fs.FileInfo) int64 {
	if info.IsDir() {
		return 0
	}
	return info.ModTime().UnixNano()
}

func find(entries []entry, name string) (entry, bool) {
	i, ok := slices.BinarySearchFunc(entries, name, func(e entry, name string) int { return strings.Compare(e.name, name) })
	if !ok {
		return entry{}, false
	}
	return entries[i], true
}

// Look compares one path with the disk, makes the table true there, and returns what is not as it was: the path itself, or for a folder that came or
// went everything below it. enter is as for Scan, for folders that are new.
func (t *Tree) Look(ctx context.Context, name string, enter func(folder string)) (Found, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for part := range strings.SplitSeq(name, "/") {
		if skipped(part) {
			return Found{}, nil
		}
	}
	for name != "." { // of a folder that is not known the one above it tells
		parent := path.Dir(name)
		if _, known := t.folders[parent]; known {
			return t.lookAt(ctx, parent, path.Base(name), enter)
		}
		name = parent
	}
	return Found{}, nil
}

func (t *Tree) lookAt(ctx context.Context, folder, base string, enter func(string)) (found Found, err error) {
	name := path.Join(folder, base)
	entries := t.folders[folder]
	at, known := slices.BinarySearchFunc(entries, base, func(e entry, name string) int { return strings.Compare(e.name, name) })
	info, err := t.root.Lstat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Found{}, err
	}
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		if known {
			found.Changed = append(t.forget(name, entries[at]), name)
			t.folders[folder] = slices.Delete(slices.Clone(entries), at, at+1)
		}
		return found, nil
	}
	e := entryOf(base, info)
	if known && entries[at] == e {
		if !e.folder {
			found.Fresh = []string{name} // somebody said so: its time may be too coarse to tell
		}
		return found, nil
	}
	if known {
		found.Changed = t.forget(name, entries[at])
		entries = slices.Clone(entries)
		entries[at] = e
	} else {
		entries = slices.Insert(slices.Clone(entries), at, e)
	}
	t.folders[folder] = entries
	found.Changed = append(found.Changed, name)
	if !e.folder {
		t.files++
		return found, nil
	}
	open, err := t.root.Sub(name)
	if err != nil {
		return found, nil // gone again: its own notice follows
	}
	s := &scan{tree: t, ctx: ctx, enter: enter, next: map[string][]entry{}}
	err = errors.Join(s.folder(open, name), open.Close())
	for f, list := range s.next {
		t.folders[f] = list
	}
	t.files += s.files
	found.add(s.found)
	return found, err
}

// forget takes an entry out of the counts, and a folder with everything below out of the table; it returns the files that were below.
func (t *Tree) forget(name string, e entry) (gone []string) {
	if !e.folder {
		t.files--
		return nil
	}
	for folder, entries := range t.folders {
		if folder != name && !strings.HasPrefix(folder, name+"/") {
			continue
		}
		for _, below := range entries {
			if !below.folder {
				t.files--
				gone = append(gone, path.Join(folder, below.name))
			}
		}
		delete(t.folders, folder)
	}
	return gone
}
