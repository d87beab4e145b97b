// Package grant keeps which files outside of a space may be read for it. A grant is of one exact file; only a learner gives one, through a front end.
//
// Guarantees: a grant that was given survives kill -9 and power loss. It holds only as long as the path itself leads to a regular file: when the path or a
// folder on the way became a symbolic link, nothing is read. Concurrency: Grants is safe for concurrent use.
//
// # grants.json, version 1
//
//	{"format": "repa.grants", "version": 1, "reads": [{"spaceId": id, "file": absolute path}]}
//
// It lies in the application's folder of settings, not in the space: a space that was handed on reads nothing. A damaged or newer file is left as it is, and
// no grant holds until it is repaired.
package grant

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/repa-app/repa/cas/vfs"
)

const (
	file    = "grants.json"
	format  = "repa.grants"
	version = 1
	// maxFile bounds the file: about ten thousand grants.
	maxFile = 4 << 20
)

// Errors of this package.
var (
	// ErrNone: the file was not granted.
	ErrNone = errors.New("the file was not granted")
	// ErrMoved: the path leads through a symbolic link now, or to something else than a file.
	ErrMoved = errors.New("the path is no plain file any more")
)

type read struct {
	SpaceID string `json:"spaceId"`
	File    string `json:"file"`
}

type record struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Reads   []read `json:"reads"`
}

// Grants are the grants of an application.
type Grants struct {
	dir string

	mu sync.Mutex
}

// New keeps grants in a folder, which is made when there is one to keep.
func New(dir string) *Grants { return &Grants{dir: dir} }

func (g *Grants) load() (record, error) {
	r := record{Format: format, Version: version, Reads: []read{}}
	folder, err := vfs.OS(g.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("read %s: %w", file, err)
	}
	defer folder.Close()
	data, err := vfs.ReadFile(folder, file, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("read %s: %w", file, err)
	}
	if err := json.Unmarshal(data, &r); err != nil || r.Format != format || r.Version != version {
		return r, fmt.Errorf("%s is damaged or of a newer version of Repa; it was left as it is", file)
	}
	return r, nil
}

// Allow grants a space the reading of a file. Errors: ErrMoved for what is no plain file, fs.ErrNotExist, errors of the disk.
func (g *Grants) Allow(space, name string) error {
	name = filepath.Clean(name)
	f, err := open(name)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	r, err := g.load()
	if err != nil || slices.Contains(r.Reads, read{space, name}) {
		return err
	}
	r.Reads = append(r.Reads, read{space, name})
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(g.dir, 0o700); err != nil {
		return err
	}
	folder, err := vfs.OS(g.dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	return vfs.WriteFile(folder, file, append(data, '\n'), 0o600)
}

// Open opens a granted file. Errors: ErrNone, ErrMoved, fs.ErrNotExist while the file is away, errors of the disk.
func (g *Grants) Open(space, name string) (vfs.File, error) {
	name = filepath.Clean(name)
	g.mu.Lock()
	r, err := g.load()
	g.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(r.Reads, read{space, name}) {
		return nil, ErrNone
	}
	return open(name)
}

// open opens a plain file whose path has no symbolic link.
func open(name string) (vfs.File, error) {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil, err
	}
	if real != name {
		return nil, fmt.Errorf("%s: %w", name, ErrMoved)
	}
	folder, err := vfs.OS(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	base := filepath.Base(name)
	seen, err := folder.Lstat(base)
	if err != nil {
		return nil, err
	}
	if !seen.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", name, ErrMoved)
	}
	return folder.OpenFile(base, 0, 0)
}
