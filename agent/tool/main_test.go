package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/repa-app/repa/agent/tool"
)

// space is a folder in memory with revisions that count up.
type space struct {
	ids   map[string]string // of registered contents
	patch tool.Patch        // the last one
	files map[string]string
	at    map[string]int
	ops   int
	err   error // answers every call
}

type coded struct{ code, message string }

func (e coded) Error() string { return e.message }
func (e coded) Code() string  { return e.code }

// late is an error of a save that has an operation.
type late struct{ coded }

func (late) OperationID() string { return "op-late" }

func newSpace() *space {
	return &space{files: map[string]string{}, at: map[string]int{}, ids: map[string]string{}}
}

func (s *space) revision(path string) string { return fmt.Sprintf("%s#%d", path, s.at[path]) }

// outside changes a file behind the session's back.
func (s *space) outside(path, text string) {
	s.files[path] = text
	s.at[path]++
}

func (s *space) Read(_ context.Context, path string) (tool.Document, error) {
	if s.err != nil {
		return tool.Document{}, s.err
	}
	text, ok := s.files[path]
	if !ok {
		return tool.Document{}, coded{"not_found", path + " does not exist"}
	}
	if strings.HasSuffix(path, ".png") {
		return tool.Document{Path: path, Revision: s.revision(path), Size: int64(len(text)), Image: &tool.Image{MimeType: "image/png", Data: []byte(text)}}, nil
	}
	return tool.Document{ID: s.ids[path], Path: path, Text: text, Revision: s.revision(path), Size: int64(len(text))}, nil
}

func (s *space) Write(_ context.Context, path, text string, base *string) (tool.Change, error) {
	_, exists := s.files[path]
	switch {
	case s.err != nil:
		return tool.Change{}, s.err
	case base == nil && exists, base != nil && (!exists || *base != s.revision(path)):
		return tool.Change{}, coded{"revision_conflict", path + " was changed by someone else"}
	}
	return s.save(path, text), nil
}

func (s *space) Edit(_ context.Context, path string, edits []tool.Edit) (tool.Change, error) {
	if s.err != nil {
		return tool.Change{}, s.err
	}
	text := s.files[path]
	for _, e := range edits {
		if strings.Count(text, e.Old) != 1 {
			return tool.Change{}, coded{"patch_mismatch", "the text does not stand exactly once in " + path}
		}
		text = strings.Replace(text, e.Old, e.New, 1)
	}
	return s.save(path, text), nil
}

func (s *space) save(path, text string) tool.Change {
	s.ops++
	f := tool.FileChange{Path: path}
	if _, exists := s.files[path]; exists {
		before := s.revision(path)
		f.Before = &before
	}
	s.outside(path, text)
	after := s.revision(path)
	f.After = &after
	return tool.Change{OperationID: fmt.Sprintf("op-%d", s.ops), Files: []tool.FileChange{f}, Diff: "-old\n+new\n"}
}

// Patch adds or deletes the files that its lines "+path" and "-path" name.
func (s *space) Patch(_ context.Context, p tool.Patch) (tool.Change, error) {
	s.patch = p
	s.ops++
	c := tool.Change{OperationID: fmt.Sprintf("op-%d", s.ops), Diff: "-old\n+new\n", Notes: []string{"located loosely"}}
	for line := range strings.Lines(p.Text) {
		line = strings.TrimSpace(line)
		f := tool.FileChange{Path: line[1:]}
		if line[0] == '+' {
			s.outside(f.Path, "patched")
			after := s.revision(f.Path)
			f.After = &after
		} else {
			before := s.revision(f.Path)
			f.Before = &before
			delete(s.files, f.Path)
		}
		c.Files = append(c.Files, f)
	}
	return c, s.err
}

func (s *space) Undo(_ context.Context, id string) (tool.Change, error) {
	if s.err != nil {
		return tool.Change{}, s.err
	}
	return s.save("undone-"+id, "before"), nil
}

func (s *space) Operation(_ context.Context, id string) (any, error) {
	return map[string]string{"operationId": id, "status": "committed"}, s.err
}

func (s *space) Inspect(_ context.Context, path string) (any, error) {
	return map[string]string{"path": path}, s.err
}

type finder struct {
	matches   []tool.Match
	truncated bool
	err       error
	limit     int
}

func (f *finder) Search(_ context.Context, _ string, limit int) ([]tool.Match, bool, error) {
	f.limit = limit
	return f.matches, f.truncated, f.err
}

func set(s *space, f *finder) *tool.Set {
	return tool.NewSet(tool.Services{Reader: s, Searcher: f, Editor: s, Inspector: s})
}

// call checks the arguments as the loop does and executes.
func call(t *testing.T, s *tool.Set, name, args string) tool.Result {
	t.Helper()
	for _, tl := range s.Tools() {
		if tl.Spec().Name != name {
			continue
		}
		schema, err := tool.Compile(tl.Spec())
		if err != nil {
			t.Fatal(err)
		}
		raw := json.RawMessage(args)
		if p, ok := tl.(tool.Preparer); ok {
			raw = p.Prepare(raw)
		}
		if raw, err = schema.Check(raw); err != nil {
			t.Fatal(err)
		}
		r, err := tl.Execute(t.Context(), "call", raw)
		if err != nil {
			t.Fatal(err)
		}
		if r.Details != nil && !json.Valid(r.Details) {
			t.Errorf("details %s", r.Details)
		}
		return r
	}
	t.Fatalf("no tool %s", name)
	return tool.Result{}
}

func said(r tool.Result) string { return r.Content[0].Text }

func quote(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
