package actors

import (
	"cmp"
	"context"
	"slices"

	"github.com/repa-app/repa/actors/engine"
	"github.com/repa-app/repa/actors/ledger"
	"github.com/repa-app/repa/agent/connection"
	"github.com/repa-app/repa/agent/session"
	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/protocol"
)

// spaceMessage is what a space receives.
type spaceMessage interface{ forSpace() }

type (
	// createSession makes a session.
	createSession struct {
		engine.Reply[protocol.SessionView]
	}
	// sessionCreated: a worker made the file.
	sessionCreated struct {
		reply engine.Reply[protocol.SessionView]
		file  string
		info  session.Info
		err   error
	}
	// listSessions asks for all sessions, newest activity first. It waits until all files were looked at.
	listSessions struct {
		engine.Reply[[]protocol.SessionSummary]
	}
	// sessionsListed: a worker looked at all session files.
	sessionsListed struct {
		infos []session.Info
		err   error
	}
	// findSession asks for the actor of a session, loading it when needed.
	findSession struct {
		engine.Reply[*engine.Ref[sessionMessage]]
		id protocol.ID
	}
	// submitRequest asks for admission.
	submitRequest struct {
		engine.Reply[foundRequest]
		submit      protocol.Submit
		texts       []ledger.Text // of the input, that belong into the store
		fingerprint string        // of the submission
		host        protocol.ID
		bound       connection.Bound
		unbound     error // why there is no connection
	}
	// admissionDecided: a session has admitted a request durably, or refused it.
	admissionDecided struct {
		id      protocol.ID
		request protocol.Request
		texts   []ledger.Text // of its input, that lie in the store
		err     error
	}
	// requestRecorded and runRecorded: a record changed. They come before the change is published.
	requestRecorded struct{ request protocol.Request }
	runRecorded     struct{ run protocol.Run }
	// getRequest, getRun and cancelRun are the methods of these names.
	getRequest struct {
		engine.Reply[*foundRequest] // nil: there is none
		id                          protocol.ID
	}
	getRun struct {
		engine.Reply[*foundRun] // nil: there is none
		params                  protocol.RunParams
	}
	cancelRun struct {
		engine.Reply[foundRun]
		params protocol.RunParams
	}
	// cancelRuns cancels whatever runs.
	cancelRuns struct{}
	// sessionIdle: a session has nothing to do and may be unloaded. sessionKept: it has something to do again. sessionEnded: its
	// actor is gone and its file closed.
	sessionIdle struct {
		id  protocol.ID
		ref *engine.Ref[sessionMessage]
	}
	sessionKept  struct{ id protocol.ID }
	sessionEnded struct{ id protocol.ID }
)

func (createSession) forSpace()    {}
func (sessionCreated) forSpace()   {}
func (listSessions) forSpace()     {}
func (sessionsListed) forSpace()   {}
func (findSession) forSpace()      {}
func (submitRequest) forSpace()    {}
func (admissionDecided) forSpace() {}
func (requestRecorded) forSpace()  {}
func (runRecorded) forSpace()      {}
func (getRequest) forSpace()       {}
func (getRun) forSpace()           {}
func (cancelRun) forSpace()        {}
func (cancelRuns) forSpace()       {}
func (sessionIdle) forSpace()      {}
func (sessionKept) forSpace()      {}
func (sessionEnded) forSpace()     {}

// spaceQueue is how many requests may wait for one space.
const spaceQueue = 8192

// spaceActor owns a space: which sessions it has, its requests and runs, and admission.
type spaceActor struct {
	*loadedSpace
	backend *Backend
	info    protocol.Space

	sessions  map[protocol.ID]*sessionEntry
	listed    bool
	listErr   error
	listing   []engine.Reply[[]protocol.SessionSummary]
	admitting map[protocol.ID]*admission
	tidy      tidiness
}

// sessionEntry is a session file and, while it is loaded, its actor. While the actor is asked to unload, what is meant for it is
// held: a message to an actor that ends would be lost.
type sessionEntry struct {
	file      string
	ref       *engine.Ref[sessionMessage]
	unloading bool
	held      []func(*engine.Context[spaceMessage])
}

func newSpace(b *Backend, info protocol.Space, l *loadedSpace) *spaceActor {
	s := &spaceActor{loadedSpace: l, backend: b, info: info, sessions: map[protocol.ID]*sessionEntry{}, admitting: map[protocol.ID]*admission{}}
	for id, file := range l.files {
		s.sessions[id] = &sessionEntry{file: file}
	}
	return s
}

// Started implements engine.Started: the session files are looked at in the background, and what sessions that are gone held is given free.
func (s *spaceActor) Started(ctx *engine.Context[spaceMessage]) {
	ctx.Go(func(work context.Context) spaceMessage {
		owners := slices.Collect(s.space.Store().AllOwners(cas.OwnerSession))
		var infos []session.Info
		known, whole := map[protocol.ID]bool{}, true
		err := session.List(work, s.loadedSpace.sessions, func(info session.Info, err error) bool {
			if err != nil {
				s.backend.log.Warn("a session file cannot be listed", "space", s.info.ID, "file", info.File, "error", err)
				whole = false
				return true
			}
			infos = append(infos, info)
			known[protocol.ID(info.ID)] = true
			if id, ok := sessionID(info.File); ok {
				known[id] = true
			}
			return true
		})
		if err == nil && whole { // a file that cannot be read may be any session's
			s.releaseSessions(work, s.backend.log, owners, known)
		}
		return sessionsListed{infos, err}
	}, func(err *engine.PanicError) spaceMessage { return sessionsListed{err: err} })
}

// Stopped implements engine.Stopped: the sessions have ended before.
func (s *spaceActor) Stopped() { s.close(s.backend.log) }

// Receive implements engine.Actor.
func (s *spaceActor) Receive(ctx *engine.Context[spaceMessage], m spaceMessage) {
	if done, ok := m.(tidied); ok {
		s.tidy.running, s.tidy.again = false, done.again
		return
	}
	s.tidy.due = true
	switch m := m.(type) {
	case createSession:
		s.create(ctx, m)
	case sessionCreated:
		s.created(m)
	case listSessions:
		if s.listed {
			m.Done(s.summaries(), s.listErr)
		} else {
			s.listing = append(s.listing, m.Reply)
		}
	case sessionsListed:
		s.show(m)
	case giveStore:
		m.Send(s.space.Store())
	case giveSpace:
		m.Send(s.space)
	case giveOutside:
		m.Send(s.outside)
	case findSession:
		s.withSession(ctx, m.id, func(ref *engine.Ref[sessionMessage], err error) { m.Done(ref, err) })
	case submitRequest:
		s.submit(ctx, m)
	case admissionDecided:
		s.admitted(m)
	case requestRecorded:
		s.state.Keep(m.request)
	case runRecorded:
		s.state.KeepRun(m.run)
	case getRequest:
		m.Send(s.found(m.id))
	case getRun:
		if run := s.run(m.params); run != nil {
			found := s.foundRun(*run)
			m.Send(&found)
		} else {
			m.Send(nil)
		}
	case cancelRun:
		s.cancel(ctx, m)
	case cancelRuns:
		for _, e := range s.sessions {
			if e.ref != nil {
				_ = e.ref.Post(cancelActive{}) // ended: nothing runs in it
			}
		}
	case sessionIdle:
		if e := s.sessions[m.id]; e != nil && e.ref == m.ref && !e.unloading {
			e.unloading = m.ref.Post(unloadSession{}) == nil
		}
	case sessionKept:
		s.release(ctx, m.id)
	case sessionEnded:
		s.ended(ctx, m.id)
	}
}

func (s *spaceActor) create(ctx *engine.Context[spaceMessage], m createSession) {
	fsys, b := s.loadedSpace.sessions, s.backend
	path := s.info.Path
	ctx.Go(func(context.Context) spaceMessage {
		store, err := session.Create(fsys, session.Options{CWD: path, Source: b.source()})
		if err != nil {
			return sessionCreated{reply: m.Reply, err: err}
		}
		header := store.Snapshot().Header
		info := session.Info{File: store.Name(), ID: header.ID, CreatedAt: header.Created(), UpdatedAt: header.Created()}
		return sessionCreated{m.Reply, store.Name(), info, store.Close()}
	}, func(err *engine.PanicError) spaceMessage { return sessionCreated{reply: m.Reply, err: err} })
}

// source gives session files their time and chance.
func (b *Backend) source() session.Source {
	return session.Source{Now: b.opts.Clock.Now, Rand: b.opts.Random}
}

func (s *spaceActor) created(m sessionCreated) {
	if m.err != nil {
		m.reply.Fail(m.err)
		return
	}
	id := protocol.ID(m.info.ID)
	s.sessions[id] = &sessionEntry{file: m.file}
	view := s.emptyView(m.info)
	s.backend.feed.Publish(protocol.Change{Type: protocol.ChangeSession, Session: &view})
	m.reply.Send(view)
}

// newTitle is shown for a session without any text.
const newTitle = "New session"

func (s *spaceActor) emptyView(info session.Info) protocol.SessionView {
	return protocol.SessionView{
		SpaceID: s.info.ID, SessionID: protocol.ID(info.ID), Title: cmp.Or(info.Title, newTitle),
		CreatedAt: protocol.MillisOf(info.CreatedAt), UpdatedAt: protocol.MillisOf(info.UpdatedAt), Runtime: protocol.RuntimeUnloaded,
		Messages: []protocol.Message{}, Runs: []protocol.Run{}, Interactions: []protocol.Interaction{}, Notices: []protocol.Notice{},
	}
}

// show puts the sessions that nobody has loaded or made since into the feed, and answers who waits for the list.
func (s *spaceActor) show(m sessionsListed) {
	s.listed, s.listErr = true, m.err
	runs := map[protocol.ID]protocol.Millis{}
	for _, r := range s.state.Runs {
		runs[r.SessionID] = max(runs[r.SessionID], r.CreatedAt, r.FinishedAt)
	}
	for _, info := range m.infos {
		id := protocol.ID(info.ID)
		if e := s.sessions[id]; e == nil || e.file != info.File {
			continue
		}
		view := s.emptyView(info)
		view.UpdatedAt = max(view.UpdatedAt, runs[id])
		s.backend.feed.ShowSummary(view)
	}
	for _, r := range s.listing {
		r.Done(s.summaries(), m.err)
	}
	s.listing = nil
}

// summaries lists the sessions in the order of the feed: newest activity first.
func (s *spaceActor) summaries() []protocol.SessionSummary {
	out := []protocol.SessionSummary{}
	for _, v := range s.backend.feed.Snapshot(protocol.Scope{SpaceID: s.info.ID}).Sessions {
		summary := protocol.SessionSummary{SpaceID: v.SpaceID, SessionID: v.SessionID, Title: v.Title, CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt, Runtime: v.Runtime}
		if len(v.Runs) > 0 { // outside of its own scope a session shows only what runs
			summary.ActiveRun = &v.Runs[0]
		}
		out = append(out, summary)
	}
	return out
}

// withSession does something with the actor of a session, loading it when needed, at once or when the actor that is being unloaded
// has ended or stays.
func (s *spaceActor) withSession(ctx *engine.Context[spaceMessage], id protocol.ID, do func(*engine.Ref[sessionMessage], error)) {
	e := s.sessions[id]
	if e == nil {
		do(nil, protocol.Errorf(protocol.CodeNotFound, "there is no session %s in %s", id, s.info.Path))
		return
	}
	if e.unloading {
		e.held = append(e.held, func(ctx *engine.Context[spaceMessage]) { s.withSession(ctx, id, do) })
		return
	}
	if e.ref == nil {
		ref, err := s.load(ctx, id, e.file)
		if err != nil {
			do(nil, err)
			return
		}
		e.ref = ref
	}
	do(e.ref, nil)
}

// release does what was held for a session.
func (s *spaceActor) release(ctx *engine.Context[spaceMessage], id protocol.ID) {
	e := s.sessions[id]
	held := e.held
	e.unloading, e.held = false, nil
	for _, do := range held {
		do(ctx)
	}
}

// ended forgets an actor that is gone. Admissions that it had not decided are answered: it failed with them.
func (s *spaceActor) ended(ctx *engine.Context[spaceMessage], id protocol.ID) {
	s.sessions[id].ref = nil
	for request, a := range s.admitting {
		if a.session == id && a.sent {
			s.admitted(admissionDecided{id: request, err: errPanic})
		}
	}
	s.release(ctx, id)
}

// load spawns the actor of a session.
func (s *spaceActor) load(ctx *engine.Context[spaceMessage], id protocol.ID, file string) (*engine.Ref[sessionMessage], error) {
	runs := s.state.RunsOf(id, viewRuns)
	past := make([]foundRun, len(runs))
	for i, run := range runs {
		past[i] = s.foundRun(run)
	}
	a := &sessionActor{
		backend: s.backend, space: s.space, parent: ctx.Self(), log: s.log, fsys: s.loadedSpace.sessions,
		key: protocol.SessionKey{SpaceID: s.info.ID, SessionID: id}, file: file,
		past: past,
	}
	return engine.Spawn[sessionMessage](ctx, engine.Options{Name: "session " + string(id), Workers: 1, Idle: s.backend.opts.SessionIdle}, a)
}

// viewRuns is how many runs of the past a session's view shows; protocol version 1 fixes it.
const viewRuns = 100

// run finds a run by its id or by the id of a request that belongs to it.
func (s *spaceActor) run(p protocol.RunParams) *protocol.Run {
	id := p.RunID
	if id == "" {
		r := s.state.Requests[p.RequestID]
		if r == nil {
			return nil
		}
		id = r.RunID
	}
	return s.state.Runs[id]
}

func (s *spaceActor) cancel(ctx *engine.Context[spaceMessage], m cancelRun) {
	run := s.run(m.params)
	switch {
	case run == nil:
		m.Fail(protocol.Errorf(protocol.CodeUnknownRun, "there is no run %s in %s", cmp.Or(m.params.RunID, m.params.RequestID), s.info.Path))
	case run.Status.Terminal():
		m.Send(s.foundRun(*run))
	default:
		s.withSession(ctx, run.SessionID, func(ref *engine.Ref[sessionMessage], err error) {
			if err != nil || ref.Post(cancelActive{m.Reply, run.ID}) != nil {
				m.Send(s.foundRun(*run))
			}
		})
	}
}
