package space

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"
	"unicode/utf8"

	udiff "github.com/aymanbagabas/go-udiff"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/space/search"
)

// maxDocument bounds a document that is read or written whole: far above any note, small enough to hold several in memory.
const maxDocument = 16 << 20

// bom is the UTF-8 byte order mark; it is no part of a document's text and stays where it is.
var bom = []byte("\xef\xbb\xbf")

// Document is a text file of the space as it was read.
type Document struct {
	Path     string // slash-separated, below the space
	Text     string
	Revision string // cas.Sum of the bytes on disk
	Size     int64  // of the bytes on disk
}

// Change is one finished content operation on one file.
type Change struct {
	OperationID string
	Path        string
	Before      *string // revision; nil: the file was made
	After       *string
	Diff        string // unified
}

// Edit replaces one place of a text.
type Edit struct{ Old, New string }

// Read reads a text file. Errors (codes): invalid_path, not_found, permission_denied, content_limit above 16 MiB,
// unsupported_format for what is no UTF-8 text.
func (s *Space) Read(ctx context.Context, name string) (Document, error) {
	name, err := s.cleanPath(name)
	if err != nil {
		return Document{}, err
	}
	folder, base, err := s.folder(name, false)
	if err != nil {
		return Document{}, err
	}
	defer folder.Close()
	data, _, err := readIn(ctx, folder, base, name)
	if err != nil {
		return Document{}, err
	}
	text := bytes.TrimPrefix(data, bom)
	if !isText(text) {
		return Document{}, fail("unsupported_format", "%s is not UTF-8 text; only text can be read here", name)
	}
	return Document{Path: name, Text: string(text), Revision: cas.Sum(data).String(), Size: int64(len(data))}, nil
}

func isText(data []byte) bool {
	return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0
}

// readIn reads a file of a folder that folder returned, refusing symbolic links.
func readIn(ctx context.Context, folder vfs.FS, base, name string) ([]byte, fs.FileInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	info, err := folder.Lstat(base)
	if err != nil {
		return nil, nil, diskError(name, err)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil, nil, fail("invalid_path", "%s is a symbolic link; use the path of the file it points to", name)
	}
	data, err := vfs.ReadFile(folder, base, maxDocument)
	if err != nil {
		return nil, nil, diskError(name, err)
	}
	return data, info, nil
}

// Write makes a file or replaces its whole text. base is the revision that the new text relies on, nil for a new file. Folders
// on the way are made. Errors (codes): those of Read, revision_conflict when the file is not at base.
func (s *Space) Write(ctx context.Context, name, text string, base *string) (Change, error) {
	return s.replace(ctx, name, true, func(before []byte) ([]byte, error) {
		switch {
		case before == nil && base != nil:
			return nil, conflict(name, *base, "", "it no longer exists")
		case before != nil && base == nil:
			return nil, conflict(name, "", cas.Sum(before).String(), "it exists already; read it first, then write or edit it")
		case before != nil && cas.Sum(before).String() != *base:
			return nil, conflict(name, *base, cas.Sum(before).String(), "it was changed since it was read; read it again")
		}
		if bytes.HasPrefix(before, bom) && !strings.HasPrefix(text, string(bom)) {
			return append(bytes.Clone(bom), text...), nil
		}
		return []byte(text), nil
	})
}

func conflict(name, expected, actual, why string) error {
	e := fail("revision_conflict", "%s was not changed: %s", name, why)
	e.details = map[string]any{"path": name, "expected": expected, "actual": actual}
	return e
}

// Edit replaces places of a text file. Each Old must occur exactly once, byte by byte (a file with CRLF line ends is matched
// with those); all are matched against the present text and must not overlap. Everything outside of them keeps its bytes.
// Errors (codes): those of Read, invalid_input, ambiguous_match with the lines where an Old occurs.
func (s *Space) Edit(ctx context.Context, name string, edits []Edit) (Change, error) {
	return s.replace(ctx, name, false, func(before []byte) ([]byte, error) { return applyEdits(name, before, edits) })
}

// replace changes one file: it reads the present bytes (nil when absent), lets next decide, and writes atomically.
func (s *Space) replace(ctx context.Context, name string, create bool, next func(before []byte) ([]byte, error)) (Change, error) {
	name, err := s.cleanPath(name)
	if err != nil {
		return Change{}, err
	}
	s.change.Lock()
	defer s.change.Unlock()
	folder, base, err := s.folder(name, create)
	if err != nil {
		return Change{}, err
	}
	defer folder.Close()
	before, info, err := readIn(ctx, folder, base, name)
	perm := fs.FileMode(0o666)
	switch {
	case create && errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return Change{}, err
	default:
		perm = info.Mode().Perm()
		if before == nil {
			before = []byte{}
		}
		if !isText(bytes.TrimPrefix(before, bom)) {
			return Change{}, fail("unsupported_format", "%s is not UTF-8 text and was not changed", name)
		}
	}
	after, err := next(before)
	if err != nil {
		return Change{}, err
	}
	if len(after) > maxDocument {
		return Change{}, fail("content_limit", "%s was not changed: the new text is larger than %d MiB", name, maxDocument>>20)
	}
	if !isText(after) {
		return Change{}, fail("unsupported_format", "%s was not changed: the new text is not valid UTF-8 or contains a NUL character", name)
	}
	if err := vfs.WriteFile(folder, base, after, perm); err != nil {
		return Change{}, diskError(name, err)
	}
	return s.changed(name, before, after), nil
}

func (s *Space) changed(name string, before, after []byte) Change {
	c := Change{OperationID: s.newI(), Path: name, Diff: udiff.Unified("a/"+name, "b/"+name, string(before), string(after))}
	if before != nil {
		revision := cas.Sum(before).String()
		c.Before = &revision
	}
	revision := cas.Sum(after).String()
	c.After = &revision
	return c
}

// Search finds lines of the space's text files by the words of query, the best first. Errors: invalid_input for a blank query,
// that of ctx, storage.
func (s *Space) Search(ctx context.Context, query string, limit int) (search.Result, error) {
	if strings.TrimSpace(query) == "" {
		return search.Result{}, fail("invalid_input", "the search has no words; say what to look for")
	}
	r, err := search.Files(ctx, s.root, query, limit)
	if err != nil && ctx.Err() == nil {
		return r, diskError("folder "+s.path, err)
	}
	return r, err
}
