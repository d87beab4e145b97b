package actors

import (
	"context"
	"fmt"
	"slices"

	"github.com/repa-app/repa/actors/engine"
	"github.com/repa-app/repa/actors/ledger"
	"github.com/repa-app/repa/actors/wire"
	"github.com/repa-app/repa/agent"
	"github.com/repa-app/repa/protocol"
)

// admit decides about a request and makes the decision durable before anybody hears of it.
func (s *sessionActor) admit(ctx *engine.Context[sessionMessage], m admitRequest) {
	if s.loadErr != nil {
		s.refuse(m.request, s.loadErr)
		return
	}
	if m.request.Submission.Dispatch.Kind == dispatchSteer {
		s.admitSteer(ctx, m)
		return
	}
	if s.active != nil || s.starting {
		s.refuse(m.request, protocol.Errorf(protocol.CodeSessionBusy, "a run is active in this session; steer it, or wait until it has ended"))
		return
	}
	s.starting = true
	s.backend.active.begin()
	run := protocol.Run{
		SpaceID: s.key.SpaceID, SessionID: s.key.SessionID, ID: s.backend.newID(), Text: inputText(m.request.Input),
		Status: protocol.RunAccepted, Phase: protocol.PhasePreparing, CreatedAt: s.backend.now(),
		RequestIDs: []protocol.ID{m.request.RequestID}, PromptSettings: &m.request.PromptSettings, Options: &m.request.RunOptions,
	}
	m.request.Status, m.request.RunID = protocol.RequestRunning, run.ID
	s.journal(ctx, requestDurable{request: m.request, texts: m.texts, run: &run, bound: m.bound})
}

// admitSteer takes a steer for the run that it names, and no other. One that comes too late is kept as not entered.
func (s *sessionActor) admitSteer(ctx *engine.Context[sessionMessage], m admitRequest) {
	r := m.request
	if a := s.active; a != nil && a.record.ID == r.Submission.Dispatch.ExpectedRunID && !a.ending && !a.cancel {
		r.Status, r.RunID = protocol.RequestRunning, a.record.ID
		r.RunOptions = a.requests[0].RunOptions
	} else {
		r.Status, r.Delivery = protocol.RequestNotEntered, notEntered("the run it was meant for has changed or ended")
	}
	s.journal(ctx, requestDurable{request: r, texts: m.texts})
}

func notEntered(why string) protocol.RequestDelivery {
	return protocol.RequestDelivery{Status: protocol.DeliveryNotEntered, Reason: why}
}

// journal makes an admission durable on the session's worker and comes back with the message.
func (s *sessionActor) journal(ctx *engine.Context[sessionMessage], done requestDurable) {
	log, store := s.log, s.space.Store()
	ctx.Go(func(work context.Context) sessionMessage {
		done.err = appendAdmission(work, store, log, ledger.Admitted{Request: done.request, Run: done.run, Texts: done.texts})
		return done
	}, func(err *engine.PanicError) sessionMessage { done.err = err; return done })
}

// accept tells the space of an admission that is durable.
func (s *sessionActor) accept(r protocol.Request, texts []ledger.Text) {
	_ = s.parent.Post(admissionDecided{id: r.RequestID, request: r, texts: texts}) // a space that ended answers nobody
}

// refuse tells the space of an admission that was not made.
func (s *sessionActor) refuse(r protocol.Request, err error) {
	_ = s.parent.Post(admissionDecided{id: r.RequestID, request: r, err: err}) // a space that ended answers nobody
}

// admitted goes on when the admission is durable.
func (s *sessionActor) admitted(ctx *engine.Context[sessionMessage], m requestDurable) {
	if m.run != nil {
		s.starting = false
	}
	if m.err != nil {
		s.refuse(m.request, protocol.Errorf(protocol.CodeStorage, "the request could not be saved: %v; nothing was started", m.err))
		if m.run != nil {
			s.backend.active.end()
		}
		return
	}
	if m.run == nil {
		s.steer(ctx, m.request, m.texts)
		return
	}
	s.accept(m.request, m.texts)
	s.publishRequest(m.request)
	s.publishRun(*m.run)
	s.active = &activeRun{record: *m.run, requests: []protocol.Request{m.request}, apart: len(m.texts) > 0, bound: m.bound}
	s.start(ctx)
}

// start hands the run to its actor.
func (s *sessionActor) start(ctx *engine.Context[sessionMessage]) {
	a := s.active
	a.record.Status = protocol.RunRunning
	fresh := s.store.Snapshot().Leaf == nil
	s.backend.feed.ChangeSession(s.key, func(v *protocol.SessionView) {
		v.Runtime, v.UpdatedAt = protocol.RuntimeReady, a.record.CreatedAt
		if fresh {
			v.Title = titleOf(a.record.Text)
		}
	})
	s.publishRun(a.record)
	r := &runActor{session: s.key, record: a.record, backend: s.backend, parent: ctx.Self(), space: s.space, tools: s.tools,
		bound: a.bound, thinking: string(a.requests[0].RunOptions.ThinkingLevel), history: s.store.Snapshot(), only: a.requests[0].RunOptions.Tools,
		prompt: incoming(a.requests[0], a.record.CreatedAt)}
	ref, err := engine.Spawn[runMessage](ctx, engine.Options{Name: "run " + string(a.record.ID), Workers: 1}, r)
	if err != nil {
		s.end(ctx, runEnded{a.record.ID, agent.Result{Status: agent.Failed, Err: err}})
		return
	}
	a.ref = ref
}

// steer delivers an admitted steer, or settles one whose run has ended meanwhile.
func (s *sessionActor) steer(ctx *engine.Context[sessionMessage], r protocol.Request, texts []ledger.Text) {
	if r.Status == protocol.RequestNotEntered {
		s.accept(r, texts)
		s.publishRequest(r)
		return
	}
	a := s.active
	if a == nil || a.record.ID != r.RunID || a.ending {
		r.Status, r.Delivery = protocol.RequestNotEntered, notEntered("the run ended before the input entered the history")
		log := s.log
		fact := ledger.Settled{Requests: []ledger.End{{RequestID: r.RequestID, Status: r.Status, Delivery: r.Delivery}}}
		ctx.Go(func(work context.Context) sessionMessage {
			return settleDurable{r, texts, appendFacts(work, log, fact)}
		},
			func(err *engine.PanicError) sessionMessage { return settleDurable{r, texts, err} })
		return
	}
	a.requests = append(a.requests, r)
	a.record.RequestIDs = append(slices.Clone(a.record.RequestIDs), r.RequestID)
	s.accept(r, texts)
	s.publishRequest(r)
	s.publishRun(a.record)
	_ = a.ref.Post(steerRun{incoming(r, s.backend.now())}) // its end settles what it did not take
}

func (s *sessionActor) settled(m settleDurable) {
	if m.err != nil {
		s.backend.log.Error("save the end of a request", "request", m.request.RequestID, "error", m.err)
	}
	s.accept(m.request, m.texts)
	s.publishRequest(m.request)
}

func (s *sessionActor) cancel(m cancelActive) {
	a := s.active
	if a == nil || (m.run != "" && a.record.ID != m.run) {
		if i := slices.IndexFunc(s.runs, func(r protocol.Run) bool { return r.ID == m.run }); i >= 0 {
			m.Send(foundRun{run: s.runs[i]})
		} else {
			m.Fail(protocol.Errorf(protocol.CodeUnknownRun, "run %s is not active in this session", m.run))
		}
		return
	}
	if !a.cancel && !a.ending {
		a.cancel = true
		a.record.Status = protocol.RunCancelling
		s.publishRun(a.record)
		_ = a.ref.Post(abortRun{}) // it has ended and says so
	}
	m.Send(foundRun{run: a.record})
}

// end makes the end of the active run durable.
func (s *sessionActor) end(ctx *engine.Context[sessionMessage], m runEnded) {
	a := s.active
	if a == nil || a.record.ID != m.run || a.ending {
		return
	}
	a.ending = true
	fact := ledger.Ended{Run: a.record}
	fact.Run.Status, fact.Run.Phase, fact.Run.FinishedAt = protocol.RunCompleted, protocol.PhaseIdle, s.backend.now()
	switch {
	case a.cancel || m.result.Status == agent.Aborted:
		fact.Run.Status = protocol.RunCancelled
	case m.result.Status == agent.Failed:
		fact.Run.Status, fact.Run.Error = protocol.RunFailed, failure(m.result.Err)
	}
	fact.Paused = fact.Run.Status != protocol.RunCompleted
	for i, r := range a.requests {
		e := ledger.End{RequestID: r.RequestID, Status: requestStatus(fact.Run.Status), Delivery: r.Delivery, Error: fact.Run.Error}
		if r.Delivery.Status == protocol.DeliveryPending {
			e.Delivery = notEntered("the run ended before the input entered the history")
			if i > 0 {
				e.Status, e.Error = protocol.RequestNotEntered, nil
			}
		}
		if i == 0 {
			e.ModelAttempts = []protocol.ModelAttempt{s.attempt(a, fact.Run, m.result)}
		}
		fact.Requests = append(fact.Requests, e)
	}
	log, recorded := s.log, fact
	if a.apart {
		recorded.Run.Text = "" // as in its admission
	}
	ctx.Go(func(work context.Context) sessionMessage { return endDurable{fact, appendFacts(work, log, recorded)} },
		func(err *engine.PanicError) sessionMessage { return endDurable{fact, err} })
}

// attempt sums up what the run used of its model.
func (s *sessionActor) attempt(a *activeRun, run protocol.Run, result agent.Result) protocol.ModelAttempt {
	return protocol.ModelAttempt{CallID: run.ID, Binding: wire.Binding(a.bound), StartedAt: run.CreatedAt, FinishedAt: run.FinishedAt,
		Status: protocol.AttemptStatus(run.Status), Usage: wire.Usage(result.Usage), Error: run.Error}
}

func requestStatus(run protocol.RunStatus) protocol.RequestStatus {
	switch run {
	case protocol.RunCompleted:
		return protocol.RequestCompleted
	case protocol.RunCancelled:
		return protocol.RequestCancelled
	case protocol.RunInterrupted:
		return protocol.RequestInterrupted
	}
	return protocol.RequestFailed
}

func failure(err error) *protocol.Failure {
	f := &protocol.Failure{Code: string(protocol.CodeRuntime), Message: err.Error()}
	if coded, ok := err.(interface{ Code() string }); ok && coded.Code() != "" {
		f.Code = coded.Code()
	}
	return f
}

// ended publishes the end. A run whose end could not be saved is shown as interrupted, as the next start will find it.
func (s *sessionActor) ended(m endDurable) {
	a := s.active
	s.active = nil
	defer s.backend.active.end()
	if m.err != nil {
		f := &protocol.Failure{Code: string(protocol.CodeStorage), Message: fmt.Sprintf("the end of the run could not be saved: %v", m.err)}
		m.fact.Run.Status, m.fact.Run.Error = protocol.RunInterrupted, f
		for i := range m.fact.Requests {
			m.fact.Requests[i].Status, m.fact.Requests[i].Error = protocol.RequestInterrupted, f
		}
		s.notice(noticeGiven{code: string(protocol.CodeStorage), text: f.Message, level: protocol.LevelError})
	}
	s.runs = append(s.runs, m.fact.Run)
	if n := len(s.runs); n > viewRuns {
		s.runs = slices.Delete(s.runs, 0, n-viewRuns)
	}
	for i, e := range m.fact.Requests {
		s.publishRequest(e.Of(a.requests[i]))
	}
	s.publishRun(m.fact.Run)
	s.backend.feed.ChangeSession(s.key, func(v *protocol.SessionView) { v.UpdatedAt = max(v.UpdatedAt, m.fact.Run.FinishedAt) })
}
