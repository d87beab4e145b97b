package session_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/session"
)

// rebuilt is what Pi saved about a file that it read.
type rebuilt struct {
	Header          json.RawMessage
	EntryCount      int
	LeafID          *string
	SessionName     *string
	BranchIDs       []string
	ContextEntryIDs []string
	ThinkingLevel   string
	Model           *struct{ Provider, ModelID string }
	Messages        []any
	Context         []row
	LLM             []row
	OtherLeaves     map[string]struct {
		LeafID        string
		ThinkingLevel string
		Context       []row
		LLM           []row
	}
	ByLeaf map[string][]string
}

type row struct{ Role, Text, SourceID string }

func readExpected(t *testing.T, name string) rebuilt {
	t.Helper()
	var want rebuilt
	if err := json.Unmarshal([]byte(fixture(t, name+".expected.json")), &want); err != nil {
		t.Fatal(err)
	}
	return want
}

// Files written by Pi give the context that Pi itself rebuilt from them.
func TestPiFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/pi/pi-*.jsonl")
	if err != nil || len(files) != 9 {
		t.Fatalf("%d fixtures, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		t.Run(name, func(t *testing.T) {
			want := readExpected(t, name)
			disk := put(t, "f.jsonl", fixture(t, name+".jsonl"))
			s := open(t, disk, "f.jsonl")
			got := s.Snapshot()
			if d := s.Damage(); len(d) != 0 {
				t.Errorf("damage: %v", d)
			}
			if diff := cmp.Diff(tree(t, string(want.Header)), tree(t, got.Header.Raw)); diff != "" {
				t.Error("header", diff)
			}
			if got.Leaf.ID != *want.LeafID {
				t.Errorf("leaf %s, want %s", got.Leaf.ID, *want.LeafID)
			}
			if wantName := value(want.SessionName); got.Name != wantName {
				t.Errorf("name %q, want %q", got.Name, wantName)
			}
			compare(t, "branch", want.BranchIDs, ids(got.Branch))
			if len(got.Entries) != want.EntryCount {
				t.Errorf("%d entries, want %d", len(got.Entries), want.EntryCount)
			}
			compare(t, "context entries", want.ContextEntryIDs, ids(got.ContextEntries()))
			compare(t, "messages", want.Messages, messages(t, got))
			compare(t, "context", want.Context, rows(t, got))
			compare(t, "model messages", withoutSystem(want.LLM), modelRows(got))
			if got.ThinkingLevel() != want.ThinkingLevel {
				t.Errorf("thinking level %s, want %s", got.ThinkingLevel(), want.ThinkingLevel)
			}
			if want.Model != nil {
				provider, model := got.Model()
				if provider != want.Model.Provider || model != want.Model.ModelID {
					t.Errorf("model %s/%s, want %v", provider, model, *want.Model)
				}
			}
			for label, leaf := range want.OtherLeaves {
				at, ok := s.At(leaf.LeafID)
				if !ok {
					t.Fatalf("%s: no entry %s", label, leaf.LeafID)
				}
				compare(t, label, leaf.Context, rows(t, at))
				compare(t, label+" for the model", withoutSystem(leaf.LLM), modelRows(at))
			}
			if _, ok := s.At("unknown"); ok {
				t.Error("found an entry that is not there")
			}
		})
	}
}

func TestDamagedFile(t *testing.T) {
	raw := fixture(t, "damaged.jsonl")
	want := readExpected(t, "damaged")
	disk := put(t, "f.jsonl", raw)
	s := open(t, disk, "f.jsonl")
	got := s.Snapshot()
	compare(t, "messages", want.Messages, messages(t, got))
	wantDamage := []session.Damage{{Line: 2, Offset: 1, Reason: "not a JSON object"}, {Line: 5, Offset: int64(strings.Index(raw, `{"type":"message","id":"bbbb0002"`)), Reason: "not a JSON object"}}
	compare(t, "damage", wantDamage, s.Damage())
	if got.Name != "" || got.ThinkingLevel() != "off" || len(got.Entries) != want.EntryCount {
		t.Errorf("name %q, level %s", got.Name, got.ThinkingLevel())
	}
	// The ids of the entries, in the order of the file, are bbbb0001 and bbbb0003 to bbbb0009.
	for index, wantRoles := range want.ByLeaf {
		var n int
		fmt.Sscan(index, &n)
		id := fmt.Sprintf("bbbb%04d", n+2)
		if n == 0 {
			id = "bbbb0001"
		}
		at, ok := s.At(id)
		if !ok {
			t.Fatalf("no entry %s", id)
		}
		var roles []string
		for _, m := range at.Messages {
			var number int
			fmt.Sscanf(m.Entry.ID, "bbbb%d", &number)
			roles = append(roles, fmt.Sprintf("%s@%d", m.Role, max(0, number-2)))
		}
		compare(t, "leaf "+index, wantRoles, roles)
	}
	if content(t, disk, "f.jsonl") != raw {
		t.Error("opening changed the file")
	}
	add(t, s, session.NewMessage(user("next"), ""))
	if after := content(t, disk, "f.jsonl"); !strings.HasPrefix(after, raw+"\n{") {
		t.Error("the append did not start on a line of its own behind what was there")
	}
	if again := open(t, disk, "f.jsonl"); len(again.Snapshot().Messages) != 3 || len(again.Damage()) != 2 {
		t.Errorf("after reopening: %d messages, damage %v", len(again.Snapshot().Messages), again.Damage())
	}
}

func TestRefusedFiles(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		want    error
		words   string
	}{
		"not a session": {fixture(t, "not-a-session.jsonl"), session.ErrNotSession, "header"},
		"version 1":     {fixture(t, "legacy-v1.jsonl"), session.ErrOldVersion, "version 1"},
		"version 2":     {fixture(t, "legacy-v2.jsonl"), session.ErrOldVersion, "kept untouched"},
		"version 4":     {strings.Replace(header, `"version":3`, `"version":4`, 1), session.ErrNewVersion, "version 4"},
		"empty":         {"", session.ErrNotSession, "header"},
		"only noise":    {"\n\nnoise\n", session.ErrNotSession, "header"},
		"a number":      {"1\n" + header, session.ErrNotSession, "header"},
		"id is no text": {strings.Replace(header, `"s1"`, `1`, 1), session.ErrNotSession, "header"},
	} {
		t.Run(name, func(t *testing.T) {
			disk := put(t, "f.jsonl", c.content)
			_, err := session.Open(disk, "f.jsonl", session.Source{})
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.words) || codeOf(err) != "invalid_storage" {
				t.Errorf("got %v (%s), want %v", err, codeOf(err), c.want)
			}
			if content(t, disk, "f.jsonl") != c.content {
				t.Error("the file was changed")
			}
		})
	}
	if _, err := session.Open(put(t, "x", ""), "absent", session.Source{}); codeOf(err) != "storage" {
		t.Errorf("absent file: %v", err)
	}
}

// Shell output and messages that only a session knows are told to a model in Pi's words.
func TestModelWords(t *testing.T) {
	lines := []string{
		`{"type":"message","id":"1","parentId":null,"timestamp":"2026-12-01T08:00:00.000Z","message":{"role":"bashExecution","command":"ls","output":"a\nb","exitCode":2,"cancelled":false,"truncated":true,"fullOutputPath":"/tmp/x","timestamp":5}}`,
		`{"type":"message","id":"2","parentId":"1","message":{"role":"bashExecution","command":"secret","output":"x","excludeFromContext":true}}`,
		`{"type":"message","id":"3","parentId":"2","message":{"role":"bashExecution","command":"sleep 9","output":"","cancelled":true}}`,
		`{"type":"message","id":"4","parentId":"3","message":{"role":"user","content":17}}`,
		`{"type":"message","id":"5","parentId":"4","message":{"role":"unheard"}}`,
		`{"type":"custom_message","id":"6","parentId":"5","customType":"x","content":"plain","display":false}`,
	}
	s := open(t, put(t, "f.jsonl", header+strings.Join(lines, "\n")), "f.jsonl")
	compare(t, "model messages", []row{
		{"user", "Ran `ls`\n```\na\nb\n```\n\nCommand exited with code 2\n\n[Output truncated. Full output: /tmp/x]", ""},
		{"user", "Ran `sleep 9`\n(no output)\n\n(command cancelled)", ""},
		{"user", "plain", ""},
	}, modelRows(s.Snapshot()))
	if m, err := s.Snapshot().Find("4").Message(); err == nil {
		t.Errorf("decoded a message whose content is a number: %v", m)
	}
	if s.Snapshot().Find("absent") != nil {
		t.Error("found an entry that is not there")
	}
}

func compare(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-Pi +ours):\n%s", what, diff)
	}
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func tree(t *testing.T, raw string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func ids(entries []*session.Entry) []string {
	out := []string{}
	for _, e := range entries {
		out = append(out, e.ID)
	}
	return out
}

func messages(t *testing.T, s *session.Snapshot) []any {
	t.Helper()
	var out []any
	for _, m := range s.Messages {
		raw, err := m.JSON()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, tree(t, string(raw)))
	}
	return out
}

func rows(t *testing.T, s *session.Snapshot) []row {
	t.Helper()
	var out []row
	for _, m := range s.Messages {
		raw, err := m.JSON()
		if err != nil {
			t.Fatal(err)
		}
		var v llm.Message
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		text := flatten(v)
		if m.Role == session.RoleCompactionSummary || m.Role == session.RoleBranchSummary {
			text = tree(t, string(raw)).(map[string]any)["summary"].(string)
		}
		out = append(out, row{m.Role, text, m.Entry.ID})
	}
	return out
}

func modelRows(s *session.Snapshot) []row {
	var out []row
	for _, m := range s.Context() {
		out = append(out, row{string(m.Role), flatten(m), ""})
	}
	return out
}

func withoutSystem(rows []row) []row {
	var out []row
	for _, r := range rows {
		if r.Role != "system" {
			out = append(out, r)
		}
	}
	return out
}

// flatten writes blocks as the fixtures do.
func flatten(m llm.Message) string {
	var parts []string
	for _, b := range m.Content {
		switch b.Type {
		case llm.BlockText:
			parts = append(parts, b.Text)
		case llm.BlockThinking:
			parts = append(parts, "[thinking] "+b.Thinking)
		case llm.BlockToolCall:
			parts = append(parts, fmt.Sprintf("[toolCall %s %s %s]", b.ID, b.Name, b.Arguments))
		case llm.BlockImage:
			parts = append(parts, fmt.Sprintf("[image %s %d]", b.MimeType, len(b.Data)))
		}
	}
	return strings.Join(parts, "\n")
}
