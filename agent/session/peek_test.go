package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/repa-app/repa/agent/session"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/testkit/crashfs"
)

func at(s string) time.Time {
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return v
}

func TestPeek(t *testing.T) {
	long := strings.Repeat("素数 is\n\n prime ", 40)
	image := strings.Repeat("A", 3<<20)
	message := func(role, content string) string {
		return fmt.Sprintf(`{"type":"message","id":"%d","timestamp":"2026-12-01T09:00:00.000Z","message":{"role":%q,"content":%s}}`, len(content), role, content) + "\n"
	}
	quoted := func(s string) string {
		b, _ := json.Marshal(s)
		return string(b)
	}
	named := `{"type":"session_info","id":"n","name":"Old"}` + "\n" + `{"type":"session_info","id":"n2","name":"New\nname"}` + "\n"
	created, updated := at("2026-12-01T08:00:00Z"), at("2026-12-01T09:00:00Z")
	for name, c := range map[string]struct {
		file string
		want session.Info
	}{
		"empty session": {header, session.Info{ID: "s1", UpdatedAt: created}},
		"text": {header + message("user", quoted("Hello\nthere")) + message("assistant", `[]`) + message("toolResult", `[]`),
			session.Info{ID: "s1", Title: "Hello there", UpdatedAt: updated, Messages: 2}},
		"long text": {header + message("user", quoted(long)), session.Info{ID: "s1", Title: string([]rune(strings.Join(strings.Fields(long), " "))[:120]), UpdatedAt: updated, Messages: 1}},
		"named":     {header + message("user", `"x"`) + named, session.Info{ID: "s1", Title: "New name", UpdatedAt: updated, Messages: 1}},
		"image first": {header + message("user", `[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"text","text":"what is this"}]`),
			session.Info{ID: "s1", Title: "what is this", UpdatedAt: updated, Messages: 1}},
		"huge line": {header + message("user", `[{"type":"text","text":"look at this"},{"type":"image","data":"`+image+`"}]`) + message("user", `"second"`),
			session.Info{ID: "s1", Title: "look at this", UpdatedAt: updated, Messages: 2}},
		"damage": {"noise\n" + header + "noise\n\n" + message("user", `"x"`) + `{"type":"mess`, session.Info{ID: "s1", Title: "x", UpdatedAt: updated, Messages: 1, Damage: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.File, c.want.Version, c.want.CWD, c.want.CreatedAt = "f.jsonl", 3, "/space", created
			got, err := session.Peek(put(t, "f.jsonl", c.file), "f.jsonl")
			if err != nil {
				t.Fatal(err)
			}
			compare(t, "info", c.want, got)
		})
	}
}

func TestPeekOldVersions(t *testing.T) {
	for v := 1; v <= 2; v++ {
		name := fmt.Sprintf("legacy-v%d.jsonl", v)
		got, err := session.Peek(put(t, name, fixture(t, name)), name)
		if err != nil || got.Version != v || got.Title == "" || got.Messages < 3 || got.Damage != 0 {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

func TestList(t *testing.T) {
	disk := crashfs.New()
	s := create(t, disk)
	add(t, s, session.NewMessage(user("Hello"), ""))
	for name, text := range map[string]string{"a.jsonl": "noise", "b.txt": header, "z.jsonl": header} {
		if err := vfs.WriteFile(disk, name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := disk.Mkdir("dir.jsonl", 0o700); err != nil {
		t.Fatal(err)
	}
	var got []string
	list := func(i session.Info, err error) bool {
		got = append(got, fmt.Sprint(i.File == s.Name(), i.Title, errors.Is(err, session.ErrNotSession)))
		return true
	}
	if err := session.List(t.Context(), disk, list); err != nil {
		t.Fatal(err)
	}
	compare(t, "list", []string{"trueHellofalse", "falsetrue", "falsefalse"}, got)
	got = nil
	if err := session.List(t.Context(), disk, func(i session.Info, err error) bool { list(i, err); return false }); err != nil || len(got) != 1 {
		t.Errorf("stopped after one: %v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := session.List(ctx, disk, list); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	disk.FailNth(1, io.ErrUnexpectedEOF)
	if err := session.List(t.Context(), disk, list); codeOf(err) != "storage" {
		t.Errorf("unreadable folder: %v", err)
	}
	disk.SetFault(func(c crashfs.Call) error {
		if c.Op == "read" {
			return io.ErrUnexpectedEOF
		}
		return nil
	})
	if _, err := session.Peek(disk, "z.jsonl"); codeOf(err) != "storage" {
		t.Errorf("unreadable file: %v", err)
	}
	if _, err := session.Open(disk, "z.jsonl", session.Source{}); codeOf(err) != "storage" {
		t.Errorf("opening an unreadable file: %v", err)
	}
}
