package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/repa-app/repa/agent"
	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// model answers with scripted messages, one a call, in chunks, watching its context as real providers do.
type model struct {
	answers  []answer
	requests []llm.Request
}

type answer struct {
	message llm.Message
	err     error
	notices []string
	before  func() // when the request arrives
	silent  bool   // fails before it starts
}

func (m *model) Stream(ctx context.Context, req *llm.Request, emit func(llm.Event)) (*llm.Message, error) {
	kept := *req
	m.requests = append(m.requests, kept)
	if len(m.answers) == 0 {
		return broken(llm.Message{}, llm.StopError, errors.New("the script is at its end"))
	}
	a := m.answers[0]
	m.answers = m.answers[1:]
	if a.before != nil {
		a.before()
	}
	for _, n := range a.notices {
		emit(llm.Event{Type: llm.EventNotice, Text: n})
	}
	if a.silent {
		return broken(a.message, llm.StopError, a.err)
	}
	var partial llm.Message
	emit(llm.Event{Type: llm.EventStart})
	for i, b := range a.message.Content {
		partial.Content = append(partial.Content, llm.Block{Type: b.Type, ID: b.ID, Name: b.Name})
		text := b.Text + b.Thinking + string(b.Arguments)
		for len(text) > 0 {
			if ctx.Err() != nil {
				return broken(partial, llm.StopAborted, ctx.Err())
			}
			n := min(len(text), 8)
			emit(llm.Event{Type: llm.EventDelta, Index: i, Block: b.Type, Text: text[:n]})
			text = text[n:]
		}
		partial.Content[i] = b
		emit(llm.Event{Type: llm.EventBlock, Index: i, Block: b.Type, Done: &b})
	}
	if ctx.Err() != nil {
		return broken(partial, llm.StopAborted, ctx.Err())
	}
	if a.err != nil {
		return broken(a.message, llm.StopError, a.err)
	}
	done := a.message
	return &done, nil
}

func broken(m llm.Message, stop llm.StopReason, cause error) (*llm.Message, error) {
	kind := llm.KindServer
	if stop == llm.StopAborted {
		kind = llm.KindAborted
	}
	err := &llm.Error{Provider: "scripted", Words: cause.Error(), Kind: kind, Cause: cause}
	m.Role, m.StopReason, m.ErrorMessage = llm.RoleAssistant, stop, err.Error()
	return &m, err
}

func said(text string) answer {
	return answer{message: llm.Message{
		Role: llm.RoleAssistant, StopReason: llm.StopEnd, Usage: &llm.Usage{Input: 10, Output: 1, TotalTokens: 11, Cost: llm.Cost{Total: 0.5}},
		Content: []llm.Block{{Type: llm.BlockText, Text: text}},
	}}
}

// calls is an answer with tool calls, each written as "name arguments"; ids are c1, c2 and so on.
func calls(all ...string) answer {
	a := said("Looking.")
	a.message.StopReason = llm.StopToolUse
	for i, c := range all {
		name, args, _ := strings.Cut(c, " ")
		a.message.Content = append(a.message.Content, llm.Block{Type: llm.BlockToolCall, ID: fmt.Sprintf("c%d", i+1), Name: name, Arguments: json.RawMessage(args)})
	}
	return a
}

func user(id, text string) agent.Incoming {
	return agent.Incoming{RequestID: id, Message: llm.Message{Role: llm.RoleUser, Content: []llm.Block{{Type: llm.BlockText, Text: text}}}}
}

// history is a recorder in memory.
type history struct {
	records []agent.Record
	batches []int // sizes
	failAt  int   // the n-th append fails, from 1
	calls   int
}

var errDisk = errors.New("no space left")

func (h *history) Append(ctx context.Context, records []agent.Record) ([]string, error) {
	if ctx.Err() != nil {
		return nil, errors.New("the context of an append ended")
	}
	if h.calls++; h.calls == h.failAt {
		return nil, errDisk
	}
	var ids []string
	for _, r := range records {
		h.records = append(h.records, r)
		ids = append(ids, fmt.Sprintf("e%d", len(h.records)))
	}
	h.batches = append(h.batches, len(records))
	return ids, nil
}

// transcript writes history one line a message.
func (h *history) transcript() string {
	var b strings.Builder
	for _, r := range h.records {
		m := r.Message
		fmt.Fprintf(&b, "%s", m.Role)
		if r.RequestID != "" {
			fmt.Fprintf(&b, " (%s)", r.RequestID)
		}
		if m.Role == llm.RoleAssistant && m.StopReason != llm.StopEnd {
			fmt.Fprintf(&b, " [%s]", m.StopReason)
		}
		if m.Role == llm.RoleToolResult {
			fmt.Fprintf(&b, " %s", m.ToolCallID)
			if m.Failed() {
				b.WriteString(" error")
			}
		}
		if text := m.Text(); text != "" {
			fmt.Fprintf(&b, ": %s", text)
		}
		for _, c := range m.ToolCalls() {
			fmt.Fprintf(&b, " <%s %s %s>", c.ID, c.Name, c.Arguments)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// inbox delivers one message a poll and counts the polls.
type inbox struct {
	steering, followUps []agent.Incoming
	polls               []string
	taken               []agent.Incoming
	onPoll              func(n int)
}

func (b *inbox) next(kind string, from *[]agent.Incoming) []agent.Incoming {
	b.polls = append(b.polls, kind)
	if b.onPoll != nil {
		b.onPoll(len(b.polls))
	}
	if len(*from) == 0 {
		return nil
	}
	one := (*from)[:1]
	*from = (*from)[1:]
	b.taken = append(b.taken, one...)
	return one
}

func (b *inbox) Steering(context.Context) []agent.Incoming  { return b.next("steer", &b.steering) }
func (b *inbox) FollowUps(context.Context) []agent.Incoming { return b.next("follow", &b.followUps) }

// sink keeps events and can act at one of them.
type sink struct {
	events []agent.Event
	at     func(n int, e agent.Event)
}

func (s *sink) Emit(e agent.Event) {
	s.events = append(s.events, e)
	if s.at != nil {
		s.at(len(s.events), e)
	}
}

func (s *sink) lines() string {
	var b strings.Builder
	for _, e := range s.events {
		b.WriteString(string(e.Type))
		role := ""
		if e.Message != nil {
			role = string(e.Message.Role)
		}
		for _, part := range []string{role, e.MessageID, e.EntryID, e.RequestID, string(e.Kind), e.CallID, e.Tool, string(e.Phase), e.Text} {
			if part != "" {
				b.WriteString(" " + part)
			}
		}
		if e.Block != nil {
			b.WriteString(" " + e.Block.ID)
		}
		if e.IsError {
			b.WriteString(" error")
		}
		if e.Result != nil {
			b.WriteString(" " + string(e.Result.Status))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// scripted is a tool whose behaviour is a function.
type scripted struct {
	name       string
	sequential bool
	do         func(ctx context.Context, args json.RawMessage) (tool.Result, error)
}

func (s *scripted) Spec() llm.ToolSpec {
	return llm.ToolSpec{Name: s.name, Description: s.name, Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`)}
}
func (s *scripted) Sequential() bool { return s.sequential }
func (s *scripted) Execute(ctx context.Context, id string, args json.RawMessage) (tool.Result, error) {
	return s.do(ctx, args)
}

// echo answers with its name and arguments.
func echo(name string) *scripted {
	return &scripted{name: name, do: func(_ context.Context, args json.RawMessage) (tool.Result, error) {
		return tool.Text(name + " " + string(args)), nil
	}}
}

// bench is one run with everything that it touches.
type bench struct {
	agent.Config
	model   *model
	history *history
	inbox   *inbox
	sink    *sink
}

func setUp(answers ...answer) *bench {
	b := &bench{model: &model{answers: answers}, history: &history{}, inbox: &inbox{}, sink: &sink{}}
	ids := 0
	var mu sync.Mutex
	b.Config = agent.Config{
		Provider: b.model, Model: "m", System: "Be kind.", Prompt: []agent.Incoming{user("r1", "Hello")},
		Inbox: b.inbox, Recorder: b.history, Sink: b.sink, Tools: []tool.Tool{echo("look"), echo("find")},
		NewID: func() string {
			mu.Lock()
			defer mu.Unlock()
			ids++
			return fmt.Sprint(ids)
		},
	}
	return b
}

func codeOf(err error) string {
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		return coded.Code()
	}
	return ""
}
