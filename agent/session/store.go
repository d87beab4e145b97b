package session

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/repa-app/repa/cas/vfs"
)

const (
	version = 3

	// maxFile bounds what Open takes into memory: an open session holds its whole file. The longest known sessions have 128 MB.
	maxFile = 1 << 30

	// maxID keeps the file's name within what every file system takes.
	maxID = 128

	// ISO 8601 with milliseconds in UTC, as JavaScript writes it.
	isoTime = "2006-01-02T15:04:05.000Z"
)

// Source gives a store its time and chance. Zero fields mean the system's.
type Source struct {
	Now  func() time.Time
	Rand io.Reader // must not fail
}

func (s Source) withDefaults() Source {
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Rand == nil {
		s.Rand = rand.Reader
	}
	return s
}

func (s Source) random(n int) []byte {
	b := make([]byte, n)
	if _, err := io.ReadFull(s.Rand, b); err != nil {
		panic("session: random source failed: " + err.Error())
	}
	return b
}

// newID makes a UUIDv7.
func (s Source) newID() string {
	b := s.random(16)
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(s.Now().UnixMilli()))
	copy(b, ms[2:])
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	return formatUUID(b)
}

func formatUUID(b []byte) string {
	h := hex.EncodeToString(b)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// Options describe a new session.
type Options struct {
	ID            string // "": a new UUIDv7
	CWD           string
	ParentSession string // path of the file that this one is forked from; "" for none
	Source
}

// validID is Pi's rule for session ids; they are part of a file name, hence the length.
func validID(id string) bool {
	alphanumeric := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }
	for _, c := range []byte(id) {
		if !alphanumeric(c) && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return len(id) > 0 && len(id) <= maxID && alphanumeric(id[0]) && alphanumeric(id[len(id)-1])
}

// Damage is a line of the file that is no entry, or one that hides another. It stays in the file as it is.
type Damage struct {
	Line   int   // from 1
	Offset int64 // of its first byte
	Reason string
}

// Store is one open session file with one owner. Snapshot may be called from any goroutine, everything else by the owner only.
type Store struct {
	src    Source
	file   vfs.File
	name   string
	header Header

	size    int64 // of the file up to the last byte known to be durable
	lines   int
	open    bool  // the file does not end with a line feed
	refuse  error // why nothing can be appended any more
	byID    map[string]*Entry
	damage  []Damage
	current atomic.Pointer[Snapshot]
}

// Create makes a new session file in fsys and opens it. It fails when the id is not usable, when the file exists, or when the
// header cannot be made durable; then no file is left behind if the disk allows.
func Create(fsys vfs.FS, opts Options) (*Store, error) {
	opts.Source = opts.withDefaults()
	if opts.ID == "" {
		opts.ID = opts.newID()
	}
	if !validID(opts.ID) {
		return nil, &Error{"invalid_input", fmt.Sprintf("session id %q is not usable: use up to 128 letters, digits, '.', '_' and '-', beginning and ending with a letter or digit", opts.ID)}
	}
	now := opts.Now().UTC().Format(isoTime)
	line, err := encodeHeader(opts, now)
	if err != nil {
		return nil, err
	}
	name := strings.NewReplacer(":", "-", ".", "-").Replace(now) + "_" + opts.ID + ".jsonl"
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, diskError(err, "create session %s", name)
	}
	if err = writeHeader(fsys, f, line); err != nil {
		return nil, diskError(errors.Join(err, f.Close(), fsys.Remove(name)), "create session %s", name)
	}
	return load(f, name, line, opts.Source)
}

func writeHeader(fsys vfs.FS, f vfs.File, line string) error {
	if _, err := f.WriteAt([]byte(line), 0); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return fsys.SyncDir(".")
}

// Open reads a session file and makes what it read durable. A file that is no session, has another format version or cannot be
// read is refused with ErrNotSession, ErrOldVersion, ErrNewVersion, ErrTooLarge or a storage error, and left untouched.
func Open(fsys vfs.FS, name string, src Source) (*Store, error) {
	f, err := fsys.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, diskError(err, "open session %s", name)
	}
	content, err := readAll(f)
	if err == nil {
		var s *Store
		if s, err = load(f, name, content, src.withDefaults()); err == nil {
			// A crash may have left lines that were written but never synced; they are history from now on.
			if err = errors.Join(f.Sync(), fsys.SyncDir(path.Dir(name))); err == nil {
				return s, nil
			}
		}
	}
	if cerr := f.Close(); cerr != nil {
		err = errors.Join(err, cerr)
	}
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		return nil, fmt.Errorf("open session %s: %w", name, err)
	}
	return nil, diskError(err, "open session %s", name)
}

func readAll(f vfs.File) (string, error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		return "", vfs.ErrIsDir
	}
	if info.Size() > maxFile {
		return "", ErrTooLarge
	}
	var b strings.Builder
	b.Grow(int(info.Size()))
	_, err = io.CopyBuffer(struct{ io.Writer }{&b}, io.LimitReader(f, info.Size()), make([]byte, 256<<10)) // large enough that calls cost nothing
	return b.String(), err
}

// load builds a store from the content of its file.
func load(f vfs.File, name, content string, src Source) (*Store, error) {
	s := &Store{src: src, file: f, name: name, size: int64(len(content)), byID: map[string]*Entry{}}
	entries, err := s.read(content)
	if err != nil {
		return nil, err
	}
	title := ""
	var leaf *Entry
	for _, e := range entries {
		e.parent = s.byID[e.ParentID]
		if e.cut = e.cut || e.parent != nil && e.parent.cut; !e.cut {
			leaf = e
		}
		if e.Type == TypeSessionInfo {
			title = nameOf(e)
		}
	}
	var branch []*Entry
	if n := len(entries); n > 0 {
		if leaf == nil {
			leaf = entries[n-1]
		}
		branch = pathTo(leaf, n)
	}
	s.current.Store(project(s.header, title, entries, branch))
	return s, nil
}

// read splits the content into header, entries and damage.
func (s *Store) read(content string) ([]*Entry, error) {
	count := strings.Count(content, "\n") + 1
	entries := make([]*Entry, 0, count)
	s.byID = make(map[string]*Entry, count)
	found, lost := false, false             // lost: the lines since the last entry have bytes that never reached the disk
	slab := make([]Entry, min(count, 1024)) // one allocation for many entries
	for offset := 0; offset < len(content); {
		line := content[offset:]
		end := strings.IndexByte(line, '\n')
		s.open = end < 0
		if end >= 0 {
			line = line[:end]
		}
		at := int64(offset)
		offset += len(line) + 1
		s.lines++
		if strings.TrimSpace(line) == "" {
			continue
		}
		if !found {
			h, err := parseHeader(line)
			switch {
			case err == nil:
				if err := checkVersion(h.Version); err != nil {
					return nil, err
				}
				s.header, found = h, true
			case isJSON(line):
				return nil, err
			default:
				s.damage = append(s.damage, Damage{s.lines, at, "not a JSON object"})
			}
			continue
		}
		if len(slab) == 0 {
			slab = make([]Entry, 1024)
		}
		e := &slab[0]
		if reason := parseEntry(line, e); reason != "" {
			if s.open {
				reason = "an incomplete last line"
			}
			s.damage = append(s.damage, Damage{s.lines, at, reason})
			lost = lost || strings.IndexByte(line, 0) >= 0
			*e = Entry{}
			continue
		}
		slab = slab[1:]
		e.Line = s.lines
		if other := s.byID[e.ID]; other != nil {
			s.damage = append(s.damage, Damage{s.lines, at, fmt.Sprintf("an id that line %d has already; the later entry counts", other.Line)})
		}
		e.cut = lost && e.ParentID != "" && s.byID[e.ParentID] == nil
		lost = false
		s.byID[e.ID] = e
		entries = append(entries, e)
	}
	if !found {
		return nil, ErrNotSession
	}
	return entries, nil
}

func isJSON(line string) bool {
	p := scanner{s: line}
	p.space()
	ok := p.value(0)
	p.space()
	return ok && p.i == len(line)
}

// Name is the file's name in its folder.
func (s *Store) Name() string { return s.name }

// Damage lists what was wrong with the file when it was opened.
func (s *Store) Damage() []Damage { return slices.Clone(s.damage) }

// Snapshot is the session after the last successful append.
func (s *Store) Snapshot() *Snapshot { return s.current.Load() }

// At is the session as it would be with another entry as its leaf; false when the file has no such entry.
func (s *Store) At(id string) (*Snapshot, bool) {
	e := s.byID[id]
	if e == nil {
		return nil, false
	}
	now := s.Snapshot()
	return project(s.header, now.Name, now.Entries, pathTo(e, len(now.Entries))), true
}

// Close closes the file. Snapshots stay usable.
func (s *Store) Close() error {
	s.refuse = ErrClosed
	return s.file.Close()
}
