package session_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/session"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/testkit/crashfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seeded gives the same ids and times on each run.
func seeded() session.Source {
	now := time.Date(2026, 12, 1, 8, 30, 0, 123e6, time.UTC)
	return session.Source{
		Rand: chance{rand.New(rand.NewPCG(1, 2))},
		Now: func() time.Time {
			now = now.Add(time.Second)
			return now
		},
	}
}

type chance struct{ *rand.Rand }

func (c chance) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(c.Uint32())
	}
	return len(p), nil
}

func user(text string) llm.Message {
	return llm.Message{Role: llm.RoleUser, Content: []llm.Block{{Type: llm.BlockText, Text: text}}, Timestamp: 1}
}

func assistant(text string) llm.Message {
	return llm.Message{
		Role: llm.RoleAssistant, Provider: "p", Model: "m", StopReason: llm.StopEnd, Usage: &llm.Usage{Input: 1, Output: 2, TotalTokens: 3},
		Content: []llm.Block{{Type: llm.BlockText, Text: text}}, Timestamp: 2,
	}
}

func create(t testing.TB, fsys vfs.FS) *session.Store {
	t.Helper()
	s, err := session.Create(fsys, session.Options{CWD: "/home/learner/space", Source: seeded()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func open(t testing.TB, fsys vfs.FS, name string) *session.Store {
	t.Helper()
	s, err := session.Open(fsys, name, session.Source{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func add(t testing.TB, s *session.Store, drafts ...session.Draft) []string {
	t.Helper()
	ids, err := s.Append(drafts...)
	if err != nil {
		t.Fatal(err)
	}
	if len(ids) != len(drafts) {
		t.Fatalf("%d ids for %d entries", len(ids), len(drafts))
	}
	return ids
}

// put writes content as the file name of a fresh disk.
func put(t testing.TB, name, content string) *crashfs.FS {
	t.Helper()
	disk := crashfs.New()
	if err := vfs.WriteFile(disk, name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return disk
}

func content(t testing.TB, fsys vfs.FS, name string) string {
	t.Helper()
	data, err := vfs.ReadFile(fsys, name, -1)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func fixture(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "pi", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func codeOf(err error) string {
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		return coded.Code()
	}
	return ""
}

const header = `{"type":"session","version":3,"id":"s1","timestamp":"2026-12-01T08:00:00.000Z","cwd":"/space"}` + "\n"
