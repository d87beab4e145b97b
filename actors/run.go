package actors

import (
	"context"
	"slices"

	"github.com/repa-app/repa/actors/engine"
	"github.com/repa-app/repa/actors/feed"
	"github.com/repa-app/repa/actors/wire"
	"github.com/repa-app/repa/agent"
	"github.com/repa-app/repa/agent/connection"
	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/prompt"
	"github.com/repa-app/repa/agent/session"
	"github.com/repa-app/repa/agent/tool"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/space"
)

// runMessage is what a run receives.
type runMessage interface{ forRun() }

type (
	// steerRun adds input for the agent's next turn.
	steerRun struct{ input agent.Incoming }
	// takeSteering: the agent asks for the next input.
	takeSteering struct {
		engine.Reply[[]agent.Incoming]
	}
	// abortRun stops the agent.
	abortRun struct{}
	// loopEnded: the agent has stopped.
	loopEnded struct{ result agent.Result }
)

func (steerRun) forRun()     {}
func (takeSteering) forRun() {}
func (abortRun) forRun()     {}
func (loopEnded) forRun()    {}

// runActor owns one execution of the agent: the input that waits for it and the way to stop it.
type runActor struct {
	backend  *Backend
	parent   *engine.Ref[sessionMessage]
	space    *space.Space
	session  protocol.SessionKey
	record   protocol.Run
	bound    connection.Bound
	thinking string
	only     []string // names of the tools to use; nil: all
	tools    *sessionTools
	history  *session.Snapshot
	prompt   agent.Incoming

	steering []agent.Incoming
	abort    context.CancelFunc
}

// incoming makes the user message of a request.
func incoming(r protocol.Request, at protocol.Millis) agent.Incoming {
	return agent.Incoming{RequestID: string(r.RequestID), Message: llm.Message{
		Role: llm.RoleUser, Content: []llm.Block{{Type: llm.BlockText, Text: inputText(r.Input)}}, Timestamp: int64(at),
	}}
}

// Started implements engine.Started: the agent runs on the actor's worker.
func (r *runActor) Started(ctx *engine.Context[runMessage]) {
	var life context.Context
	life, r.abort = context.WithCancel(ctx.Lifetime())
	self := ctx.Self()
	ctx.Go(func(context.Context) runMessage { return loopEnded{r.execute(life, self)} },
		func(err *engine.PanicError) runMessage {
			return loopEnded{agent.Result{Status: agent.Failed, Err: err}}
		})
}

// Stopped implements engine.Stopped.
func (r *runActor) Stopped() { r.abort() }

// Receive implements engine.Actor.
func (r *runActor) Receive(ctx *engine.Context[runMessage], m runMessage) {
	switch m := m.(type) {
	case steerRun:
		r.steering = append(r.steering, m.input)
	case takeSteering:
		if len(r.steering) == 0 {
			m.Send(nil)
			return
		}
		m.Send(r.steering[:1])
		r.steering = r.steering[1:]
	case abortRun:
		r.abort()
	case loopEnded:
		_ = r.parent.Post(runEnded{r.record.ID, m.result}) // a session that ended has been shut down
		ctx.Stop()
	}
}

// execute runs the agent. It is called on the worker; of the actor it reads only what was set before it started.
func (r *runActor) execute(ctx context.Context, self *engine.Ref[runMessage]) agent.Result {
	tools := r.tools.set.Tools()
	if r.only != nil {
		tools = slices.DeleteFunc(slices.Clone(tools), func(t tool.Tool) bool { return !slices.Contains(r.only, t.Spec().Name) })
	}
	var specs []llm.ToolSpec
	for _, t := range tools {
		specs = append(specs, t.Spec())
	}
	assembled, err := prompt.Assemble(prompt.Sections{
		Environment: &prompt.Environment{Space: r.space.Path(), Date: r.backend.opts.Clock.Now().Format("Monday, 2 January 2006")},
		Tools:       specs,
	})
	if err != nil {
		return agent.Result{Status: agent.Failed, Err: err}
	}
	return agent.Run(withRun(ctx, r.record), agent.Config{
		Provider: llm.Retry(r.bound.Open(r.backend.opts.HTTP), llm.RetryPolicy{}), Model: r.bound.Model, Thinking: r.thinking,
		SessionID: string(r.session.SessionID), System: assembled.System, Tools: tools, History: r.history.Context(),
		Prompt: []agent.Incoming{r.prompt}, Inbox: inbox{self}, Recorder: recorder{r.parent},
		Sink:     &sink{feed: r.backend.feed, parent: r.parent, session: r.session, run: r.record.ID},
		MaxTurns: r.backend.opts.MaxTurns, NewID: func() string { return string(r.backend.newID()) },
		Now: r.backend.opts.Clock.Now, Log: r.backend.log.With("run", r.record.ID),
	})
}

// inbox lets the agent pull steering from the run's actor. Follow-ups are requests of their own, which the session starts.
type inbox struct{ run *engine.Ref[runMessage] }

func (i inbox) Steering(ctx context.Context) []agent.Incoming {
	input, err := engine.Ask(ctx, i.run, func(r engine.Reply[[]agent.Incoming]) runMessage { return takeSteering{r} })
	if err != nil {
		return nil // the run is being stopped: nothing more enters it
	}
	return input
}

func (inbox) FollowUps(context.Context) []agent.Incoming { return nil }

// recorder makes the agent's messages durable through the session.
type recorder struct {
	session *engine.Ref[sessionMessage]
}

func (r recorder) Append(ctx context.Context, records []agent.Record) ([]string, error) {
	return engine.Ask(ctx, r.session, func(reply engine.Reply[[]string]) sessionMessage { return recordMessages{reply, records} })
}

// sink shows the agent's events. It is called from the agent's goroutine and publishes from there, so that deltas and the
// message that replaces them keep their order.
type sink struct {
	feed    *feed.Feed
	parent  *engine.Ref[sessionMessage]
	session protocol.SessionKey
	run     protocol.ID

	live string // the assistant message that is being written
}

// Emit implements agent.Sink.
func (s *sink) Emit(e agent.Event) {
	switch e.Type {
	case agent.EventMessageStart:
		if e.Message.Role == llm.RoleAssistant {
			s.live = e.MessageID
			message := wire.Streaming(e.MessageID, *e.Message)
			s.publish(protocol.Change{Type: protocol.ChangeMessage, Message: &message})
		}
	case agent.EventDelta:
		if e.Kind == llm.BlockText || e.Kind == llm.BlockThinking {
			s.publish(protocol.Change{Type: protocol.ChangeDelta, MessageID: e.MessageID, Index: protocol.Int(e.Index),
				Kind: protocol.DeltaKind(e.Kind), Text: e.Text})
		}
	case agent.EventMessageEnd:
		message := wire.Recorded(e.EntryID, e.RequestID, *e.Message)
		c := protocol.Change{Type: protocol.ChangeMessage, Message: &message}
		if e.MessageID == s.live {
			c.Replaces, s.live = s.live, ""
		}
		s.publish(c)
	case agent.EventToolStart:
		s.tool(e, protocol.ToolRunning)
	case agent.EventToolEnd:
		if e.IsError {
			s.tool(e, protocol.ToolFailed)
		} else {
			s.tool(e, protocol.ToolCompleted)
		}
	case agent.EventPhase:
		_ = s.parent.Post(phaseChanged{s.run, protocol.RunPhase(e.Phase)}) // an ended session shows nothing
	case agent.EventNotice:
		_ = s.parent.Post(noticeGiven{"run", e.Text, protocol.LevelInfo})
	}
}

func (s *sink) tool(e agent.Event, status protocol.ToolStatus) {
	s.publish(protocol.Change{Type: protocol.ChangeTool, RunID: s.run, CallID: e.CallID, Name: e.Tool, Status: status})
}

func (s *sink) publish(c protocol.Change) {
	c.SpaceID, c.SessionID = s.session.SpaceID, s.session.SessionID
	s.feed.Publish(c)
}
