package tool

import (
	"context"
	"sync"
)

// Document is a text file at one revision.
type Document struct {
	Path     string // as the space names it
	Text     string
	Revision string
	Size     int64 // bytes
}

// Reader reads a text file. Its errors are domain errors with messages for people.
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

// Change is the receipt of a saved change.
type Change struct {
	OperationID string
	Path        string  // as the space names it
	Before      *string // revision; nil when the file was created
	After       *string
	Created     bool
	Diff        string // unified
}

// Editor changes files durably; once it returns a Change the change is saved. Write replaces or creates a whole file: base is
// the revision that the file must have, nil when there must be none; otherwise the error's Code is revision_conflict. Edit
// makes all replacements or none; each Old must stand exactly once in the file as it was before.
type Editor interface {
	Write(ctx context.Context, path, text string, base *string) (Change, error)
	Edit(ctx context.Context, path string, edits []Edit) (Change, error)
}

// Services are what the tools work on. A tool whose service is nil is left out.
type Services struct {
	Reader   Reader
	Searcher Searcher
	Editor   Editor
	Keeper   Keeper // nil: what is cut is not kept
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
	if services.Editor != nil {
		tools = append(tools, &writeTool{services.Editor, &s.seen}, &editTool{services.Editor, &s.seen})
	}
	for _, t := range tools {
		s.tools = append(s.tools, Bound(t, services.Keeper))
	}
	return s
}

// Tools are the tools in a fixed order.
func (s *Set) Tools() []Tool { return s.tools }

// seen remembers the revision of each file as the session last saw it.
type seen struct {
	mu        sync.Mutex
	revisions map[string]string
}

func (s *seen) get(path string) *string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.revisions[path]; ok {
		return &r
	}
	return nil
}

func (s *seen) put(path, revision string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revisions[path] = revision
}

// changed notes a change of the session itself. An edit of a version that the session has not seen leaves the rest of the file unseen.
func (s *seen) changed(c Change, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := whole || c.Before != nil && s.revisions[c.Path] == *c.Before
	if known && c.After != nil {
		s.revisions[c.Path] = *c.After
	} else {
		delete(s.revisions, c.Path)
	}
}
