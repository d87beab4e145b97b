package agent_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/repa-app/repa/agent"
	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/session"
	"github.com/repa-app/repa/cas/vfs"
)

// stored is a session as a recorder. It measures the time spent on the disk.
type stored struct {
	store *session.Store
	spent time.Duration
}

func (s *stored) Append(_ context.Context, records []agent.Record) ([]string, error) {
	begun := time.Now()
	defer func() { s.spent += time.Since(begun) }()
	drafts := make([]session.Draft, len(records))
	for i, r := range records {
		drafts[i] = session.NewMessage(r.Message, r.RequestID)
	}
	return s.store.Append(drafts...)
}

func newSession(tb testing.TB) *stored {
	tb.Helper()
	fsys, err := vfs.OS(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	s, err := session.Create(fsys, session.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		s.Close()
		fsys.Close()
	})
	return &stored{store: s}
}

// A run on a real session file: what the loop reported is what the file says after it is opened again, and a next run goes on
// from there.
func TestRunOnASession(t *testing.T) {
	disk := newSession(t)
	for n := range 2 {
		b := setUp(calls(`look {"n":1}`, `ghost {}`), said("Done."))
		b.Recorder, b.History = disk, disk.store.Snapshot().Context()
		if got := agent.Run(t.Context(), b.Config); got.Status != agent.Completed {
			t.Fatal(got)
		}
		branch := disk.store.Snapshot().Branch
		if len(branch) != 5*(n+1) || len(b.model.requests[0].Messages) != 5*n+1 {
			t.Fatalf("run %d: %d entries, %d messages in the request", n, len(branch), len(b.model.requests[0].Messages))
		}
		i := 5 * n
		for _, e := range b.sink.events {
			if e.Type != agent.EventMessageEnd {
				continue
			}
			if e.EntryID != branch[i].ID || e.RequestID != branch[i].RequestID || string(e.Message.Role) != branch[i].Role {
				t.Errorf("event %+v, entry %s", e, branch[i].Raw())
			}
			i++
		}
	}
}

// BenchmarkTurn is the loop's own time with a model and tools that answer at once, in the middle of a history of 100 messages.
func BenchmarkTurn(b *testing.B) {
	history := make([]llm.Message, 100)
	for i := range history {
		history[i] = llm.Message{Role: []llm.Role{llm.RoleUser, llm.RoleAssistant}[i%2], Content: []llm.Block{{Type: llm.BlockText, Text: "text"}}}
	}
	for _, c := range []struct {
		name    string
		answers []answer
	}{{"no tool", []answer{said("Done.")}}, {"one tool call", []answer{calls(`look {"n":1}`), said("Done.")}}} {
		run := func(b *testing.B, recorder func() agent.Recorder) {
			r := recorder()
			for i := 0; b.Loop(); i++ {
				s := setUp(c.answers...)
				s.History = history
				s.Sink, s.Inbox = nil, nil
				if s.Recorder = r; r == nil {
					s.Recorder = s.history
				}
				if got := agent.Run(context.Background(), s.Config); got.Status != agent.Completed {
					b.Fatal(got)
				}
			}
		}
		b.Run(fmt.Sprintf("%s/loop alone", c.name), func(b *testing.B) { run(b, func() agent.Recorder { return nil }) })
		b.Run(fmt.Sprintf("%s/with session file", c.name), func(b *testing.B) {
			disk := newSession(b)
			run(b, func() agent.Recorder { return disk })
			b.ReportMetric(float64(disk.spent.Nanoseconds())/float64(b.N), "ns-in-append/op")
		})
	}
}
