package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/agent"
	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/tool"
)

func TestAnswer(t *testing.T) {
	b := setUp(said("Hi."))
	b.Thinking, b.SessionID, b.MaxTokens, b.NoImages = "high", "s1", 99, true
	b.History = []llm.Message{{Role: llm.RoleUser}, {Role: llm.RoleAssistant}}
	got := agent.Run(t.Context(), b.Config)
	if got.Status != agent.Completed || got.Err != nil || got.StopReason != llm.StopEnd || got.Usage.TotalTokens != 11 || got.Undelivered != nil {
		t.Errorf("%+v", got)
	}
	if want := "user (r1): Hello\nassistant: Hi.\n"; b.history.transcript() != want {
		t.Error(b.history.transcript())
	}
	req := b.model.requests[0]
	if req.Model != "m" || req.System != "Be kind." || req.Thinking != "high" || req.SessionID != "s1" || req.MaxTokens != 99 || !req.NoImages || len(req.Tools) != 2 || len(req.Messages) != 3 {
		t.Errorf("%+v", req)
	}
	for _, r := range b.history.records {
		if r.Message.Timestamp == 0 {
			t.Error("a message has no time")
		}
	}
	if level := b.history.records[1].Message.ThinkingLevel; level != "high" {
		t.Errorf("thinking level %q", level)
	}
	if len(b.Config.History) != 2 {
		t.Error("the caller's history was changed")
	}
}

// The order of events is Pi's; ours adds phases.
func TestEventOrder(t *testing.T) {
	first := calls(`look {"n":1}`)
	first.message.Content = append([]llm.Block{{Type: llm.BlockThinking, Thinking: "Hm."}}, first.message.Content...)
	first.notices = []string{"Trying again in 2s"}
	b := setUp(first, said("Done."))
	agent.Run(t.Context(), b.Config)
	want := `run_start
turn_start
message_start user live-1 r1
message_end user live-1 e1 r1
phase model
phase retry
notice Trying again in 2s
phase model
message_start assistant live-2
delta live-2 thinking Hm.
delta live-2 text Looking.
tool_call live-2 c1
message_end assistant live-2 e2
phase tool
tool_start c1 look
tool_end c1 look
message_start toolResult live-3
message_end toolResult live-3 e3
turn_end
turn_start
phase model
message_start assistant live-4
delta live-4 text Done.
message_end assistant live-4 e4
turn_end
run_end completed
`
	if diff := cmp.Diff(want, b.sink.lines()); diff != "" {
		t.Error(diff)
	}
	for _, e := range b.sink.events {
		if e.Type == agent.EventTurnStart || e.Type == agent.EventTurnEnd {
			if e.Turn < 1 || e.Turn > 2 {
				t.Errorf("turn %d", e.Turn)
			}
		}
	}
}

// What is reported as stored is stored: at each message_end with an entry id the recorder has that entry.
func TestEventsFollowTheRecorder(t *testing.T) {
	b := setUp(calls(`look {}`, `find {}`), said("Done."))
	b.sink.at = func(_ int, e agent.Event) {
		switch e.Type {
		case agent.EventMessageEnd:
			var n int
			fmt.Sscanf(e.EntryID, "e%d", &n)
			if n < 1 || n > len(b.history.records) || b.history.records[n-1].Message.Role != e.Message.Role {
				t.Errorf("entry %q is not recorded", e.EntryID)
			}
		case agent.EventToolStart:
			if last := b.history.records[len(b.history.records)-1]; last.Message.Role != llm.RoleAssistant {
				t.Error("a tool starts before its call is recorded")
			}
		}
	}
	agent.Run(t.Context(), b.Config)
	if diff := cmp.Diff([]int{1, 1, 2, 1}, b.history.batches); diff != "" {
		t.Errorf("results are not recorded together: %s", diff)
	}
}

func TestSteeringAndFollowUps(t *testing.T) {
	t.Run("polls", func(t *testing.T) {
		b := setUp(calls(`look {}`), said("Done."))
		agent.Run(t.Context(), b.Config)
		// At the start, after each turn, before the next one when nothing waits; follow-ups only when the run would end.
		if diff := cmp.Diff([]string{"steer", "steer", "steer", "steer", "follow"}, b.inbox.polls); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("one at a time", func(t *testing.T) {
		b := setUp(said("A."), said("B."), said("C."), said("D."), said("E."))
		b.inbox.steering = []agent.Incoming{user("s1", "first"), user("s2", "second"), user("s3", "third")}
		b.inbox.followUps = []agent.Incoming{user("f1", "later"), user("f2", "last")}
		got := agent.Run(t.Context(), b.Config)
		want := "user (r1): Hello\nuser (s1): first\nassistant: A.\nuser (s2): second\nassistant: B.\nuser (s3): third\nassistant: C.\n" +
			"user (f1): later\nassistant: D.\nuser (f2): last\nassistant: E.\n"
		if diff := cmp.Diff(want, b.history.transcript()); diff != "" || got.Status != agent.Completed {
			t.Error(got, diff)
		}
	})
	t.Run("after tools", func(t *testing.T) {
		b := setUp(calls(`look {}`), said("Yes."))
		b.inbox.onPoll = func(n int) {
			if n == 2 {
				b.inbox.steering = []agent.Incoming{user("s1", "wait")}
			}
		}
		agent.Run(t.Context(), b.Config)
		want := "user (r1): Hello\nassistant [toolUse]: Looking. <c1 look {}>\ntoolResult c1: look {}\nuser (s1): wait\nassistant: Yes.\n"
		if diff := cmp.Diff(want, b.history.transcript()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("what came while the next turn was prepared", func(t *testing.T) {
		b := setUp(calls(`look {}`), said("Yes."))
		b.inbox.onPoll = func(n int) {
			if n == 3 {
				b.inbox.steering = []agent.Incoming{user("s1", "just in time")}
			}
		}
		agent.Run(t.Context(), b.Config)
		if !strings.Contains(b.history.transcript(), "toolResult c1: look {}\nuser (s1): just in time\nassistant: Yes.") {
			t.Error(b.history.transcript())
		}
	})
	t.Run("all at once", func(t *testing.T) {
		b := setUp(said("A."), said("B."))
		b.Inbox = everything{user("s1", "one"), user("s2", "two")}
		b.Config.Prompt = append(b.Config.Prompt, user("r2", "Also"))
		agent.Run(t.Context(), b.Config)
		if want := "user (r1): Hello\nuser (r2): Also\nuser (s1): one\nuser (s2): two\nassistant: A.\n"; !strings.HasPrefix(b.history.transcript(), want) {
			t.Error(b.history.transcript())
		}
		if b.history.batches[0] != 2 {
			t.Error("the prompt is not recorded together")
		}
	})
}

// everything delivers all its messages at each of the first polls of steering.
type everything []agent.Incoming

func (e everything) Steering(context.Context) []agent.Incoming  { return e }
func (e everything) FollowUps(context.Context) []agent.Incoming { return nil }

// Without a prompt a run continues: it answers what the history ends with, else it takes steering, then follow-ups, one at a time.
func TestContinue(t *testing.T) {
	question, reply := llm.Message{Role: llm.RoleUser}, llm.Message{Role: llm.RoleAssistant}
	for name, c := range map[string]struct {
		history             []llm.Message
		steering, followUps []agent.Incoming
		want                string
		code                string
	}{
		"unanswered":       {history: []llm.Message{question}, want: "assistant: A.\n"},
		"steering":         {history: []llm.Message{question, reply}, steering: []agent.Incoming{user("s1", "x"), user("s2", "y")}, want: "user (s1): x\nassistant: A.\nuser (s2): y\nassistant: B.\n"},
		"follow-up":        {history: []llm.Message{reply}, followUps: []agent.Incoming{user("f1", "x")}, want: "user (f1): x\nassistant: A.\n"},
		"nothing":          {history: []llm.Message{question, reply}, code: "runtime"},
		"empty history":    {code: "runtime"},
		"empty, follow-up": {followUps: []agent.Incoming{user("f1", "x")}, want: "user (f1): x\nassistant: A.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := setUp(said("A."), said("B."))
			b.Prompt, b.History = nil, c.history
			b.inbox.steering, b.inbox.followUps = c.steering, c.followUps
			got := agent.Run(t.Context(), b.Config)
			if diff := cmp.Diff(c.want, b.history.transcript()); diff != "" || codeOf(got.Err) != c.code {
				t.Error(got, diff)
			}
		})
	}
}

func TestProviderFailure(t *testing.T) {
	partial := calls(`look {}`)
	partial.err = errors.New("the line broke")
	silent := answer{silent: true, err: errors.New("no such model"), message: llm.Message{Usage: &llm.Usage{TotalTokens: 3}}}
	for name, c := range map[string]struct {
		answer answer
		want   string
	}{
		"partial": {partial, "assistant [error]: Looking. <c1 look {}>\n"},
		"silent":  {silent, "assistant [error]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := setUp(c.answer)
			b.inbox.onPoll = func(n int) {
				if n == 2 {
					t.Error("polled after a failure")
				}
			}
			got := agent.Run(t.Context(), b.Config)
			var provider *llm.Error
			if got.Status != agent.Failed || !errors.As(got.Err, &provider) || codeOf(got.Err) != "provider" || got.StopReason != llm.StopError {
				t.Errorf("%+v", got)
			}
			if diff := cmp.Diff("user (r1): Hello\n"+c.want, b.history.transcript()); diff != "" {
				t.Error(diff)
			}
			if lines := b.sink.lines(); !strings.HasSuffix(lines, "message_end assistant live-2 e2\nturn_end\nrun_end failed\n") || strings.Count(lines, "message_start assistant") != 1 {
				t.Error(lines)
			}
		})
	}
	t.Run("failed without an error", func(t *testing.T) {
		b := setUp()
		b.Provider = says{llm.Message{StopReason: llm.StopError, ErrorMessage: "refused"}}
		if got := agent.Run(t.Context(), b.Config); got.Status != agent.Failed || codeOf(got.Err) != "provider" || got.Err.Error() != "refused" {
			t.Errorf("%+v", got)
		}
	})
}

// says always answers the same, without streaming.
type says struct{ message llm.Message }

func (s says) Stream(context.Context, *llm.Request, func(llm.Event)) (*llm.Message, error) {
	m := s.message
	return &m, nil
}

// The n-th append fails, for every n: the run ends as failed with storage, nothing further happens, and nothing is lost.
func TestStorageFailure(t *testing.T) {
	script := func() *bench {
		b := setUp(calls(`look {}`, `find {}`), said("Done."), said("More."))
		b.inbox.steering = []agent.Incoming{user("s1", "steer")}
		b.inbox.followUps = []agent.Incoming{user("f1", "follow")}
		return b
	}
	whole := script()
	if got := agent.Run(t.Context(), whole.Config); got.Status != agent.Completed {
		t.Fatal(got)
	}
	for n := 1; n <= whole.history.calls; n++ {
		b := script()
		b.history.failAt = n
		got := agent.Run(t.Context(), b.Config)
		if got.Status != agent.Failed || codeOf(got.Err) != "storage" || !errors.Is(got.Err, errDisk) {
			t.Errorf("append %d: %+v", n, got)
		}
		if b.history.calls != n {
			t.Errorf("append %d failed, %d more followed", n, b.history.calls-n)
		}
		if !strings.HasPrefix(whole.history.transcript(), b.history.transcript()) {
			t.Errorf("append %d: %s", n, b.history.transcript())
		}
		accountedFor(t, b, got)
	}
}

// accountedFor checks that each message given to the run is in history or returned, once.
func accountedFor(t *testing.T, b *bench, got agent.Result) {
	t.Helper()
	want, have := map[string]int{}, map[string]int{}
	for _, in := range append(b.inbox.taken, b.Prompt...) {
		want[in.RequestID]++
	}
	for _, in := range got.Undelivered {
		have[in.RequestID]++
	}
	for _, r := range b.history.records {
		if r.RequestID != "" {
			have[r.RequestID]++
		}
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("messages lost or doubled: %s", diff)
	}
}

func TestLimits(t *testing.T) {
	t.Run("turns", func(t *testing.T) {
		var answers []answer
		for i := range 60 {
			answers = append(answers, calls(fmt.Sprintf(`look {"n":%d}`, i)))
		}
		b := setUp(answers...)
		got := agent.Run(t.Context(), b.Config)
		if got.Status != agent.Failed || codeOf(got.Err) != "runtime" || !strings.Contains(got.Err.Error(), "50 turns") || len(b.model.requests) != 50 {
			t.Errorf("%+v after %d requests", got, len(b.model.requests))
		}
		if last := b.history.records[len(b.history.records)-1]; last.Message.Role != llm.RoleToolResult {
			t.Error("the last call has no result")
		}
	})
	t.Run("input renews the turns", func(t *testing.T) {
		b := setUp(calls(`look {"n":1}`), calls(`look {"n":2}`), calls(`look {"n":3}`), said("Done."))
		b.MaxTurns = 2
		b.inbox.onPoll = func(n int) {
			if n == 4 { // after the second turn
				b.inbox.steering = []agent.Incoming{user("s1", "go on")}
			}
		}
		if got := agent.Run(t.Context(), b.Config); got.Status != agent.Completed {
			t.Errorf("%+v\n%s", got, b.history.transcript())
		}
	})
	t.Run("same call", func(t *testing.T) {
		b := setUp(calls(`look {"n":1}`), calls(`look { "n": 1 }`, `look {"n":1}`), calls(`look {"n":1}`), calls(`look {"n":1}`, `find {}`), said("Never."))
		got := agent.Run(t.Context(), b.Config)
		if got.Status != agent.Failed || codeOf(got.Err) != "runtime" || !strings.Contains(got.Err.Error(), "look 5 times") {
			t.Errorf("%+v", got)
		}
		tail := "toolResult c1 error: " + got.Err.Error() + "\ntoolResult c2 error: Not executed: the run was ended because the same call was repeated.\n"
		if !strings.HasSuffix(b.history.transcript(), tail) {
			t.Error(b.history.transcript())
		}
	})
	t.Run("other calls between", func(t *testing.T) {
		var answers []answer
		for range 6 {
			answers = append(answers, calls(`look {}`), calls(`find {}`))
		}
		b := setUp(append(answers, said("Done."))...)
		if got := agent.Run(t.Context(), b.Config); got.Status != agent.Completed {
			t.Errorf("%+v", got)
		}
	})
}

func TestConfiguration(t *testing.T) {
	b := setUp(said("Hi."))
	b.Tools = []tool.Tool{echo("look"), echo("look")}
	got := agent.Run(t.Context(), b.Config)
	if got.Status != agent.Failed || codeOf(got.Err) != "configuration" || len(got.Undelivered) != 1 || len(b.history.records) != 0 {
		t.Errorf("two tools of one name: %+v", got)
	}
	b = setUp(calls(`bad {}`, `look {}`), said("Hi."))
	b.Tools = []tool.Tool{echo("look"), spoiled{echo("bad")}}
	if got := agent.Run(t.Context(), b.Config); got.Status != agent.Completed || !strings.Contains(b.history.transcript(), "toolResult c1 error: parameters of tool bad: ") || !strings.Contains(b.history.transcript(), "toolResult c2: look {}") {
		t.Errorf("an unusable schema: %+v\n%s", got, b.history.transcript())
	}
	b = setUp(said("Hi."))
	b.Inbox, b.Sink, b.NewID = nil, nil, nil
	if got := agent.Run(t.Context(), b.Config); got.Status != agent.Completed {
		t.Errorf("defaults: %+v", got)
	}
}

// spoiled is a tool whose schema is unusable.
type spoiled struct{ *scripted }

func (s spoiled) Spec() llm.ToolSpec {
	return llm.ToolSpec{Name: s.name, Parameters: json.RawMessage(`{"type":7}`)}
}

// A panic outside a tool is the caller's.
func TestPanicPropagates(t *testing.T) {
	b := setUp(answer{before: func() { panic("provider fault") }})
	defer func() {
		if p := recover(); p != "provider fault" {
			t.Errorf("recovered %v", p)
		}
	}()
	agent.Run(t.Context(), b.Config)
}
