package space

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/space/content"
	"github.com/repa-app/repa/space/internal/fault"
)

// MetaFolder is the sub-folder of a space that belongs to Repa.
const MetaFolder = ".repa"

// StoreFolder is where the space's store lies, in MetaFolder.
const StoreFolder = "cas"

const (
	identityFormat  = "repa.space"
	identityVersion = 1
	// maxIdentity bounds space.json and owner.json: they hold a few short members.
	maxIdentity = 64 << 10
)

// Options of Open.
type Options struct {
	NewID func() string // mints ids of [A-Za-z0-9_-]{1,128}
	Owner Owner         // who opens, for the message that a second opener gets
	Store cas.Options   // of the space's store; its disk is the space's own, whatever FS says
	Now   func() time.Time
	Log   *slog.Logger // nil: nothing is logged
	// Grants says which files outside may be read; nil: none.
	Grants content.Grants
}

// Owner says who has a space open. It is information for people; the lock alone decides.
type Owner struct {
	PID            int    `json:"pid"`
	ConnectionFile string `json:"connectionFile,omitempty"`
}

// Space is an open space.
type Space struct {
	id   string
	path string
	root vfs.FS // the learner's folder
	meta vfs.FS // .repa
	own  fs.FileInfo
	lock io.Closer
	newI func() string

	storeFS vfs.FS
	store   *cas.Store
	content *content.Engine
}

type identity struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	ID      string `json:"id"`
}

// maxID is how long an id may be, as everywhere in Repa.
const maxID = 128

func validID(id string) bool {
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return len(id) > 0 && len(id) <= maxID
}

// Open opens the folder dir, an absolute path, as a space. A missing folder is made, and .repa inside it on first contact.
//
// Errors (codes): invalid_path for the file system's root and the home folder, not_directory, permission_denied, space_in_use
// when another process has it open, invalid_storage when space.json is damaged or newer (the file stays as it is),
// content_format_unavailable when its store is newer, storage.
func Open(ctx context.Context, dir string, opts Options) (*Space, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path, err := Resolve(dir)
	if err != nil {
		return nil, err
	}
	root, err := openFolder(path)
	if err != nil {
		return nil, err
	}
	s := &Space{path: path, root: root, newI: opts.NewID}
	err = s.prepare(opts)
	if err == nil {
		err = s.openStore(ctx, opts.Store)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s.content = content.New(content.Options{SpaceID: s.id, Path: path, Root: root, Own: s.own, Store: s.store, NewID: opts.NewID, Now: opts.Now, Log: opts.Log,
		Grants: opts.Grants})
	return s, nil
}

// Resolve returns the real path of a folder that is to be a space, following symbolic links; a missing folder keeps its name.
// It refuses with invalid_path what must not become a space: relative paths, the file system's root and the home folder.
func Resolve(dir string) (string, error) {
	if !filepath.IsAbs(dir) {
		return "", fail("invalid_path", "%q is no absolute path", dir)
	}
	path := filepath.Clean(dir)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if filepath.Dir(path) == path {
		return "", fail("invalid_path", "%s is the root of the file system and cannot be a learning space; choose a folder for what you learn", path)
	}
	if home, err := os.UserHomeDir(); err == nil {
		if real, err := filepath.EvalSymlinks(home); err == nil {
			home = real
		}
		if path == filepath.Clean(home) {
			return "", fail("invalid_path", "%s is your home folder and cannot be a learning space; choose or make a folder inside it", path)
		}
	}
	return path, nil
}

func openFolder(path string) (vfs.FS, error) {
	root, err := vfs.OS(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeFolder(path); err != nil {
			return nil, diskError("folder "+path, err)
		}
		root, err = vfs.OS(path)
	}
	if err == nil {
		return root, nil
	}
	if info, serr := os.Stat(path); serr == nil && !info.IsDir() {
		return nil, fail("not_directory", "%s is a file, not a folder; a learning space is a folder", path)
	}
	return nil, diskError("folder "+path, err)
}

func makeFolder(path string) error {
	parent := filepath.Dir(path)
	for {
		if _, err := os.Stat(parent); err == nil || filepath.Dir(parent) == parent {
			break
		}
		parent = filepath.Dir(parent)
	}
	above, err := vfs.OS(parent)
	if err != nil {
		return err
	}
	defer above.Close()
	rel, err := filepath.Rel(parent, path)
	if err != nil {
		return err
	}
	return vfs.MkdirAll(above, filepath.ToSlash(rel), 0o700)
}

func (s *Space) prepare(opts Options) error {
	err := s.root.Mkdir(MetaFolder, 0o700)
	if err == nil {
		err = s.root.SyncDir(".")
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return diskError("folder "+filepath.Join(s.path, MetaFolder), err)
	}
	if s.own, err = s.root.Lstat(MetaFolder); err != nil {
		return diskError("folder "+filepath.Join(s.path, MetaFolder), err)
	}
	if !s.own.IsDir() {
		return fail("invalid_storage", "%s is not a folder; Repa keeps its data there. Move it away and try again", filepath.Join(s.path, MetaFolder))
	}
	if s.meta, err = s.root.Sub(MetaFolder); err != nil {
		return diskError("folder "+filepath.Join(s.path, MetaFolder), err)
	}
	if s.lock, err = s.meta.Lock("lock"); err != nil {
		if errors.Is(err, vfs.ErrLocked) {
			return s.inUse()
		}
		return diskError("lock of "+s.path, err)
	}
	if err := s.identify(); err != nil {
		return err
	}
	owner, err := json.Marshal(opts.Owner)
	if err != nil {
		return err
	}
	if err := vfs.PublishFile(s.meta, "owner.json", append(owner, '\n'), 0o600); err != nil {
		return diskError("owner.json of "+s.path, err)
	}
	return s.makeFolders()
}

// makeFolders makes the folders of .repa, and their names durable. A kill may have come between the two; the store makes its own first folder
// after both, so whether that is there tells.
func (s *Space) makeFolders() error {
	_, err := s.meta.Stat(StoreFolder + "/packs")
	made := err != nil
	for _, dir := range []string{"journal", "sessions", StoreFolder} {
		err := s.meta.Mkdir(dir, 0o700)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return diskError("folder "+filepath.Join(s.path, MetaFolder, dir), err)
		}
		made = made || err == nil
	}
	if made {
		if err := s.meta.SyncDir("."); err != nil {
			return diskError("folder "+filepath.Join(s.path, MetaFolder), err)
		}
	}
	return nil
}

func (s *Space) openStore(ctx context.Context, opts cas.Options) (err error) {
	dir := filepath.Join(s.path, MetaFolder, StoreFolder)
	if s.storeFS, err = s.meta.Sub(StoreFolder); err != nil {
		return diskError("folder "+dir, err)
	}
	opts.FS, opts.ReadOnly = s.storeFS, false
	s.store, err = cas.Open(ctx, dir, opts)
	if err == nil || ctx.Err() != nil {
		return err
	}
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		return fault.Wrap(coded.Code(), fmt.Sprintf("%s cannot be opened: %v. Nothing was changed", s.path, err), err)
	}
	return diskError("store "+dir, err)
}

func (s *Space) inUse() error {
	e := fail("space_in_use", "%s is open in another Repa backend; close it there or use that one", s.path)
	var owner Owner
	if data, err := vfs.ReadFile(s.meta, "owner.json", maxIdentity); err == nil && json.Unmarshal(data, &owner) == nil {
		e = fail("space_in_use", "%s is open in another Repa backend (process %d); close it there or use that one", s.path, owner.PID).
			With(map[string]any{"pid": owner.PID, "connectionFile": owner.ConnectionFile})
	}
	return e
}

// identify reads the space's id, or mints one for a folder that has none.
func (s *Space) identify() error {
	file := filepath.Join(s.path, MetaFolder, "space.json")
	data, err := vfs.ReadFile(s.meta, "space.json", maxIdentity)
	if errors.Is(err, fs.ErrNotExist) {
		s.id = s.newI()
		data, err := json.Marshal(identity{identityFormat, identityVersion, s.id})
		if err != nil {
			return err
		}
		if err := vfs.WriteFile(s.meta, "space.json", append(data, '\n'), 0o600); err != nil {
			return diskError(file, err)
		}
		return nil
	}
	if err != nil {
		return diskError(file, err)
	}
	var id identity
	if err := json.Unmarshal(data, &id); err != nil || id.Format != identityFormat || !validID(id.ID) {
		return fail("invalid_storage", "%s is damaged; it was left as it is. Restore it from a backup", file)
	}
	if id.Version > identityVersion {
		return fail("invalid_storage", "%s has format %d, this version of Repa reads up to %d; use the newer version of Repa", file, id.Version, identityVersion)
	}
	s.id = id.ID
	return nil
}

// ID returns the space's identity.
func (s *Space) ID() string { return s.id }

// Path returns the real path of the folder at the time it was opened.
func (s *Space) Path() string { return s.path }

// Meta opens a folder below .repa as a tree of its own; it must exist (journal and sessions do).
func (s *Space) Meta(dir string) (vfs.FS, error) { return s.meta.Sub(dir) }

// Root returns the learner's folder; it is open as long as the space is.
func (s *Space) Root() vfs.FS { return s.root }

// Cache opens a folder below .repa whose content can be made again; a new one gets a CACHEDIR.TAG with the text tag. The caller closes it.
func (s *Space) Cache(dir, tag string) (vfs.FS, error) {
	err := s.meta.Mkdir(dir, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	folder, serr := s.meta.Sub(dir)
	if serr == nil && err == nil {
		serr = vfs.PublishFile(folder, "CACHEDIR.TAG", []byte(tag), 0o600)
	}
	return folder, serr
}

// Store returns the space's content-addressed store. It is open as long as the space is.
func (s *Space) Store() *cas.Store { return s.store }

// Content returns what works on the space's files. Whoever opened the space replays the journal into it and starts it before it is used.
func (s *Space) Content() *content.Engine { return s.content }

// Close closes the store and releases the lock. Content operations after it fail.
func (s *Space) Close() error {
	var errs []error
	if s.content != nil {
		errs = append(errs, s.content.Close())
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	for _, c := range []io.Closer{s.storeFS, s.lock, s.meta, s.root} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}
