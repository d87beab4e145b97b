package session_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/repa-app/repa/agent/session"
)

var lines = []string{
	`{"type":"message","id":"a","parentId":null,"timestamp":"2026-12-01T08:00:00.000Z","message":{"role":"user","content":[{"type":"text","text":"é\u00e9\n\"\\"}]},"repa":{"requestId":"r"}}`,
	`{"type":"compaction","id":"b","parentId":"a","summary":"s","firstKeptEntryId":"a","systemMessage":{}}`,
	`{"type":"context_edit","id":"c","parentId":"b","targetId":"a","replacement":{"content":"x"}}`,
	`{"type":"label","id":"d","parentId":"c"} `, `{"a":[1,-0.5e+7,true,false,null,{}],"a":[[]]}`,
	`{"type":"x","id":"y"`, `{"a":01}`, `{"a":"` + "\x01" + `"}`, `{"a":"\u12"}`, `{"a":-}`, `{"a":1.}`, `{"a":1e}`, `{,}`, `{"a" 1}`, `{"a":1,}`,
	`[]`, ``, ` `, "\ufeff{}", strings.Repeat(`{"a":`, 200), "\xff", `{"type":"message","id":"x","message":{"role":7}}`,
}

// The reader takes any bytes: it never panics, accepts exactly the lines that are JSON objects with type and id, keeps every
// byte, and a listing agrees with it.
func FuzzLine(f *testing.F) {
	for _, l := range lines {
		f.Add(l)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.Contains(line, "\n") {
			t.Skip("two lines")
		}
		file := header + line + "\n"
		disk := put(t, "f.jsonl", file)
		s, err := session.Open(disk, "f.jsonl", session.Source{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var object map[string]any
		isObject := json.Unmarshal([]byte(line), &object) == nil && object != nil
		accepted := s.Snapshot().Leaf != nil
		if accepted && !isObject {
			t.Errorf("accepted %q", line)
		}
		notJSON := len(s.Damage()) == 1 && s.Damage()[0].Reason == "not a JSON object"
		if isObject == notJSON && strings.TrimSpace(line) != "" {
			t.Errorf("%q: is an object: %v, damage %v", line, isObject, s.Damage())
		}
		if accepted {
			if e := s.Snapshot().Leaf; e.Raw() != line {
				t.Errorf("kept %q of %q", e.Raw(), line)
			}
		}
		for _, m := range s.Snapshot().Messages {
			if raw, err := m.JSON(); err == nil && !json.Valid(raw) {
				t.Errorf("message %q", raw)
			}
			m.Model()
		}
		s.Snapshot().Context()
		info, err := session.Peek(disk, "f.jsonl")
		if err != nil || info.Damage != len(s.Damage()) {
			t.Errorf("listing: %+v, %v; damage %v", info, err, s.Damage())
		}
		if content(t, disk, "f.jsonl") != file {
			t.Error("the file changed")
		}
	})
}

// Any bytes as a file: either it opens, or it is refused with a reason; it stays as it is.
func FuzzFile(f *testing.F) {
	f.Add(header + strings.Join(lines, "\n"))
	f.Add("noise\n\n" + header)
	f.Add(`{"type":"session","id":"x"}`)
	f.Add(`{"type":"session","id":"x","version":"3"}`)
	f.Fuzz(func(t *testing.T, file string) {
		disk := put(t, "f.jsonl", file)
		s, err := session.Open(disk, "f.jsonl", session.Source{})
		if content(t, disk, "f.jsonl") != file {
			t.Error("opening changed the file")
		}
		info, perr := session.Peek(disk, "f.jsonl")
		if err != nil {
			if codeOf(err) != "invalid_storage" {
				t.Errorf("refused with %v", err)
			}
			if errors.Is(err, session.ErrNotSession) != (perr != nil) {
				t.Errorf("open: %v; listing: %v", err, perr)
			}
			return
		}
		defer s.Close()
		if perr != nil || info.ID != s.Snapshot().Header.ID {
			t.Errorf("listing: %+v, %v", info, perr)
		}
		s.Snapshot().Context()
		if _, err := s.Append(session.NewSessionInfo("more")); err != nil {
			t.Fatal(err)
		}
		if got := content(t, disk, "f.jsonl"); !strings.HasPrefix(got, file) {
			t.Error("an append changed what was there")
		}
		again := open(t, disk, "f.jsonl")
		if again.Snapshot().Leaf.ID != s.Snapshot().Leaf.ID {
			t.Error("the appended entry is not the leaf after reopening")
		}
	})
}
