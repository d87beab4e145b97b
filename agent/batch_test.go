package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/agent"
	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/tool"
)

func TestImmediateFailures(t *testing.T) {
	unreadable := calls(`look {}`)
	unreadable.message.Content[1].ArgumentsError = "unexpected end"
	tooLong := calls(`look {"n":1}`, `find {}`)
	tooLong.message.StopReason = llm.StopLength
	for name, c := range map[string]struct {
		answer answer
		want   string
	}{
		"unknown tool": {calls(`ghost {}`, `look {}`), "toolResult c1 error: Tool ghost not found\ntoolResult c2: look {}\n"},
		"schema":       {calls(`look {"n":"x","m":1}`), "toolResult c1 error: Validation failed for tool \"look\":\n  - m: unknown property\n  - n: must be integer\n\nReceived arguments:\n{\n  \"n\": \"x\",\n  \"m\": 1\n}\n"},
		"coercion":     {calls(`look {"n":"7"}`), "toolResult c1: look {\"n\":7}\n"},
		"no arguments": {calls(`look`), "toolResult c1: look {}\n"},
		"unreadable":   {unreadable, "toolResult c1 error: The arguments for tool \"look\" could not be read: unexpected end. Make the call again with a valid JSON object.\n"},
		"output limit": {tooLong, "toolResult c1 error: The answer reached the output limit before this call was complete, so it was not executed. Make the call again with complete arguments; split large content into smaller calls.\n" +
			"toolResult c2 error: The answer reached the output limit before this call was complete, so it was not executed. Make the call again with complete arguments; split large content into smaller calls.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := setUp(c.answer, said("Done."))
			got := agent.Run(t.Context(), b.Config)
			if got.Status != agent.Completed {
				t.Errorf("%+v", got)
			}
			_, results, _ := strings.Cut(b.history.transcript(), ">\n")
			if diff := cmp.Diff(c.want+"assistant: Done.\n", results[strings.Index(results, "toolResult"):]); diff != "" {
				t.Error(diff)
			}
			if starts := strings.Count(b.sink.lines(), "tool_start"); starts != strings.Count(b.sink.lines(), "tool_end") || starts != strings.Count(c.want, "toolResult") {
				t.Error(b.sink.lines())
			}
		})
	}
}

// The arguments in history stay as the model wrote them; only what is executed is corrected.
func TestArgumentsAreNotRewritten(t *testing.T) {
	b := setUp(calls(`look {"n":"7"}`), said("Done."))
	agent.Run(t.Context(), b.Config)
	if got := string(b.history.records[1].Message.Content[1].Arguments); got != `{"n":"7"}` {
		t.Errorf("arguments %s", got)
	}
}

// Older shapes of arguments are folded before they are checked.
func TestPrepare(t *testing.T) {
	b := setUp(calls(`look {"old":3}`), said("Done."))
	b.Tools = []tool.Tool{folding{echo("look")}}
	agent.Run(t.Context(), b.Config)
	if !strings.Contains(b.history.transcript(), `toolResult c1: look {"n":3}`) {
		t.Error(b.history.transcript())
	}
}

type folding struct{ *scripted }

func (folding) Prepare(args json.RawMessage) json.RawMessage {
	return bytes.ReplaceAll(args, []byte("old"), []byte("n"))
}

// Calls run side by side, end in any order and are recorded in the order of the model.
func TestParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setUp(calls(`slow {}`, `ghost {}`, `quick {}`), said("Done."))
		wait := func(name string, d time.Duration) *scripted {
			return &scripted{name: name, do: func(context.Context, json.RawMessage) (tool.Result, error) {
				time.Sleep(d)
				return tool.Text(name), nil
			}}
		}
		b.Tools = []tool.Tool{wait("slow", time.Minute), wait("quick", time.Second)}
		begun := time.Now()
		agent.Run(t.Context(), b.Config)
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("took %v", took)
		}
		var order []string
		for _, e := range b.sink.events {
			if e.Type == agent.EventToolStart || e.Type == agent.EventToolEnd {
				order = append(order, string(e.Type)+" "+e.Tool)
			}
		}
		want := []string{"tool_start slow", "tool_start ghost", "tool_end ghost", "tool_start quick", "tool_end quick", "tool_end slow"}
		if diff := cmp.Diff(want, order); diff != "" {
			t.Error(diff)
		}
		if !strings.Contains(b.history.transcript(), "toolResult c1: slow\ntoolResult c2 error: Tool ghost not found\ntoolResult c3: quick\n") {
			t.Error(b.history.transcript())
		}
		if ms := b.history.records[2].Message.DurationMs; ms == nil || *ms != 60_000 {
			t.Errorf("duration %v", ms)
		}
		if b.history.records[3].Message.DurationMs != nil {
			t.Error("a call that did not execute has a duration")
		}
	})
}

// One sequential tool makes the whole batch sequential.
func TestSequential(t *testing.T) {
	var running, most atomic.Int32
	var order []string
	do := func(name string) *scripted {
		return &scripted{name: name, sequential: name == "save", do: func(context.Context, json.RawMessage) (tool.Result, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			order = append(order, name)
			return tool.Text(name), nil
		}}
	}
	b := setUp(calls(`look {}`, `save {}`, `look {"n":1}`), said("Done."))
	b.Tools = []tool.Tool{do("look"), do("save")}
	agent.Run(t.Context(), b.Config)
	if diff := cmp.Diff([]string{"look", "save", "look"}, order); diff != "" || most.Load() != 1 {
		t.Error(most.Load(), diff)
	}
	want := "tool_start c1 look\ntool_end c1 look\ntool_start c2 save\ntool_end c2 save\ntool_start c3 look\ntool_end c3 look\nmessage_start toolResult"
	if !strings.Contains(b.sink.lines(), want) {
		t.Error(b.sink.lines())
	}
}

func TestResults(t *testing.T) {
	domain := coded{"not_found", "a.md does not exist"}
	for name, c := range map[string]struct {
		do      func(context.Context, json.RawMessage) (tool.Result, error)
		text    string
		details string
		failed  bool
	}{
		"plain":        {func(context.Context, json.RawMessage) (tool.Result, error) { return tool.Text("x"), nil }, "x", `{}`, false},
		"details":      {func(context.Context, json.RawMessage) (tool.Result, error) { return tool.Failure(domain), nil }, "a.md does not exist", `{"code":"not_found"}`, true},
		"domain error": {func(context.Context, json.RawMessage) (tool.Result, error) { return tool.Result{}, domain }, "a.md does not exist", `{"code":"not_found"}`, true},
		"plain error":  {func(context.Context, json.RawMessage) (tool.Result, error) { return tool.Result{}, errors.New("no") }, "no", `{}`, true},
		"nothing":      {func(context.Context, json.RawMessage) (tool.Result, error) { return tool.Result{}, nil }, "", `{}`, false},
		"panic":        {func(context.Context, json.RawMessage) (tool.Result, error) { panic("index out of range") }, "The tool look has a fault and stopped: index out of range", `{}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			b := setUp(calls(`look {}`), said("Done."))
			b.Tools = []tool.Tool{&scripted{name: "look", do: c.do}}
			b.Log = slog.New(slog.NewTextHandler(&log, nil))
			got := agent.Run(t.Context(), b.Config)
			m := b.history.records[2].Message
			if got.Status != agent.Completed || m.Text() != c.text || string(m.Details) != c.details || m.Failed() != c.failed || m.Content == nil || m.ToolName != "look" {
				t.Errorf("%+v: %+v", got, m)
			}
			if logged := strings.Contains(log.String(), "batch_test.go"); logged != (name == "panic") {
				t.Errorf("stack logged: %v", logged)
			}
		})
	}
}

type coded struct{ code, message string }

func (e coded) Error() string { return e.message }
func (e coded) Code() string  { return e.code }

// abortable is a run with text, thinking, parallel and sequential tools, steering and a follow-up.
func abortable() *bench {
	thinking := calls(`look {"n":1}`, `find {}`)
	thinking.message.Content = append([]llm.Block{{Type: llm.BlockThinking, Thinking: "Where could it be?"}}, thinking.message.Content...)
	b := setUp(thinking, calls(`look {"n":2}`, `save {}`, `find {"n":2}`), said("Done with a longer text."), said("And the follow-up."))
	watching := func(ctx context.Context, args json.RawMessage) (tool.Result, error) {
		if ctx.Err() != nil {
			return tool.Result{}, ctx.Err()
		}
		return tool.Text("found"), nil
	}
	b.Tools = []tool.Tool{&scripted{name: "look", do: watching}, echo("find"), &scripted{name: "save", sequential: true, do: watching}}
	b.inbox.steering = []agent.Incoming{user("s1", "steer"), user("s2", "steer again")}
	b.inbox.followUps = []agent.Incoming{user("f1", "follow")}
	return b
}

// The run is stopped at each of its events: it ends, takes nothing more from the inbox, and history is whole.
func TestAbortAtEveryEvent(t *testing.T) {
	whole := abortable()
	if got := agent.Run(t.Context(), whole.Config); got.Status != agent.Completed {
		t.Fatal(got)
	}
	total := len(whole.sink.events)
	if total < 60 {
		t.Fatalf("only %d events", total)
	}
	for n := 1; n <= total; n++ {
		ctx, cancel := context.WithCancel(t.Context())
		b := abortable()
		taken := 0
		b.sink.at = func(i int, e agent.Event) {
			if i == n {
				cancel()
				taken = len(b.inbox.polls)
			}
		}
		got := agent.Run(ctx, b.Config)
		cancel()
		at := fmt.Sprintf("stopped at event %d of %d (%s)", n, total, b.sink.events[n-1].Type)
		if len(b.inbox.polls) != taken {
			t.Errorf("%s: the inbox was polled afterwards", at)
		}
		want := agent.Aborted
		if n == total {
			want = agent.Completed // too late
		}
		if got.Status != want || got.Err != nil {
			t.Errorf("%s: %+v", at, got)
		}
		wellFormed(t, at, b.history.records)
		accountedFor(t, b, got)
		if last := b.sink.events[len(b.sink.events)-1]; last.Type != agent.EventRunEnd || last.Result.Status != got.Status {
			t.Errorf("%s: last event %s", at, last.Type)
		}
		if len(got.Abandoned) > 0 {
			t.Errorf("%s: abandoned %v", at, got.Abandoned)
		}
	}
}

// wellFormed checks that each call of a complete assistant message has exactly one result, directly behind it and in order, and
// that a broken-off one has none.
func wellFormed(t *testing.T, at string, records []agent.Record) {
	t.Helper()
	var open []llm.Block
	for _, r := range records {
		m := r.Message
		if m.Role == llm.RoleToolResult {
			if len(open) == 0 || open[0].ID != m.ToolCallID {
				t.Errorf("%s: result %s has no call", at, m.ToolCallID)
				return
			}
			open = open[1:]
			continue
		}
		if len(open) > 0 {
			t.Errorf("%s: call %s has no result", at, open[0].ID)
		}
		open = nil
		if m.StopReason != llm.StopAborted && m.StopReason != llm.StopError {
			open = m.ToolCalls()
		}
	}
	if len(open) > 0 {
		t.Errorf("%s: call %s has no result", at, open[0].ID)
	}
}

// The partial answer is kept, as Pi keeps it.
func TestAbortKeepsThePartialAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b := setUp(said("A long answer that is cut."))
	b.sink.at = func(_ int, e agent.Event) {
		if e.Type == agent.EventDelta {
			cancel()
		}
	}
	got := agent.Run(ctx, b.Config)
	if got.Status != agent.Aborted || got.StopReason != llm.StopAborted {
		t.Errorf("%+v", got)
	}
	m := b.history.records[1].Message
	if m.StopReason != llm.StopAborted || len(m.Content) != 1 || m.ErrorMessage == "" {
		t.Errorf("%+v", m)
	}
}

func TestAbortBeforeTheStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := setUp(said("Never."))
	b.inbox.steering = []agent.Incoming{user("s1", "x")}
	got := agent.Run(ctx, b.Config)
	if got.Status != agent.Aborted || len(b.history.records) != 0 || len(got.Undelivered) != 1 || len(b.inbox.polls) != 0 {
		t.Errorf("%+v", got)
	}
	b.Prompt = nil
	if got := agent.Run(ctx, b.Config); got.Status != agent.Aborted {
		t.Errorf("continuing: %+v", got)
	}
}

// A steer that was taken in the moment of the stop is given back.
func TestAbortDuringAPoll(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := setUp(calls(`look {}`), said("Never."))
	b.inbox.onPoll = func(n int) {
		if n == 2 {
			b.inbox.steering = []agent.Incoming{user("s1", "x")}
			cancel()
		}
	}
	got := agent.Run(ctx, b.Config)
	if got.Status != agent.Aborted || len(got.Undelivered) != 1 || got.Undelivered[0].RequestID != "s1" {
		t.Errorf("%+v", got)
	}
	accountedFor(t, b, got)
}

// A stopped run gives tools that change nothing a moment, then leaves them; a change that started is waited for.
func TestAbortDuringTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan struct{})
		deaf := &scripted{name: "deaf", do: func(context.Context, json.RawMessage) (tool.Result, error) {
			<-release
			return tool.Text("too late"), nil
		}}
		b := setUp(calls(`deaf {}`, `look {}`, `polite {}`), said("Never."))
		b.Tools = []tool.Tool{deaf, echo("look"), &scripted{name: "polite", do: func(ctx context.Context, _ json.RawMessage) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{}, fmt.Errorf("read: %w", ctx.Err())
		}}}
		time.AfterFunc(time.Minute, cancel)
		begun := time.Now()
		got := agent.Run(ctx, b.Config)
		if took := time.Since(begun); got.Status != agent.Aborted || took != time.Minute+2*time.Second {
			t.Errorf("%+v after %v", got, took)
		}
		want := "toolResult c1 error: Operation aborted\ntoolResult c2: look {}\ntoolResult c3 error: Operation aborted\n"
		if !strings.HasSuffix(b.history.transcript(), want) {
			t.Error(b.history.transcript())
		}
		if len(got.Abandoned) != 1 || got.Abandoned[0].Tool != "deaf" || got.Abandoned[0].CallID != "c1" {
			t.Fatalf("abandoned %v", got.Abandoned)
		}
		close(release)
		<-got.Abandoned[0].Done
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		saved := false
		save := &scripted{name: "save", sequential: true, do: func(context.Context, json.RawMessage) (tool.Result, error) {
			cancel()
			time.Sleep(time.Hour)
			saved = true
			return tool.Text("saved"), nil
		}}
		b := setUp(calls(`save {}`, `save {"n":1}`), said("Never."))
		b.Tools = []tool.Tool{save}
		got := agent.Run(ctx, b.Config)
		want := "toolResult c1: saved\ntoolResult c2 error: Operation aborted\n"
		if !saved || got.Status != agent.Aborted || !strings.HasSuffix(b.history.transcript(), want) || got.Abandoned != nil {
			t.Errorf("%+v\n%s", got, b.history.transcript())
		}
	})
}
