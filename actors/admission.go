package actors

import (
	"cmp"
	"strings"

	"github.com/repa-app/repa/actors/engine"
	"github.com/repa-app/repa/actors/wire"
	"github.com/repa-app/repa/agent/prompt"
	"github.com/repa-app/repa/protocol"
)

// admission is a request on its way to the journal; repeats wait for the same outcome.
type admission struct {
	session     protocol.ID
	fingerprint string
	sent        bool // the session has it
	waiting     []engine.Reply[foundRequest]
}

// replyRecord answers a repeated submission from the stored record.
func replyRecord(m submitRequest, stored *foundRequest) {
	kept, err := fingerprint(stored.request.Submission, stored.kept.texts)
	switch {
	case err != nil:
		m.Fail(err)
	case kept != m.fingerprint:
		m.Fail(errIDConflict(m.submit.RequestID))
	default:
		m.Send(*stored)
	}
}

func errIDConflict(id protocol.ID) error {
	return protocol.Errorf(protocol.CodeRequestIdConflict, "request id %s was used before for another submission; use a new id", id)
}

// submit admits a request or finds the record of an earlier one. The order of the checks is that of protocol version 1: what is
// known already is answered before anything else is looked at.
func (s *spaceActor) submit(ctx *engine.Context[spaceMessage], m submitRequest) {
	id := m.submit.RequestID
	if a := s.admitting[id]; a != nil {
		if a.fingerprint != m.fingerprint {
			m.Fail(errIDConflict(id))
			return
		}
		a.waiting = append(a.waiting, m.Reply)
		return
	}
	if stored := s.found(id); stored != nil {
		replyRecord(m, stored)
		return
	}
	if err := s.admissible(m); err != nil {
		m.Fail(err)
		return
	}
	request := s.record(m)
	a := &admission{session: request.Target.SessionID, fingerprint: m.fingerprint, waiting: []engine.Reply[foundRequest]{m.Reply}}
	s.admitting[id] = a
	s.backend.active.begin()
	s.withSession(ctx, request.Target.SessionID, func(ref *engine.Ref[sessionMessage], err error) {
		if err == nil {
			err = ref.Post(admitRequest{request, m.texts, m.bound})
		}
		if a.sent = err == nil; !a.sent {
			s.admitted(admissionDecided{id: id, err: err})
		}
	})
}

// admissible checks what does not depend on the session.
func (s *spaceActor) admissible(m submitRequest) error {
	switch {
	case s.backend.state() != protocol.LifecycleRunning:
		return errShuttingDown
	case s.state.Newer:
		return protocol.Errorf(protocol.CodeInvalidStorage, "the journal of %s holds records of a newer version of Repa, so this version only reads it; use the newer version", s.info.Path)
	case s.sessions[m.submit.Target.SessionID] == nil:
		return protocol.Errorf(protocol.CodeNotFound, "there is no session %s in %s", m.submit.Target.SessionID, s.info.Path)
	}
	if err := checkInput(m.submit); err != nil {
		return err
	}
	if m.submit.Dispatch.Kind == dispatchSteer {
		return nil // it goes with the connection of its run
	}
	return m.unbound
}

const (
	dispatchStart = "start"
	dispatchSteer = "steer"
)

func checkInput(submit protocol.Submit) error {
	blank := true
	for _, p := range submit.Input.Parts {
		switch p.Kind {
		case "text", "selection":
			blank = blank && strings.TrimSpace(p.Text) == ""
		default:
			return protocol.Errorf(protocol.CodeInvalidInput, "input of kind %q is not taken here; send its text", p.Kind)
		}
	}
	switch {
	case blank:
		return protocol.Errorf(protocol.CodeInvalidInput, "the input is empty; write what you want to know or do")
	case submit.Dispatch.Kind == dispatchSteer && submit.Selection != nil:
		return protocol.Errorf(protocol.CodeInvalidInput, "a steer goes with the model and settings of its run; leave the selection out")
	case submit.Dispatch.Kind != dispatchStart && submit.Dispatch.Kind != dispatchSteer:
		return protocol.Errorf(protocol.CodeInvalidInput, "dispatch %q is not taken here; start a run, or steer the one that runs", submit.Dispatch.Kind)
	}
	return nil
}

// record makes the request's record. It gets its place in the order of admissions even if the session then refuses it.
func (s *spaceActor) record(m submitRequest) protocol.Request {
	r := protocol.Request{
		RequestID: m.submit.RequestID, Target: m.submit.Target, Submission: m.submit.Submission(), Input: m.submit.Input,
		CreatedAt: s.backend.now(), Sequence: s.state.Next, Source: protocol.Source{Kind: "client", HostID: m.host},
		PromptSettings: promptSettings(), Status: protocol.RequestQueued, Delivery: protocol.RequestDelivery{Status: protocol.DeliveryPending},
	}
	s.state.Next++
	if m.submit.Dispatch.Kind == dispatchStart {
		binding := wire.Binding(m.bound)
		r.RunOptions.Connection = &binding
		if m.submit.Selection != nil {
			r.RunOptions.ThinkingLevel = m.submit.Selection.ThinkingLevel
			r.RunOptions.Tools = m.submit.Selection.Tools
		}
	}
	return r
}

func promptSettings() protocol.PromptSettings {
	return protocol.PromptSettings{Base: prompt.Base, Append: []string{}, Environment: true, FileChanges: "on-demand"}
}

// admitted ends an admission: the record is kept and everybody who waits gets it.
func (s *spaceActor) admitted(m admissionDecided) {
	a := s.admitting[m.id]
	if a == nil {
		return // answered when its session ended
	}
	defer s.backend.active.end()
	delete(s.admitting, m.id)
	if m.err == nil {
		if len(m.texts) > 0 {
			s.state.Texts[m.id] = m.texts
		}
		s.state.Keep(m.request)
	}
	for _, r := range a.waiting {
		r.Done(foundRequest{request: m.request}, m.err)
	}
}

// maxTitle is how many characters of the first input name a session; protocol version 1 fixes it.
const maxTitle = 120

func titleOf(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > maxTitle {
		text = string(r[:maxTitle])
	}
	return cmp.Or(text, newTitle)
}
