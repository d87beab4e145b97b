package offline_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/llm/offline"
	"github.com/repa-app/repa/agent/tool"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o700), os.WriteFile(file, []byte(got), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// folder is files in memory behind the real tools. Its search reports every line that holds one of the query's longer words, in
// the order of names and lines: ranking is not what is tested here.
type folder struct {
	files     map[string]string
	searchErr error
	readErr   error
}

func (f *folder) Read(_ context.Context, path string) (tool.Document, error) {
	text, ok := f.files[path]
	switch {
	case f.readErr != nil:
		return tool.Document{}, f.readErr
	case !ok:
		return tool.Document{}, fmt.Errorf("%s does not exist", path)
	}
	return tool.Document{Path: path, Text: text, Revision: "r1", Size: int64(len(text))}, nil
}

func (f *folder) Search(_ context.Context, query string, limit int) (out []tool.Match, more bool, err error) {
	if f.searchErr != nil {
		return nil, false, f.searchErr
	}
	words := strings.FieldsFunc(strings.ToLower(query), func(r rune) bool { return strings.ContainsRune(" .,?!？", r) })
	if len(words) > 1 {
		words = slices.DeleteFunc(words, func(w string) bool {
			return len(w) < 3 || strings.Contains(" how what which does there more about the ", " "+w+" ")
		})
	}
	names := make([]string, 0, len(f.files))
	for name := range f.files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for i, l := range strings.Split(f.files[name], "\n") {
			if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(l), w) }) {
				out = append(out, tool.Match{Path: name, Line: i + 1, Text: l})
			}
		}
	}
	return out[:min(len(out), limit)], len(out) > limit, nil
}

// session is a history that the offline model goes on with.
type session struct {
	t        *testing.T
	tools    []tool.Tool
	messages []llm.Message
	steer    string // comes in with the first results
}

func newSession(t *testing.T, services tool.Services) *session {
	return &session{t: t, tools: tool.NewSet(services).Tools()}
}

func (s *session) request() *llm.Request {
	req := &llm.Request{Model: "offline", Messages: slices.Clone(s.messages)}
	for _, tl := range s.tools {
		req.Tools = append(req.Tools, tl.Spec())
	}
	return req
}

func user(text string) llm.Message {
	return llm.Message{Role: llm.RoleUser, Content: []llm.Block{{Type: llm.BlockText, Text: text}}}
}

// ask plays the loop until the answer.
func (s *session) ask(question string) string {
	s.t.Helper()
	s.messages = append(s.messages, user(question))
	for range 5 {
		m, err := offline.New().Stream(s.t.Context(), s.request(), nil)
		if err != nil {
			s.t.Fatal(err)
		}
		m.Timestamp = 0
		s.messages = append(s.messages, *m)
		calls := m.ToolCalls()
		if len(calls) == 0 {
			return m.Text()
		}
		for _, c := range calls {
			s.messages = append(s.messages, s.execute(c))
		}
		if s.steer != "" {
			s.messages = append(s.messages, user(s.steer))
			s.steer = ""
		}
	}
	s.t.Fatalf("no answer to %q", question)
	return ""
}

func (s *session) execute(c llm.Block) llm.Message {
	s.t.Helper()
	i := slices.IndexFunc(s.tools, func(tl tool.Tool) bool { return tl.Spec().Name == c.Name })
	if i < 0 {
		s.t.Fatalf("%s was not offered", c.Name)
	}
	schema, err := tool.Compile(s.tools[i].Spec())
	if err != nil {
		s.t.Fatal(err)
	}
	args, err := schema.Check(c.Arguments)
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := s.tools[i].Execute(s.t.Context(), c.ID, args)
	if err != nil {
		s.t.Fatal(err)
	}
	return llm.Message{Role: llm.RoleToolResult, ToolCallID: c.ID, ToolName: c.Name, Content: r.Content, IsError: &r.IsError}
}

// transcript shows the history for people.
func (s *session) transcript() string {
	var b strings.Builder
	for _, m := range s.messages {
		fmt.Fprintf(&b, "== %s", m.Role)
		if m.Role == llm.RoleAssistant {
			fmt.Fprintf(&b, " (%s)", m.StopReason)
		}
		if m.Failed() {
			b.WriteString(" (error)")
		}
		b.WriteByte('\n')
		for _, c := range m.ToolCalls() {
			fmt.Fprintf(&b, "%s %s %s\n", c.ID, c.Name, c.Arguments)
		}
		if text := m.Text(); text != "" {
			fmt.Fprintln(&b, text)
		}
	}
	return b.String()
}
