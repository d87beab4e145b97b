package tool

import (
	"context"
	"strings"
	"sync"
)

// Document is a text file at one revision.
type Document struct {
	ID       string // of a registered content; "" for a plain file
	Path     string // as the space names it
	Text     string
	Encoding string // of the file on disk; "" and "utf-8" need no mention
	Revision string
	Size     int64  // bytes
	Image    *Image // instead of Text
}

// Image is a picture that a model may be shown.
type Image struct {
	MimeType string
	Data     []byte
}

// Reader reads a text file or an image. Its errors are domain errors with messages for people.
type Reader interface {
	Read(ctx context.Context, path string) (Document, error)
}

// Match is one line that a search found.
type Match struct {
	Path string
	Line int // from 1
	Text string
}

// Searcher finds at most limit lines; truncated tells that there are more.
type Searcher interface {
	Search(ctx context.Context, query string, limit int) (matches []Match, truncated bool, err error)
}

// Edit replaces the only place where Old stands by New.
type Edit struct {
	Old string `json:"oldText"`
	New string `json:"newText"`
}

// FileChange is one file before and after a change; nil is "not there".
type FileChange struct {
	ID     string  `json:"id,omitempty"` // of a registered content
	Path   string  `json:"path"`         // as the space names it
	Before *string `json:"before"`
	After  *string `json:"after"`
}

// Change is the receipt of a saved change.
type Change struct {
	OperationID string
	Files       []FileChange
	Diff        string   // unified
	Notes       []string // what else to say, for example where an inexact match was found
}

// PatchBase, Registration, Composition and Member are the parts of a Patch beside its text, as package content of the space knows them.
type (
	// PatchBase says what a file must be before the patch: a revision, or nil for "not there".
	PatchBase struct {
		Path string  `json:"path"`
		Base *string `json:"base"`
	}
	// Member is a part of a composition: a path or a repa: reference.
	Member struct {
		Path string `json:"path"`
		Name string `json:"name"`
	}
	// Registration makes a file or folder a document or material with an id of its own.
	Registration struct {
		Path    string   `json:"path"`
		Role    string   `json:"role"`
		ID      string   `json:"id"`
		Members []Member `json:"members"`
	}
	// Composition replaces the parts of a content; Base is its structural revision.
	Composition struct {
		ID      string   `json:"id"`
		Base    string   `json:"base"`
		Members []Member `json:"members"`
	}
)

// Patch is a change of many files and of what is registered.
type Patch struct {
	Text          string         `json:"patch"`
	Bases         []PatchBase    `json:"bases"`
	Registrations []Registration `json:"registrations"`
	Compositions  []Composition  `json:"compositions"`
}

// Editor changes files durably; once it returns a Change the change is saved. Write replaces or creates a whole file: base is
// the revision that the file must have, nil when there must be none; otherwise the error's Code is revision_conflict. Edit
// makes all replacements or none; each Old must stand exactly once in the file as it was before. Patch changes all its files or none. Undo takes an
// operation back. Operation tells of one; its value encodes as JSON. An error that belongs to an operation has a method OperationID() string.
type Editor interface {
	Write(ctx context.Context, path, text string, base *string) (Change, error)
	Edit(ctx context.Context, path string, edits []Edit) (Change, error)
	Patch(ctx context.Context, p Patch) (Change, error)
	Undo(ctx context.Context, operationID string) (Change, error)
	Operation(ctx context.Context, operationID string) (any, error)
}

// Inspector tells what a path or reference is without reading it. The value encodes as JSON.
type Inspector interface {
	Inspect(ctx context.Context, path string) (any, error)
}

// Services are what the tools work on. A tool whose service is nil is left out.
type Services struct {
	Reader    Reader
	Searcher  Searcher
	Editor    Editor
	Inspector Inspector
	Keeper    Keeper // nil: what is cut is not kept
}

// Set is the tools of one session, which share what the session has observed. It lives as long as the session is open.
type Set struct {
	tools []Tool
	seen  seen
}

// NewSet makes the tools that services allow.
func NewSet(services Services) *Set {
	s := &Set{seen: seen{revisions: map[string]string{}}}
	var tools []Tool
	if services.Reader != nil {
		tools = append(tools, &readTool{services.Reader, services.Keeper, &s.seen})
	}
	if services.Searcher != nil {
		tools = append(tools, &searchTool{services.Searcher, services.Keeper})
	}
	if services.Inspector != nil {
		tools = append(tools, &infoTool{services.Inspector})
	}
	if services.Editor != nil {
		tools = append(tools, &writeTool{services.Editor, &s.seen}, &editTool{services.Editor, &s.seen}, &patchTool{services.Editor, &s.seen},
			&operationTool{services.Editor, &s.seen})
	}
	for _, t := range tools {
		s.tools = append(s.tools, Bound(t, services.Keeper))
	}
	return s
}

// Tools are the tools in a fixed order.
func (s *Set) Tools() []Tool { return s.tools }

// seen remembers the revision of each file as the session last saw it, by path and, for registered contents, by reference: an id stays when a file
// moves.
type seen struct {
	mu        sync.Mutex
	revisions map[string]string
}

// reference is how a model names a registered content, whatever its role.
const reference = "repa:document/"

// key is what a path or reference is remembered by.
func key(path string) string {
	if id, ok := strings.CutPrefix(path, "repa:material/"); ok {
		return reference + id
	}
	return path
}

func keys(id, path string) []string {
	if id == "" {
		return []string{path}
	}
	return []string{path, reference + id}
}

func (s *seen) get(path string) *string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.revisions[key(path)]; ok {
		return &r
	}
	return nil
}

func (s *seen) put(d Document) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys(d.ID, d.Path) {
		s.revisions[k] = d.Revision
	}
}

// changed notes a change of the session itself. An edit of a version that the session has not seen leaves the rest of the file unseen, and a file that
// it deleted is unknown when it comes again.
func (s *seen) changed(c Change, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range c.Files {
		for _, k := range keys(f.ID, f.Path) {
			known := whole || f.Before == nil || s.revisions[k] == *f.Before
			if known && f.After != nil {
				s.revisions[k] = *f.After
			} else {
				delete(s.revisions, k)
			}
		}
	}
}
