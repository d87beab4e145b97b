package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/tool"
)

// Run runs the loop until the model has nothing more to do and nothing waits, until it fails, or until ctx ends. Without a
// prompt it continues the history. The result says how it ended; it never comes with goroutines left behind, except the tools
// in Result.Abandoned.
func Run(ctx context.Context, cfg Config) Result {
	r := &run{Config: cfg.withDefaults()}
	r.messages = slices.Clone(r.History)
	r.Sink.Emit(Event{Type: EventRunStart})
	err := r.prepare()
	if err == nil {
		err = r.loop(ctx)
	}
	r.result.Undelivered = append(r.result.Undelivered, r.pending...)
	switch {
	case err == nil:
		r.result.Status = Completed
	case errors.Is(err, errAborted):
		r.result.Status = Aborted
	default:
		r.result.Status, r.result.Err = Failed, err
	}
	result := r.result
	r.Sink.Emit(Event{Type: EventRunEnd, Result: &result})
	return result
}

// errAborted ends a run whose context ended.
var errAborted = errors.New("the run was stopped")

type run struct {
	Config
	tools    map[string]*callable
	specs    []llm.ToolSpec
	messages []llm.Message // the context of the next request
	pending  []Incoming    // taken, not yet recorded
	turn     int
	streak   int // turns since input last came in
	same     sameCalls
	result   Result
}

// callable is a tool with its schema, which is compiled at the first call: most runs call few of their tools, and one whose schema
// is unusable must not stop the others.
type callable struct {
	tool   tool.Tool
	spec   llm.ToolSpec
	schema *tool.Schema
}

func (c *callable) check(args json.RawMessage) (json.RawMessage, error) {
	if c.schema == nil {
		var err error
		if c.schema, err = tool.Compile(c.spec); err != nil {
			return nil, err
		}
	}
	return c.schema.Check(args)
}

func (r *run) prepare() error {
	r.pending = slices.Clone(r.Prompt)
	r.tools = make(map[string]*callable, len(r.Tools))
	for _, t := range r.Tools {
		spec := t.Spec()
		if _, twice := r.tools[spec.Name]; twice {
			return &Error{"configuration", fmt.Sprintf("two tools are named %s; give each tool its own name", spec.Name), nil}
		}
		r.tools[spec.Name] = &callable{tool: t, spec: spec}
		r.specs = append(r.specs, spec)
	}
	return nil
}

// loop is Pi's: turn after turn while tool results or input are waiting, and follow-ups when it would end.
func (r *run) loop(ctx context.Context) error {
	taken, err := r.takeUp(ctx)
	if err != nil {
		return err
	}
	for first := true; ; first = false {
		if !first {
			r.poll(ctx, r.Inbox.Steering)
		}
		if ctx.Err() != nil {
			return errAborted
		}
		if r.streak >= r.MaxTurns && len(r.pending) == 0 {
			return &Error{"runtime", fmt.Sprintf("the run was ended after %d turns without finishing. "+
				"Everything done so far is saved; continue if it was on the right way, or ask for a smaller step", r.MaxTurns), nil}
		}
		more, err := r.oneTurn(ctx, first && !taken)
		r.Sink.Emit(Event{Type: EventTurnEnd, Turn: r.turn})
		if err != nil {
			return err
		}
		r.poll(ctx, r.Inbox.Steering)
		if !more {
			r.poll(ctx, r.Inbox.FollowUps)
		}
		if ctx.Err() != nil {
			return errAborted
		}
		if !more && len(r.pending) == 0 {
			return nil
		}
	}
}

// takeUp finds what a run without a prompt begins with when its history needs no answer. taken tells that steering was polled.
func (r *run) takeUp(ctx context.Context) (taken bool, err error) {
	if n := len(r.messages); len(r.pending) > 0 || n > 0 && r.messages[n-1].Role != llm.RoleAssistant {
		return false, nil
	}
	r.poll(ctx, r.Inbox.Steering)
	taken = len(r.pending) > 0
	r.poll(ctx, r.Inbox.FollowUps)
	if len(r.pending) == 0 && ctx.Err() == nil {
		return false, &Error{"runtime", "there is nothing to answer: the history is empty or ends with an answer, and no input waits", nil}
	}
	return taken, nil
}

// poll takes input when none is waiting yet, so that one-at-a-time stays one, and takes nothing once the run was stopped.
func (r *run) poll(ctx context.Context, from func(context.Context) []Incoming) {
	if ctx.Err() == nil && len(r.pending) == 0 {
		r.pending = from(ctx)
	}
}

// recordPending makes the waiting input part of history, then of the context.
func (r *run) recordPending(ctx context.Context) error {
	if len(r.pending) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return errAborted
	}
	records := make([]Record, len(r.pending))
	for i, in := range r.pending {
		if in.Message.Timestamp == 0 {
			in.Message.Timestamp = r.Now().UnixMilli()
		}
		records[i] = Record(in)
	}
	if err := r.record(ctx, records, nil); err != nil {
		return err
	}
	r.pending = nil
	r.streak = 1 // this turn is the first one with the new input
	r.same = sameCalls{}
	return nil
}

// record makes messages durable, adds them to the context and reports them. live are the ids of messages whose start was
// reported already.
func (r *run) record(ctx context.Context, records []Record, live []string) error {
	ids, err := r.Recorder.Append(context.WithoutCancel(ctx), records)
	if err != nil {
		return &Error{"storage", "the session could not be saved: " + err.Error(), err}
	}
	for i, rec := range records {
		m := rec.Message
		r.messages = append(r.messages, m)
		e := Event{Type: EventMessageEnd, EntryID: ids[i], RequestID: rec.RequestID, Message: &m}
		if live != nil {
			e.MessageID = live[i]
		} else {
			e.MessageID = r.liveID()
			start := e
			start.Type, start.EntryID = EventMessageStart, ""
			r.Sink.Emit(start)
		}
		r.Sink.Emit(e)
	}
	return nil
}

func (r *run) liveID() string { return "live-" + r.NewID() }

// oneTurn records the waiting input, asks the model and executes what it calls. more tells that there are results to look at.
func (r *run) oneTurn(ctx context.Context, pollOnce bool) (more bool, err error) {
	r.turn++
	r.streak++
	r.Sink.Emit(Event{Type: EventTurnStart, Turn: r.turn})
	if err := r.recordPending(ctx); err != nil {
		return false, err
	}
	if pollOnce { // what was typed while the run started
		r.poll(ctx, r.Inbox.Steering)
		if err := r.recordPending(ctx); err != nil {
			return false, err
		}
	}
	if ctx.Err() != nil {
		return false, errAborted
	}
	m, err := r.ask(ctx)
	if err != nil {
		return false, err
	}
	calls := m.ToolCalls()
	if len(calls) == 0 {
		return false, nil
	}
	return true, r.batch(ctx, m.StopReason, calls)
}

// ask streams one assistant message and records it, whole or broken off.
func (r *run) ask(ctx context.Context) (*llm.Message, error) {
	r.Sink.Emit(Event{Type: EventPhase, Phase: PhaseModel})
	s := streaming{run: r, id: r.liveID()}
	m, failure := r.Provider.Stream(ctx, &llm.Request{
		Model: r.Model, System: r.System, Messages: slices.Clip(r.messages), Tools: r.specs,
		MaxTokens: r.MaxTokens, Thinking: r.Thinking, SessionID: r.SessionID, NoImages: r.NoImages,
	}, s.event)
	if m.Role == "" {
		m.Role = llm.RoleAssistant
	}
	if m.Timestamp == 0 {
		m.Timestamp = r.Now().UnixMilli()
	}
	if m.ThinkingLevel = r.Thinking; m.ThinkingLevel == "" {
		m.ThinkingLevel = "off"
	}
	addUsage(&r.result.Usage, m.Usage)
	r.result.StopReason = m.StopReason
	if !s.started {
		r.Sink.Emit(Event{Type: EventMessageStart, MessageID: s.id, Message: m})
	}
	if err := r.record(ctx, []Record{{Message: *m}}, []string{s.id}); err != nil {
		return nil, err
	}
	switch {
	case m.StopReason == llm.StopAborted, failure != nil && ctx.Err() != nil:
		return nil, errAborted
	case m.StopReason == llm.StopError && failure == nil:
		return nil, &Error{"provider", m.ErrorMessage, nil}
	case failure != nil:
		return nil, failure
	}
	return m, nil
}

// streaming turns the provider's events of one message into the run's.
type streaming struct {
	*run
	id       string
	started  bool
	retrying bool
}

func (s *streaming) event(e llm.Event) {
	if e.Type == llm.EventNotice {
		if !s.retrying {
			s.Sink.Emit(Event{Type: EventPhase, Phase: PhaseRetry})
		}
		s.retrying = true
		s.Sink.Emit(Event{Type: EventNotice, Text: e.Text})
		return
	}
	if s.retrying {
		s.retrying = false
		s.Sink.Emit(Event{Type: EventPhase, Phase: PhaseModel})
	}
	if !s.started {
		s.started = true
		s.Sink.Emit(Event{Type: EventMessageStart, MessageID: s.id, Message: &llm.Message{
			Role: llm.RoleAssistant, Content: []llm.Block{}, Timestamp: s.Now().UnixMilli(),
		}})
	}
	switch {
	case e.Type == llm.EventDelta && (e.Block == llm.BlockText || e.Block == llm.BlockThinking):
		s.Sink.Emit(Event{Type: EventDelta, MessageID: s.id, Index: e.Index, Kind: e.Block, Text: e.Text})
	case e.Type == llm.EventBlock && e.Done != nil && e.Done.Type == llm.BlockToolCall:
		s.Sink.Emit(Event{Type: EventToolCall, MessageID: s.id, Index: e.Index, Block: e.Done})
	}
}

func addUsage(sum *llm.Usage, u *llm.Usage) {
	if u == nil {
		return
	}
	sum.Input += u.Input
	sum.Output += u.Output
	sum.CacheRead += u.CacheRead
	sum.CacheWrite += u.CacheWrite
	sum.Reasoning += u.Reasoning
	sum.TotalTokens += u.TotalTokens
	sum.Cost.Input += u.Cost.Input
	sum.Cost.Output += u.Cost.Output
	sum.Cost.CacheRead += u.Cost.CacheRead
	sum.Cost.CacheWrite += u.Cost.CacheWrite
	sum.Cost.Total += u.Cost.Total
}
