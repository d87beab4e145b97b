package session_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/session"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/testkit/crashfs"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func drafts() []session.Draft {
	failed := true
	call := assistant("I look it up.")
	call.StopReason = llm.StopToolUse
	call.Content = append(call.Content, llm.Block{Type: llm.BlockToolCall, ID: "c1", Name: "read", Arguments: json.RawMessage(`{"path":"a.md"}`)})
	return []session.Draft{
		session.NewModelChange("p", "m"),
		session.NewThinkingLevel("high"),
		session.NewMessage(user("What is <a> prime? 素数\n"), "request-1"),
		session.NewMessage(call, "request-1"),
		session.NewMessage(llm.Message{
			Role: llm.RoleToolResult, ToolCallID: "c1", ToolName: "read", IsError: &failed, Details: json.RawMessage(`{ "code": "not_found" }`),
			Content: []llm.Block{{Type: llm.BlockText, Text: "a.md does not exist"}}, Timestamp: 3,
		}, ""),
		session.NewCustomMessage("repa.notice", []llm.Block{{Type: llm.BlockText, Text: "a.md changed"}}, false, json.RawMessage(`{"n":1}`), "request-2"),
		session.NewSessionInfo("  Primes,\r\nfirst look "),
	}
}

func TestGolden(t *testing.T) {
	disk := crashfs.New()
	s := create(t, disk)
	add(t, s, drafts()...)
	got := content(t, disk, s.Name())
	golden := filepath.Join("testdata", "written.jsonl")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
	if !regexp.MustCompile(`^2026-12-01T08-30-\d\d-123Z_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.jsonl$`).MatchString(s.Name()) {
		t.Errorf("file name %s", s.Name())
	}
	snap := s.Snapshot()
	if snap.Name != "Primes, first look" || snap.ThinkingLevel() != "high" || snap.Leaf.Type != session.TypeSessionInfo || len(snap.Context()) != 4 {
		t.Errorf("name %q, level %s, leaf %s, %d messages", snap.Name, snap.ThinkingLevel(), snap.Leaf.Type, len(snap.Context()))
	}
	if e := snap.Branch[2]; e.RequestID != "request-1" || e.Parent() != snap.Branch[1] || e.Line != 4 || e.Time().IsZero() {
		t.Errorf("entry %+v", e)
	}
	same(t, snap, open(t, disk, s.Name()).Snapshot())
}

func TestCreate(t *testing.T) {
	dir := t.TempDir()
	fsys, err := vfs.OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	opts := session.Options{ID: "my-session", CWD: "/space", ParentSession: "/old.jsonl", Source: seeded()}
	s, err := session.Create(fsys, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	info, err := os.Stat(filepath.Join(dir, s.Name()))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if h := s.Snapshot().Header; h.ID != "my-session" || h.CWD != "/space" || h.ParentSession != "/old.jsonl" || h.Created().IsZero() {
		t.Errorf("header %+v", h)
	}
	opts.Source = seeded()
	if _, err := session.Create(fsys, opts); codeOf(err) != "storage" {
		t.Errorf("creating it again: %v", err)
	}
	for _, id := range []string{"-a", "a/b", "a.", "..", strings.Repeat("x", 129), "a b"} {
		if _, err := session.Create(fsys, session.Options{ID: id}); codeOf(err) != "invalid_input" {
			t.Errorf("id %q: %v", id, err)
		}
	}
	disk := crashfs.New()
	c := create(t, disk)
	if name := c.Name(); content(t, disk.Crash(nil), name) != content(t, disk, name) {
		t.Error("a crash right after Create loses the file")
	}
}

// Whatever call of Create fails, no session and no file is left.
func TestCreateFaults(t *testing.T) {
	for n := 1; ; n++ {
		disk := crashfs.New()
		disk.FailNth(n, io.ErrUnexpectedEOF)
		s, err := session.Create(disk, session.Options{})
		calls := disk.Calls()
		disk.SetFault(nil)
		if n > calls {
			if err != nil {
				t.Fatal(err)
			}
			s.Close()
			return
		}
		if err == nil || codeOf(err) != "storage" {
			t.Errorf("call %d failed, Create says %v", n, err)
		}
		if files, _ := disk.ReadDir("."); len(files) != 0 {
			t.Errorf("call %d failed: left %v", n, files)
		}
	}
}

// One write or sync of Append fails, in every position. The store never shows what is not durable, and what it acknowledged
// survives a crash, with nothing pointing to a missing parent.
func TestAppendFaults(t *testing.T) {
	for _, fault := range []struct {
		op     string
		err    error
		usable bool // for further appends
	}{{"write", io.ErrUnexpectedEOF, true}, {"write", crashfs.ErrShortWrite, false}, {"sync", io.ErrUnexpectedEOF, false}} {
		for _, stuck := range []bool{false, true} { // the disk refuses to cut the bytes off again
			t.Run(fmt.Sprint(fault.op, fault.usable, stuck), func(t *testing.T) {
				disk := crashfs.New()
				s := create(t, disk)
				add(t, s, drafts()...)
				before, text := s.Snapshot(), content(t, disk, s.Name())
				disk.SetFault(func(c crashfs.Call) error {
					if c.Op == fault.op {
						return fault.err
					}
					if c.Op == "truncate" && stuck {
						return io.ErrClosedPipe
					}
					return nil
				})
				_, err := s.Append(session.NewMessage(user("lost"), ""), session.NewMessage(assistant("lost too"), ""))
				disk.SetFault(nil)
				if codeOf(err) != "storage" {
					t.Fatalf("got %v", err)
				}
				if s.Snapshot() != before {
					t.Error("the failed entries are shown")
				}
				if got := content(t, disk, s.Name()); !stuck && got != text {
					t.Errorf("the failed bytes are still in the file: %q", strings.TrimPrefix(got, text))
				}
				_, err = s.Append(session.NewMessage(user("next"), ""))
				if (err == nil) != fault.usable || !fault.usable && !errors.Is(err, session.ErrBroken) {
					t.Errorf("the next append: %v", err)
				}
				again := open(t, disk, s.Name())
				ids := add(t, again, session.NewMessage(user("after reopening"), ""))
				if stuck {
					return // what a disk that fails twice keeps is not promised
				}
				crashed := open(t, disk.Crash(nil), s.Name())
				if leaf := crashed.Snapshot().Leaf; leaf.ID != ids[0] {
					t.Errorf("the acknowledged entry is gone after a crash: leaf %s", leaf.Raw())
				}
				for _, e := range crashed.Snapshot().Branch[1:] {
					if e.Parent() == nil {
						t.Errorf("entry %s lost its parent", e.ID)
					}
				}
				if len(crashed.Snapshot().Branch) < len(before.Branch)+1 {
					t.Error("acknowledged entries are gone after a crash")
				}
			})
		}
	}
}

// After a crash at any moment the acknowledged lines are whole, and the file opens and takes appends.
func TestCrash(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		disk := crashfs.New()
		s, err := session.Create(disk, session.Options{Source: seeded()})
		if err != nil {
			rt.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Append(drafts()...); err != nil {
			rt.Fatal(err)
		}
		acknowledged, _ := vfs.ReadFile(disk, s.Name(), -1)
		disk.SetFault(func(c crashfs.Call) error {
			if c.Op == "sync" || c.Op == "truncate" {
				return io.ErrClosedPipe // the machine dies here
			}
			return nil
		})
		_, err = s.Append(session.NewMessage(user(strings.Repeat("long ", rapid.IntRange(1, 500).Draw(rt, "length"))), ""), session.NewMessage(assistant("x"), ""))
		if err == nil {
			rt.Fatal("acknowledged without a sync")
		}
		disk.SetFault(nil)
		for after := range disk.Subsets(64) {
			wantAcknowledged(rt, after, s.Name(), string(acknowledged))
		}
	})
}

// wantAcknowledged opens a session on a disk as a crash left it, appends to it, and wants the acknowledged entries on the branch.
func wantAcknowledged(rt *rapid.T, disk *crashfs.FS, name, acknowledged string) {
	data, _ := vfs.ReadFile(disk, name, -1)
	if !strings.HasPrefix(string(data), acknowledged) {
		rt.Fatal("acknowledged bytes are gone")
	}
	again, err := session.Open(disk, name, seeded())
	if err != nil {
		rt.Fatal(err)
	}
	defer again.Close()
	ids, err := again.Append(session.NewMessage(user("goes on"), ""))
	if err != nil {
		rt.Fatal(err)
	}
	third, err := session.Open(disk.Crash(nil), name, session.Source{})
	if err != nil {
		rt.Fatal(err)
	}
	defer third.Close()
	if snap := third.Snapshot(); snap.Leaf.ID != ids[0] || len(snap.Branch) < len(drafts())+1 {
		rt.Fatalf("leaf %s, %d entries", snap.Leaf.Raw(), len(snap.Branch))
	}
}

// Appending, in any batches and of any types, and opening give the same session and the same bytes.
func TestAppendAndOpenAgree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		disk := crashfs.New()
		s, err := session.Create(disk, session.Options{Source: seeded()})
		if err != nil {
			rt.Fatal(err)
		}
		defer s.Close()
		known := []string{"gone"}
		for range rapid.IntRange(1, 12).Draw(rt, "batches") {
			batch := rapid.SliceOfN(draft(known), 1, 4).Draw(rt, "batch")
			ids, err := s.Append(batch...)
			if err != nil {
				rt.Fatal(err)
			}
			known = append(known, ids...)
			if rapid.Bool().Draw(rt, "look") {
				s.Snapshot().Context()
			}
		}
		before, _ := vfs.ReadFile(disk, s.Name(), -1)
		again, err := session.Open(disk, s.Name(), session.Source{})
		if err != nil {
			rt.Fatal(err)
		}
		defer again.Close()
		if len(again.Damage()) > 0 {
			rt.Fatal(again.Damage())
		}
		same(rt, again.Snapshot(), s.Snapshot())
		after, _ := vfs.ReadFile(disk, s.Name(), -1)
		if string(before) != string(after) {
			rt.Fatal("opening changed the file")
		}
		lines := []string{again.Snapshot().Header.Raw}
		for _, e := range again.Snapshot().Entries {
			lines = append(lines, e.Raw())
		}
		if got := strings.Join(lines, "\n") + "\n"; got != string(before) {
			rt.Fatalf("the kept lines differ from the file:\n%s\n%s", got, before)
		}
	})
}

// draft makes an entry of any type that may refer to one of the known ones.
func draft(known []string) *rapid.Generator[session.Draft] {
	return rapid.Custom(func(t *rapid.T) session.Draft {
		text := rapid.String().Draw(t, "text")
		id := rapid.SampledFrom(known).Draw(t, "id")
		request := rapid.SampledFrom([]string{"", "r1", "é\""}).Draw(t, "request")
		fields := func(kind string, members map[string]any) session.Draft {
			return session.Draft{Type: kind, Fields: members, RequestID: request}
		}
		return rapid.SampledFrom([]session.Draft{
			session.NewMessage(user(text), request),
			session.NewMessage(assistant(text), request),
			session.NewModelChange("p", text),
			session.NewThinkingLevel("low"),
			session.NewSessionInfo(text),
			session.NewCustomMessage("x", []llm.Block{{Type: llm.BlockText, Text: text}}, true, nil, request),
			fields(session.TypeMessage, map[string]any{"message": map[string]any{"role": "system", "content": text}}),
			fields(session.TypeMessage, map[string]any{"message": map[string]any{"role": "toolResult", "toolCallId": "c", "content": nil}}),
			fields(session.TypeCompaction, map[string]any{"summary": text, "firstKeptEntryId": id, "tokensBefore": 1, "systemMessage": map[string]any{"role": "system", "content": text}}),
			fields(session.TypeBranchSummary, map[string]any{"summary": text, "fromId": id}),
			fields(session.TypeContextEdit, map[string]any{"targetId": id, "replacement": nil}),
			fields(session.TypeContextEdit, map[string]any{"targetId": id, "replacement": map[string]any{"content": text}}),
			fields(session.TypeContextEdit, map[string]any{"targetId": id, "replacement": 7}),
			fields(session.TypeLabel, map[string]any{"targetId": id, "label": text}),
			fields("future", map[string]any{text: []any{text, nil}, "x": 1e300}),
			{Type: session.TypeCustom},
		}).Draw(t, "draft")
	})
}

type reporter interface {
	Helper()
	Error(...any)
}

// same compares everything that a snapshot shows.
func same(t reporter, want, got *session.Snapshot) {
	t.Helper()
	type view struct {
		Name, Leaf, Level, Provider, Model string
		Branch, Entries                    []string
		Context                            []llm.Message
		Messages                           []string
	}
	of := func(s *session.Snapshot) view {
		v := view{Name: s.Name, Level: s.ThinkingLevel(), Context: s.Context()}
		v.Provider, v.Model = s.Model()
		if s.Leaf != nil {
			v.Leaf = s.Leaf.ID
		}
		for _, e := range s.Branch {
			parent := ""
			if e.Parent() != nil {
				parent = e.Parent().ID
			}
			v.Branch = append(v.Branch, fmt.Sprint(e.Line, parent, e.RequestID, e.Role, e.Raw()))
		}
		for _, e := range s.Entries {
			v.Entries = append(v.Entries, e.ID)
		}
		for _, m := range s.Messages {
			raw, err := m.JSON()
			v.Messages = append(v.Messages, fmt.Sprint(m.Role, m.Entry.ID, string(raw), err))
		}
		return v
	}
	if diff := cmp.Diff(of(want), of(got)); diff != "" {
		t.Error(diff)
	}
}

func TestDraftsThatCannotBeWritten(t *testing.T) {
	disk := crashfs.New()
	s := create(t, disk)
	before := content(t, disk, s.Name())
	for name, d := range map[string]session.Draft{
		"no type":         {},
		"not an object":   {Type: "x", Fields: []int{1}},
		"not encodable":   {Type: "x", Fields: func() {}},
		"a second header": {Type: "session"},
		"no message":      {Type: session.TypeMessage},
	} {
		if _, err := s.Append(session.NewMessage(user("fine"), ""), d); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if content(t, disk, s.Name()) != before || s.Snapshot().Leaf != nil {
		t.Error("a refused batch left something")
	}
	if ids, err := s.Append(); err != nil || ids != nil {
		t.Errorf("nothing to append: %v, %v", ids, err)
	}
}

// The first four random bytes repeat, so the id is taken and another one is drawn.
func TestIDCollision(t *testing.T) {
	disk := crashfs.New()
	s, err := session.Create(disk, session.Options{ID: "s", Source: session.Source{Rand: zeros{}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ids := add(t, s, session.NewMessage(user("a"), ""), session.NewMessage(user("b"), ""))
	if ids[0] != "00000000" || ids[1] != "00000000-0000-4000-8000-000000000000" {
		t.Errorf("ids %v", ids)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// Parents in a circle, ids used twice and parents that come later are legal input.
func TestOddTrees(t *testing.T) {
	message := func(id, parent string) string {
		return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%q,"message":{"role":"user","content":%q}}`, id, parent, id) + "\n"
	}
	for name, c := range map[string]struct {
		lines  string
		branch string
		damage int
	}{
		"its own parent":    {message("a", "a"), "a", 0},
		"a circle":          {message("a", "c") + message("b", "a") + message("c", "b"), "a b c", 0},
		"a tail and circle": {message("a", "b") + message("b", "a") + message("c", "b"), "a b c", 0},
		"later parent":      {message("a", "b") + message("b", ""), "b", 0},
		"id twice":          {message("a", "") + message("a", "") + message("b", "a"), "a b", 1},
		"bad parent":        {`{"type":"x","id":"a","parentId":7}` + "\n", "", 1},
		"two headers":       {header + message("a", ""), "a", 1},
		"escaped names":     {`{"\u0074ype":"label","id":"\u0061"}` + "\n", "a", 0},
	} {
		s := open(t, put(t, "f.jsonl", header+c.lines), "f.jsonl")
		if got := strings.Join(ids(s.Snapshot().Branch), " "); got != c.branch || len(s.Damage()) != c.damage {
			t.Errorf("%s: branch %q, want %q; damage %v", name, got, c.branch, s.Damage())
		}
	}
}

func TestTornLastLine(t *testing.T) {
	whole := `{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"hi"}}`
	for _, tail := range []string{`{"type":"mess`, whole[:len(whole)-1], "\x00\x00\x00"} {
		file := header + whole + "\n" + tail
		disk := put(t, "f.jsonl", file)
		s := open(t, disk, "f.jsonl")
		compare(t, "damage", []session.Damage{{Line: 3, Offset: int64(len(header) + len(whole) + 1), Reason: "an incomplete last line"}}, s.Damage())
		add(t, s, session.NewMessage(user("on"), ""))
		if got := content(t, disk, "f.jsonl"); !strings.HasPrefix(got, file+"\n{") {
			t.Errorf("file %q", got)
		}
		again := open(t, disk, "f.jsonl")
		same(t, again.Snapshot(), s.Snapshot())
		if len(again.Snapshot().Branch) != 2 {
			t.Errorf("branch %v", ids(again.Snapshot().Branch))
		}
	}
}

// Readers use old and new snapshots while the owner appends.
func TestReadersDuringAppends(t *testing.T) {
	s := create(t, crashfs.New())
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			var kept []*session.Snapshot
			for {
				snap := s.Snapshot()
				kept = append(kept, snap)
				for _, old := range []*session.Snapshot{kept[0], snap} {
					if len(old.Context()) != len(old.Branch) || len(old.Branch) > 0 && old.Branch[len(old.Branch)-1] != old.Leaf {
						t.Error("a snapshot changed")
						return
					}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for range 300 {
		add(t, s, session.NewMessage(user("a"), ""), session.NewMessage(assistant("b"), ""))
	}
	close(stop)
	readers.Wait()
}

func TestClosedStore(t *testing.T) {
	s := create(t, crashfs.New())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(session.NewSessionInfo("x")); !errors.Is(err, session.ErrClosed) {
		t.Errorf("append to a closed store: %v", err)
	}
	if s.Snapshot().Header.ID == "" {
		t.Error("the snapshot is gone")
	}
}
