package wire_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/actors/wire"
	"github.com/repa-app/repa/agent/connection"
	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/session"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/testkit/crashfs"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func text(s string) llm.Block { return llm.Block{Type: llm.BlockText, Text: s} }

// clock gives a new second at each call.
func clock() func() time.Time {
	now := time.Date(2026, 12, 1, 8, 30, 0, 0, time.UTC)
	return func() time.Time {
		now = now.Add(time.Second)
		return now
	}
}

// counting is a source of chance that repeats itself in every test run.
type counting struct{ n byte }

func (c *counting) Read(p []byte) (int, error) {
	for i := range p {
		c.n += 37
		p[i] = c.n
	}
	return len(p), nil
}

func drafts() []session.Draft {
	failed, fine := true, false
	image := llm.Block{Type: llm.BlockImage, Data: "aGk=", MimeType: "image/png"}
	return []session.Draft{
		session.NewModelChange("p", "m"),
		session.NewThinkingLevel("high"),
		session.NewMessage(llm.Message{Role: llm.RoleSystem, Content: []llm.Block{text("You teach.")}, Timestamp: 1}, ""),
		session.NewMessage(llm.Message{Role: llm.RoleUser, Content: []llm.Block{text("What is a <b>prime</b>? 素数 \u2028"), image}, Timestamp: 1000}, "request-1"),
		session.NewMessage(llm.Message{
			Role: llm.RoleAssistant, API: "a", Provider: "p", Model: "m", StopReason: llm.StopToolUse, Timestamp: 2000,
			Content: []llm.Block{
				{Type: llm.BlockThinking, Thinking: "They ask for primes.", ThinkingSignature: "signed"}, text("I look it up."),
				{Type: llm.BlockToolCall, ID: "c1", Name: "read", Arguments: json.RawMessage(`{"path":"a.md","deep":{"n":1.50}}`)},
				{Type: llm.BlockToolCall, ID: "c2", Name: "read"},
			},
		}, "request-1"),
		session.NewMessage(llm.Message{
			Role: llm.RoleToolResult, ToolCallID: "c1", ToolName: "read", IsError: &fine, Details: json.RawMessage(`{ "lines": [1, 2] }`),
			Content: []llm.Block{text("# Primes")}, Timestamp: 3000,
		}, "request-1"),
		session.NewMessage(llm.Message{
			Role: llm.RoleToolResult, ToolCallID: "c2", ToolName: "read", IsError: &failed,
			Content: []llm.Block{text("path is missing"), text("say which file")}, Timestamp: 4000,
		}, "request-1"),
		session.NewMessage(llm.Message{
			Role: llm.RoleAssistant, API: "a", Provider: "p", Model: "m", StopReason: llm.StopError, ErrorMessage: "p answered 500.",
			Content: []llm.Block{text("A prime is")}, Timestamp: 5000,
		}, "request-1"),
		session.NewMessage(llm.Message{Role: llm.RoleAssistant, API: "a", Provider: "p", Model: "m", StopReason: llm.StopAborted, Timestamp: 6000}, "request-2"),
		session.NewCustomMessage("repa.notice", []llm.Block{text("a.md changed")}, true, json.RawMessage(`{"n":1}`), "request-2"),
		session.NewSessionInfo("Primes"),
	}
}

// tail are lines as Pi or a failing disk leaves them; parent stands for the id of the entry before.
var tail = []string{
	`{"type":"custom_message","id":"t1","parentId":"$","timestamp":"2026-12-01T09:00:00.000Z","customType":"x","content":"plain text","display":true}`,
	`{"type":"custom_message","id":"t2","parentId":"$","timestamp":"2026-12-01T09:00:01.000Z","customType":"x","display":false}`,
	`{"type":"compaction","id":"t3","parentId":"$","timestamp":"2026-12-01T09:00:02.000Z","summary":"They spoke of primes.","firstKeptEntryId":"t1","tokensBefore":900,"details":{"readFiles":["a.md"]}}`,
	`{"type":"branch_summary","id":"t4","parentId":"$","timestamp":"2026-12-01T09:00:03.000Z","fromId":"t1","summary":"Another way was tried."}`,
	`{"type":"branch_summary","id":"t5","parentId":"$","timestamp":"2026-12-01T09:00:04.000Z","fromId":"t1","summary":{"odd":1},"details":null}`,
	`{"type":"message","id":"t6","parentId":"$","timestamp":"2026-12-01T09:00:05.000Z","message":{"role":"user","content":42}}`,
	`{"type":"message","id":"t7","parentId":"$","timestamp":"not a time","message":{"role":"user","content":"pi's short form","timestamp":0}}`,
	`{"type":"message","id":"t8","parentId":"$","timestamp":"2026-12-01T09:00:07.000Z","message":{"role":"bashExecution","command":"ls","output":"a.md","content":null,"timestamp":9}}`,
	`{"type":"message","id":"t9","parentId":"$","timestamp":"2026-12-01T09:00:08.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c3","name":"read","arguments":"no object"},{"type":"future","x":1}],"timestamp":9}}`,
	`{"type":"message","id":"t9a","parentId":"$","timestamp":"2026-12-01T09:00:08.000Z","repa":{"requestId":"no id"},"message":{"role":"toolResult","toolCallId":"c\ud800","toolName":"x","content":[{"type":"text","text":"half \ud800"}],"details":{"a":1,"a":2},"isError":true,"timestamp":9}}`,
	`{"type":"custom_message","id":"t9b","parentId":"$","timestamp":"2026-12-01T09:00:08.000Z","customType":"x","content":"y","display":true,"details":"\ud800"}`,
	`{"type":"message","id":"t9c","parentId":"$","timestamp":"2026-12-01T09:00:08.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c4","name":"x","arguments":{"a":1,"a":2}},{"type":"thinking","thinking":"\udc00"}],"errorMessage":"\ud800","timestamp":9}}`,
	`{"type":"label","id":"t10","parentId":"$","timestamp":"2026-12-01T09:00:09.000Z","targetId":"t1","label":"here"}`,
	`{"type":"context_edit","id":"t11","parentId":"$","timestamp":"2026-12-01T09:00:10.000Z"}`,
	`{"type":"usage","id":"t12","parentId":"$","timestamp":"2026-12-01T09:00:11.000Z"}`,
	`{"type":"invented","id":"t13","parentId":"$","timestamp":"2026-12-01T09:00:12.000Z"}`,
}

// branch writes a session with an entry of every type and reads it back.
func branch(t *testing.T) []*session.Entry {
	t.Helper()
	disk := crashfs.New()
	source := session.Source{Now: clock(), Rand: &counting{}}
	s, err := session.Create(disk, session.Options{ID: "s1", CWD: "/space", Source: source})
	if err != nil {
		t.Fatal(err)
	}
	ids, err := s.Append(drafts()...)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	parent := ids[len(ids)-1]
	var lines strings.Builder
	for _, line := range tail {
		lines.WriteString(strings.Replace(line, "$", parent, 1) + "\n")
		_, rest, _ := strings.Cut(line, `"id":"`)
		parent, _, _ = strings.Cut(rest, `"`)
	}
	f, err := disk.OpenFile(s.Name(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := vfs.ReadFile(disk, s.Name(), -1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(lines.String()), int64(len(whole))); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := session.Open(disk, s.Name(), source)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	snapshot := again.Snapshot()
	if len(snapshot.Branch) != len(ids)+len(tail) {
		t.Fatalf("the branch has %d entries, written were %d; damage: %v", len(snapshot.Branch), len(ids)+len(tail), again.Damage())
	}
	return snapshot.Branch
}

// encode writes a wire value and checks that a strict reader takes it and sees the same.
func encode[T any](t *testing.T, v T) string {
	t.Helper()
	raw, err := protocol.Encode(v)
	if err != nil {
		t.Fatalf("%+v: %v", v, err)
	}
	back, err := protocol.Decode[T](raw)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	again, err := protocol.Encode(back)
	if err != nil || string(again) != string(raw) {
		t.Fatalf("written again %s is %s (%v)", raw, again, err)
	}
	return string(raw)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

func TestMessages(t *testing.T) {
	var lines strings.Builder
	for _, m := range wire.Messages(branch(t)) {
		lines.WriteString(encode(t, m) + "\n")
	}
	golden(t, "messages.jsonl", lines.String())
}

func TestMessageSelects(t *testing.T) {
	entries := branch(t)
	messages := wire.Messages(entries)
	for _, e := range entries {
		m, ok := wire.Message(e)
		people := e.Role != string(llm.RoleSystem)
		switch e.Type {
		case session.TypeMessage, session.TypeCustomMessage, session.TypeCompaction, session.TypeBranchSummary:
		default:
			people = false
		}
		if ok != people {
			t.Errorf("%s %s of role %q is shown: %v", e.Type, e.ID, e.Role, ok)
		}
		if !ok {
			if m.ID != "" || m.Content != nil {
				t.Errorf("something comes for %s: %+v", e.ID, m)
			}
			continue
		}
		if diff := cmp.Diff(messages[0], m); diff != "" || m.ID != e.ID || m.RequestID.Valid() && string(m.RequestID) != e.RequestID || (m.RequestID != "") != protocol.ID(e.RequestID).Valid() {
			t.Errorf("message of %s: %+v %s", e.ID, m, diff)
		}
		messages = messages[1:]
	}
	if len(messages) != 0 {
		t.Errorf("%d messages belong to no entry", len(messages))
	}
	if none := wire.Messages(nil); none == nil || len(none) != 0 {
		t.Errorf("no entries are %#v", none)
	}
}

func TestRecordedEqualsRead(t *testing.T) {
	entries := branch(t)
	for _, e := range entries {
		if e.Type != session.TypeMessage || e.Role == string(llm.RoleSystem) {
			continue
		}
		m, err := e.Message()
		if err != nil || m.Timestamp == 0 {
			continue
		}
		read, _ := wire.Message(e)
		if diff := cmp.Diff(read, wire.Recorded(e.ID, e.RequestID, m)); diff != "" {
			t.Errorf("%s changes when the session is read again: %s", e.ID, diff)
		}
	}
}

func TestStreaming(t *testing.T) {
	for name, c := range map[string]struct {
		message llm.Message
		want    string
	}{
		"empty": {llm.Message{Role: llm.RoleAssistant, Timestamp: 5},
			`{"id":"live-1","role":"assistant","content":[],"timestamp":5,"streaming":true}`},
		"half": {llm.Message{Role: llm.RoleAssistant, Timestamp: 5, Content: []llm.Block{{Type: llm.BlockThinking}, text("A pri")}},
			`{"id":"live-1","role":"assistant","content":[{"type":"thinking","text":""},{"type":"text","text":"A pri"}],"timestamp":5,"streaming":true}`},
		"call without arguments yet": {llm.Message{Role: llm.RoleAssistant, Content: []llm.Block{{Type: llm.BlockToolCall, ID: "c", Name: "read", Arguments: json.RawMessage(`{"pa`)}}},
			`{"id":"live-1","role":"assistant","content":[{"type":"tool_call","id":"c","name":"read","arguments":{}}],"timestamp":0,"streaming":true}`},
	} {
		if got := encode(t, wire.Streaming("live-1", c.message)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

// TestForeignBytes: what a tool or a model says live may be no UTF-8; the wire takes nothing else.
func TestForeignBytes(t *testing.T) {
	const bad = "a\xffb"
	failed := true
	for _, m := range []llm.Message{
		{Role: llm.RoleUser, Content: []llm.Block{text(bad)}},
		{Role: llm.RoleAssistant, ErrorMessage: bad, Content: []llm.Block{
			{Type: llm.BlockThinking, Thinking: bad}, {Type: llm.BlockToolCall, ID: bad, Name: bad, Arguments: json.RawMessage(`"` + bad + `"`)},
			{Type: llm.BlockImage, Data: bad, MimeType: bad},
		}},
		{Role: llm.RoleToolResult, ToolCallID: bad, ToolName: bad, IsError: &failed, Details: json.RawMessage(`"` + bad + `"`), Content: []llm.Block{text(bad)}},
		{Role: "bashExecution", Content: []llm.Block{text(bad)}},
	} {
		for _, out := range []protocol.Message{wire.Recorded("e", "no id", m), wire.Streaming("e", m)} {
			if raw := encode(t, out); strings.Contains(raw, "requestId") || !strings.Contains(raw, "\ufffd") {
				t.Errorf("%s", raw)
			}
		}
	}
}

// TestBlocksLoseNothing: a delta counts blocks, so each block of a message has its place.
func TestBlocksLoseNothing(t *testing.T) {
	content := []llm.Block{
		text(""), {Type: llm.BlockThinking, Redacted: true, Data: "x"}, {Type: llm.BlockImage, Data: "aGk=", MimeType: "image/png"},
		{Type: llm.BlockToolCall, ID: "", Name: "", Arguments: json.RawMessage(`[1]`)}, {Type: "future"}, text("end"),
	}
	blocks := wire.Blocks(content)
	if len(blocks) != len(content) {
		t.Fatalf("%d blocks of %d", len(blocks), len(content))
	}
	for i, b := range blocks {
		encode(t, b)
		want := map[llm.BlockType]protocol.BlockType{
			llm.BlockText: protocol.BlockText, llm.BlockThinking: protocol.BlockThinking, llm.BlockToolCall: protocol.BlockToolCall,
		}[content[i].Type]
		if want == "" {
			want = protocol.BlockExtension
		}
		if b.Type != want {
			t.Errorf("block %d is %s, want %s", i, b.Type, want)
		}
	}
	if empty := wire.Blocks(nil); empty == nil {
		t.Error("no blocks are null on the wire")
	}
}

func lend(t *testing.T, p connection.Provider, base, key string) connection.Lent {
	t.Helper()
	l, err := connection.Lend("r1", p, base, key)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestConnections(t *testing.T) {
	var lines strings.Builder
	for _, l := range []connection.Lent{
		connection.Offline(), lend(t, connection.OpenAI, "", "sk-secret"), lend(t, connection.Anthropic, "https://proxy.example", "sk-secret"),
		lend(t, connection.Google, "", "sk-secret"), lend(t, connection.Ollama, "", ""), lend(t, connection.OpenAI, "http://127.0.0.1:8080/v1", ""),
	} {
		lines.WriteString(encode(t, wire.Connection(l.Definition)) + "\n" + encode(t, wire.Catalog(l.Definition)) + "\n")
		b, err := l.Bind(connection.OfflineModel)
		if err != nil {
			t.Fatal(err)
		}
		binding := wire.Binding(b)
		encode(t, binding)
		if diff := cmp.Diff(wire.Connection(l.Definition), binding.Connection); diff != "" || binding.ModelID != connection.OfflineModel {
			t.Errorf("binding %+v: %s", binding, diff)
		}
	}
	if strings.Contains(lines.String(), "sk-secret") {
		t.Error("a key is on the wire")
	}
	golden(t, "connections.jsonl", lines.String())
}

func TestUsage(t *testing.T) {
	u := wire.Usage(llm.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 1, TotalTokens: 10, Cost: llm.Cost{Total: 0.5}})
	const want = `{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":10}`
	if got := encode(t, *u); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
