package actors

import (
	"context"
	"fmt"

	"github.com/repa-app/repa/actors/engine"
	"github.com/repa-app/repa/actors/ledger"
	"github.com/repa-app/repa/actors/wire"
	"github.com/repa-app/repa/agent"
	"github.com/repa-app/repa/agent/connection"
	"github.com/repa-app/repa/agent/session"
	"github.com/repa-app/repa/cas/recordlog"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/space"
)

// sessionMessage is what a session receives.
type sessionMessage interface{ forSession() }

type (
	// sessionLoaded: a worker read the session file.
	sessionLoaded struct {
		store *session.Store
		runs  []protocol.Run
		lost  error // why the text of a past run cannot be read
		err   error
	}
	// viewSession and readHistory are the methods session.get and session.history.
	viewSession struct {
		engine.Reply[protocol.SessionView]
	}
	readHistory struct {
		engine.Reply[protocol.HistoryResult]
		params protocol.HistoryParams
	}
	// admitRequest asks for a decision about a request whose general checks were passed.
	admitRequest struct {
		request protocol.Request
		texts   []ledger.Text // of its input, that belong into the store
		bound   connection.Bound
	}
	// requestDurable: the journal has an admission, or the disk refused it.
	requestDurable struct {
		request protocol.Request
		texts   []ledger.Text
		run     *protocol.Run // set for a start
		bound   connection.Bound
		err     error
	}
	// cancelActive cancels the active run; an empty run means whichever.
	cancelActive struct {
		engine.Reply[foundRun]
		run protocol.ID
	}
	// recordMessages appends to the session file what the run produced or took in.
	recordMessages struct {
		engine.Reply[[]string]
		records []agent.Record
	}
	// messagesRecorded: a worker has appended them durably, or the disk refused.
	messagesRecorded struct {
		ask recordMessages
		ids []string
		err error
	}
	// phaseChanged: the run is busy with something else.
	phaseChanged struct {
		run   protocol.ID
		phase protocol.RunPhase
	}
	// noticeGiven: the run tells people something.
	noticeGiven struct {
		code, text string
		level      protocol.Level
	}
	// runEnded: the agent has stopped.
	runEnded struct {
		run    protocol.ID
		result agent.Result
	}
	// endDurable: the journal has the end of a run, or the disk refused it.
	endDurable struct {
		fact ledger.Ended
		err  error
	}
	// settleDurable: the journal has the end of a steer that did not reach its run.
	settleDurable struct {
		request protocol.Request
		texts   []ledger.Text
		err     error
	}
	// unloadSession ends the actor when nothing has come up since it was idle.
	unloadSession struct{}
	// nothingToDo is the result of work that answered by itself.
	nothingToDo struct{}
)

func (sessionLoaded) forSession()    {}
func (viewSession) forSession()      {}
func (readHistory) forSession()      {}
func (admitRequest) forSession()     {}
func (requestDurable) forSession()   {}
func (cancelActive) forSession()     {}
func (recordMessages) forSession()   {}
func (messagesRecorded) forSession() {}
func (phaseChanged) forSession()     {}
func (noticeGiven) forSession()      {}
func (runEnded) forSession()         {}
func (endDurable) forSession()       {}
func (settleDurable) forSession()    {}
func (unloadSession) forSession()    {}
func (nothingToDo) forSession()      {}

// sessionActor owns a session: its file, its active run, and who may start or steer. Its one worker does everything durable, in
// order.
type sessionActor struct {
	backend *Backend
	space   *space.Space
	parent  *engine.Ref[spaceMessage]
	log     *recordlog.Log
	fsys    vfs.FS
	key     protocol.SessionKey
	file    string
	past    []foundRun // runs that were over when it was loaded

	runs     []protocol.Run // of the past
	store    *session.Store
	loadErr  error
	waiting  []sessionMessage // until the file is read
	tools    *sessionTools
	starting bool // the admission of a start is on its way to the journal
	active   *activeRun
	damaged  int   // lines of the file that are no entries
	lost     error // why the text of a past run cannot be read
}

// activeRun is the run that has not ended yet.
type activeRun struct {
	record   protocol.Run
	ref      *engine.Ref[runMessage]
	requests []protocol.Request // the one that started it, then the steers
	apart    bool               // texts of the first lie in the store
	bound    connection.Bound
	cancel   bool // it was asked to stop
	ending   bool // the agent has stopped; its end is on its way to the journal
}

// maxWaiting bounds what waits for a session file to be read.
const maxWaiting = 1024

// Started implements engine.Started.
func (s *sessionActor) Started(ctx *engine.Context[sessionMessage]) {
	fsys, file, source, past := s.fsys, s.file, s.backend.source(), s.past
	s.past = nil
	ctx.Go(func(work context.Context) sessionMessage {
		store, err := session.Open(fsys, file, source)
		loaded := sessionLoaded{store: store, runs: make([]protocol.Run, len(past)), err: err}
		for i, f := range past {
			if loaded.runs[i], err = f.whole(work); err != nil {
				loaded.runs[i], loaded.lost = f.run, err
			}
		}
		return loaded
	}, func(err *engine.PanicError) sessionMessage { return sessionLoaded{err: err} })
}

// Stopped implements engine.Stopped.
func (s *sessionActor) Stopped() {
	if s.store != nil {
		if err := s.store.Close(); err != nil {
			s.backend.log.Error("close session file", "session", s.key.SessionID, "error", err)
		}
	}
	_ = s.parent.Post(sessionEnded{s.key.SessionID}) // a space that ended loads nothing any more
}

// Idle implements engine.Idle.
func (s *sessionActor) Idle(ctx *engine.Context[sessionMessage]) {
	if s.idle() && !s.backend.feed.Watched(s.key) {
		_ = s.parent.Post(sessionIdle{s.key.SessionID, ctx.Self()}) // a space that ended ends its sessions
	}
}

func (s *sessionActor) idle() bool {
	return s.active == nil && !s.starting && (s.store != nil || s.loadErr != nil)
}

// Panicked implements engine.Panicked: a session whose handler failed is unloaded, so that it is read anew from its file.
func (s *sessionActor) Panicked(*engine.Context[sessionMessage], *engine.PanicError) bool {
	return s.active != nil // never while a run needs it
}

// Receive implements engine.Actor.
func (s *sessionActor) Receive(ctx *engine.Context[sessionMessage], m sessionMessage) {
	if loaded, ok := m.(sessionLoaded); ok {
		s.loaded(ctx, loaded)
		return
	}
	if s.store == nil && s.loadErr == nil {
		s.wait(m)
		return
	}
	switch m := m.(type) {
	case viewSession:
		v, ok := s.backend.feed.Session(s.key)
		switch {
		case s.loadErr != nil:
			m.Fail(s.loadErr)
		case !ok:
			m.Fail(errClosedSpace)
		default:
			m.Send(v)
		}
	case readHistory:
		s.history(ctx, m)
	case admitRequest:
		s.admit(ctx, m)
	case requestDurable:
		s.admitted(ctx, m)
	case cancelActive:
		s.cancel(m)
	case recordMessages:
		s.append(ctx, m)
	case messagesRecorded:
		s.appended(m)
	case phaseChanged:
		if a := s.active; a != nil && a.record.ID == m.run && !a.ending && a.record.Phase != m.phase {
			a.record.Phase = m.phase
			s.publishRun(a.record)
		}
	case noticeGiven:
		s.notice(m)
	case runEnded:
		s.end(ctx, m)
	case endDurable:
		s.ended(m)
	case settleDurable:
		s.settled(m)
	case unloadSession:
		if s.idle() && s.backend.feed.Unload(s.key) {
			ctx.Stop()
		} else {
			_ = s.parent.Post(sessionKept{s.key.SessionID})
		}
	}
}

var errClosedSpace = protocol.Errorf(protocol.CodeNotFound, "the space has been closed")

func (s *sessionActor) wait(m sessionMessage) {
	if len(s.waiting) == maxWaiting {
		if f, ok := m.(interface{ Fail(error) }); ok {
			f.Fail(protocol.Errorf(protocol.CodeBusy, "the session is still being read and too much waits for it; try again"))
			return
		}
	}
	s.waiting = append(s.waiting, m)
}

// loaded shows the session and handles what waited for it.
func (s *sessionActor) loaded(ctx *engine.Context[sessionMessage], m sessionLoaded) {
	s.store, s.runs, s.lost = m.store, m.runs, m.lost
	if m.err != nil {
		s.loadErr = protocol.Errorf(protocol.CodeInvalidStorage, "the session file %s cannot be read: %v. The file was left as it is", s.file, m.err)
	} else {
		s.tools = newSessionTools(s.backend, s.space, s.key.SessionID)
		s.damaged = len(m.store.Damage())
		s.backend.feed.Show(s.view())
	}
	waiting := s.waiting
	s.waiting = nil
	for _, w := range waiting {
		s.Receive(ctx, w)
	}
}

func (s *sessionActor) view() protocol.SessionView {
	snapshot := s.store.Snapshot()
	v := protocol.SessionView{
		SpaceID: s.key.SpaceID, SessionID: s.key.SessionID, Title: newTitle,
		CreatedAt: protocol.MillisOf(snapshot.Header.Created()), Runtime: protocol.RuntimeUnloaded,
		Messages: wire.Messages(snapshot.Branch), Runs: s.runs, Interactions: []protocol.Interaction{}, Notices: []protocol.Notice{},
	}
	v.UpdatedAt = v.CreatedAt
	for _, m := range v.Messages {
		v.UpdatedAt = max(v.UpdatedAt, m.Timestamp)
	}
	for _, r := range v.Runs {
		v.UpdatedAt = max(v.UpdatedAt, r.CreatedAt, r.FinishedAt)
	}
	for _, m := range v.Messages {
		if m.Role == protocol.RoleUser && len(m.Content) > 0 {
			v.Title = titleOf(m.Content[0].Text)
			break
		}
	}
	if snapshot.Name != "" {
		v.Title = titleOf(snapshot.Name)
	}
	if s.lost != nil {
		v.Notices = append(v.Notices, protocol.Notice{ID: "texts", Code: string(protocol.CodeInvalidStorage), Level: protocol.LevelWarning,
			Message: fmt.Sprintf("The text of a past run cannot be read: %v.", s.lost)})
	}
	if s.damaged > 0 {
		v.Notices = append(v.Notices, protocol.Notice{ID: "damage", Code: string(protocol.CodeInvalidStorage), Level: protocol.LevelWarning,
			Message: fmt.Sprintf("%d lines of the session file %s cannot be read; they were kept as they are.", s.damaged, s.file)})
	}
	return v
}

func (s *sessionActor) publish(changes ...protocol.Change) { s.backend.feed.Publish(changes...) }

// publishRun tells the space before anybody else, so that whoever sees the change and asks gets at least this.
func (s *sessionActor) publishRun(run protocol.Run) {
	_ = s.parent.Post(runRecorded{run}) // a space that ended needs no records
	s.publish(protocol.Change{Type: protocol.ChangeRun, Run: &run})
}

func (s *sessionActor) publishRequest(request protocol.Request) {
	_ = s.parent.Post(requestRecorded{request})
	s.publish(protocol.Change{Type: protocol.ChangeRequest, Request: &request})
}

func (s *sessionActor) notice(m noticeGiven) {
	n := protocol.Notice{ID: m.code, Code: m.code, Message: m.text, Level: m.level}
	s.publish(protocol.Change{Type: protocol.ChangeNotice, SpaceID: s.key.SpaceID, SessionID: s.key.SessionID, Notice: &n})
}

// append writes durably through the session's one worker, so that the file has one writer and one order.
func (s *sessionActor) append(ctx *engine.Context[sessionMessage], m recordMessages) {
	store := s.store
	drafts := make([]session.Draft, len(m.records))
	for i, r := range m.records {
		drafts[i] = session.NewMessage(r.Message, r.RequestID)
	}
	if a := s.active; a != nil {
		if provider, model := store.Snapshot().Model(); provider != string(a.bound.Provider) || model != a.bound.Model {
			drafts = append([]session.Draft{session.NewModelChange(string(a.bound.Provider), a.bound.Model)}, drafts...)
		}
	}
	extra := len(drafts) - len(m.records)
	ctx.Go(func(context.Context) sessionMessage {
		ids, err := store.Append(drafts...)
		if err != nil {
			return messagesRecorded{m, nil, err}
		}
		return messagesRecorded{m, ids[extra:], nil}
	}, func(err *engine.PanicError) sessionMessage { return messagesRecorded{m, nil, err} })
}

// appended notes which inputs entered the history, then lets the run go on; the run shows the messages.
func (s *sessionActor) appended(m messagesRecorded) {
	if m.err != nil {
		m.ask.Fail(m.err)
		return
	}
	for i, id := range m.ids {
		if request := m.ask.records[i].RequestID; request != "" {
			s.entered(protocol.ID(request), protocol.ID(id))
		}
	}
	m.ask.Send(m.ids)
}

// entered notes that a request's input stands in the history.
func (s *sessionActor) entered(id, message protocol.ID) {
	a := s.active
	if a == nil {
		return
	}
	for i := range a.requests {
		if r := &a.requests[i]; r.RequestID == id {
			r.Delivery = protocol.RequestDelivery{Status: protocol.DeliveryEntered, MessageIDs: append(append([]protocol.ID{}, r.Delivery.MessageIDs...), message)}
			s.publishRequest(*r)
		}
	}
}
