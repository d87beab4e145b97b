package feed

import (
	"cmp"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/repa-app/repa/protocol"
)

const (
	// viewTail is how many messages and runs a session's view shows; protocol version 1 fixes it.
	viewTail = 100
	// ringBytes bounds what one ring keeps: minutes of a fast stream, or hours of ordinary changes.
	ringBytes = 1 << 20
	// pendingBytes bounds what waits for one subscriber before it gets a snapshot instead.
	pendingBytes = 4 << 20
)

// Feed is the published state of a backend.
type Feed struct {
	serverID string
	log      *slog.Logger

	mu        sync.Mutex
	sequence  int64
	lifecycle protocol.Lifecycle
	spaces    map[protocol.ID]*space
	app       ring
	subs      map[protocol.Scope]map[*Subscription]struct{}
}

type space struct {
	info     protocol.Space
	sessions map[protocol.ID]*session
	ring     ring
}

type session struct {
	state    protocol.Snapshot // exactly one session
	complete bool              // the view has the session's messages and runs, not only its summary
	ring     ring
}

func (s *session) view() *protocol.SessionView { return &s.state.Sessions[0] }

// New makes a feed in lifecycle running. The log hears of what cannot be put into the wire's form, which is a fault of the publisher.
func New(serverID string, log *slog.Logger) *Feed {
	return &Feed{serverID: serverID, log: log, lifecycle: protocol.LifecycleRunning, spaces: map[protocol.ID]*space{}, subs: map[protocol.Scope]map[*Subscription]struct{}{}}
}

// Publish applies changes to the state and hands them to whom they concern, in order and without others in between. The caller
// does not change them afterwards.
func (f *Feed) Publish(changes ...protocol.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range changes {
		f.publish(c)
	}
}

func (f *Feed) publish(c protocol.Change) {
	f.sequence++
	e := &entry{sequence: f.sequence, change: c, size: sizeOf(c)}
	if r := f.apply(&e.change); r != nil {
		r.add(e)
	}
	if key := scopeOf(c); key.SessionID != "" {
		for _, scope := range []protocol.Scope{{}, {SpaceID: key.SpaceID}, key} {
			f.deliver(scope, e)
		}
		return
	}
	for scope := range f.subs {
		f.deliver(scope, e)
	}
}

func (f *Feed) deliver(scope protocol.Scope, e *entry) {
	same := f.subs[scope]
	if len(same) == 0 || !protocol.Relevant(scope, e.change) {
		return
	}
	for sub := range same {
		sub.add(e)
	}
}

// apply changes the state and returns the ring that keeps the change: a session's for what only its watchers get, else its
// space's, else the application's. It returns nil for what belongs to no known space or session.
func (f *Feed) apply(c *protocol.Change) *ring {
	switch c.Type {
	case protocol.ChangeLifecycle:
		f.lifecycle = c.Lifecycle
		return &f.app
	case protocol.ChangeSpace:
		if s := f.spaces[c.Space.ID]; s != nil {
			s.info = *c.Space
		} else {
			f.spaces[c.Space.ID] = &space{info: *c.Space, sessions: map[protocol.ID]*session{}}
		}
		return &f.app
	case protocol.ChangeConnection:
		return &f.app
	}
	key := scopeOf(*c)
	sp := f.spaces[key.SpaceID]
	if sp == nil {
		return nil
	}
	switch c.Type {
	case protocol.ChangeContent:
		sp.info.ContentRevision = c.Revision
		return &sp.ring
	case protocol.ChangeSessionRemoved:
		delete(sp.sessions, key.SessionID)
		return &sp.ring
	case protocol.ChangeSession:
		if sp.sessions[key.SessionID] == nil {
			sp.sessions[key.SessionID] = &session{}
		}
	}
	se := sp.sessions[key.SessionID]
	if se == nil {
		return nil
	}
	protocol.Apply(&se.state, *c)
	v := se.view()
	v.Messages, v.Runs = tail(v.Messages), tail(v.Runs)
	switch c.Type {
	case protocol.ChangeMessage, protocol.ChangeDelta, protocol.ChangeTool:
		return &se.ring
	}
	return &sp.ring
}

func tail[T any](list []T) []T {
	if n := len(list); n > viewTail {
		return slices.Delete(list, 0, n-viewTail)
	}
	return list
}

func scopeOf(c protocol.Change) protocol.Scope {
	switch {
	case c.Session != nil:
		return c.Session.Key().Scope()
	case c.Run != nil:
		return protocol.Scope{SpaceID: c.Run.SpaceID, SessionID: c.Run.SessionID}
	case c.Request != nil:
		return c.Request.Target.Scope()
	case c.Queue != nil:
		return c.Queue.Target.Scope()
	}
	return protocol.Scope{SpaceID: c.SpaceID, SessionID: c.SessionID}
}

// ChangeSession lets change edit the view of a session and publishes the result as a session change. Messages and runs are the
// feed's own: change leaves them alone unless it replaces them. It reports false when the session is not shown.
func (f *Feed) ChangeSession(key protocol.SessionKey, change func(*protocol.SessionView)) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	se := f.session(key)
	if se == nil {
		return false
	}
	view := se.state.Clone().Sessions[0]
	change(&view)
	f.publish(protocol.Change{Type: protocol.ChangeSession, Session: &view})
	return true
}

// ShowSummary sets the view of a session of which only the summary is known, without a change: nothing happened to it. A view that
// is there already stays.
func (f *Feed) ShowSummary(view protocol.SessionView) { f.show(view, false) }

// Show sets the complete view of a session, without a change. Whoever resumes from before it was complete gets a snapshot.
func (f *Feed) Show(view protocol.SessionView) { f.show(view, true) }

func (f *Feed) show(view protocol.SessionView, complete bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sp := f.spaces[view.SpaceID]
	if sp == nil {
		return
	}
	se := sp.sessions[view.SessionID]
	if se == nil {
		se = &session{}
		sp.sessions[view.SessionID] = se
	} else if !complete {
		return
	}
	if complete && !se.complete { // who resumes from before may lack what no change told
		f.sequence++
		se.ring.evicted = f.sequence
	}
	se.state, se.complete = protocol.Snapshot{Sessions: []protocol.SessionView{view}}.Clone(), complete // deltas change messages in place
	own := se.view()
	own.Messages, own.Runs = tail(own.Messages), tail(own.Runs)
}

// Unload takes the messages out of a session's view, unless somebody watches the session. It reports whether it did.
func (f *Feed) Unload(key protocol.SessionKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	se := f.session(key)
	if se == nil {
		return true
	}
	if len(f.subs[key.Scope()]) > 0 {
		return false
	}
	view := se.state.Clone().Sessions[0]
	view.Runtime, view.Messages = protocol.RuntimeUnloaded, []protocol.Message{}
	f.publish(protocol.Change{Type: protocol.ChangeSession, Session: &view})
	se.complete = false
	return true
}

// Complete reports whether a session's view has its messages. A session that is not shown has nothing that could be missing.
func (f *Feed) Complete(key protocol.SessionKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	se := f.session(key)
	return se == nil || se.complete
}

// Session returns the view of a session.
func (f *Feed) Session(key protocol.SessionKey) (protocol.SessionView, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	se := f.session(key)
	if se == nil {
		return protocol.SessionView{}, false
	}
	return se.state.Clone().Sessions[0], true
}

func (f *Feed) session(key protocol.SessionKey) *session {
	if sp := f.spaces[key.SpaceID]; sp != nil {
		return sp.sessions[key.SessionID]
	}
	return nil
}

// Watched reports whether anybody watches exactly this session.
func (f *Feed) Watched(key protocol.SessionKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.subs[key.Scope()]) > 0
}

// RemoveSpace forgets a space that was closed. No change of the protocol says so: whoever sees the space gets a snapshot, and so
// does everybody who resumes from before.
func (f *Feed) RemoveSpace(id protocol.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.spaces[id] == nil {
		return
	}
	delete(f.spaces, id)
	f.sequence++
	f.app.evicted = f.sequence
	for scope, same := range f.subs {
		if scope.SpaceID != "" && scope.SpaceID != id {
			continue
		}
		for sub := range same {
			sub.renew()
		}
	}
}

// Snapshot returns what a subscriber of the scope would see now.
func (f *Feed) Snapshot(scope protocol.Scope) protocol.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.snapshot(scope)
}

func (f *Feed) snapshot(scope protocol.Scope) protocol.Snapshot {
	out := protocol.Snapshot{Lifecycle: f.lifecycle, Spaces: []protocol.Space{}, Sessions: []protocol.SessionView{}, Execution: []protocol.ExecutionView{}}
	for id, sp := range f.spaces {
		if scope.SpaceID != "" && scope.SpaceID != id {
			continue
		}
		out.Spaces = append(out.Spaces, sp.info)
		for sid, se := range sp.sessions {
			if scope.SessionID != "" && scope.SessionID != sid {
				continue
			}
			view := se.state.Clone().Sessions[0]
			if scope.SessionID == "" {
				view = slim(view)
			}
			out.Sessions = append(out.Sessions, view)
		}
	}
	slices.SortFunc(out.Spaces, func(a, b protocol.Space) int { return strings.Compare(string(a.ID), string(b.ID)) })
	slices.SortFunc(out.Sessions, func(a, b protocol.SessionView) int {
		return cmp.Or(cmp.Compare(b.UpdatedAt, a.UpdatedAt), cmp.Compare(b.CreatedAt, a.CreatedAt), strings.Compare(string(a.SessionID), string(b.SessionID)))
	})
	return out
}

// slim is a session's view outside of its own scope: no messages, and only the runs that are not over.
func slim(v protocol.SessionView) protocol.SessionView {
	v.Messages = []protocol.Message{}
	v.Runs = slices.DeleteFunc(slices.Clone(v.Runs), func(r protocol.Run) bool { return r.Status.Terminal() })
	return v
}

func (f *Feed) cursor(sequence int64) string {
	return f.serverID + ":" + strconv.FormatInt(sequence, 10)
}

// parseCursor returns the number of a cursor of this backend.
func (f *Feed) parseCursor(cursor string) (int64, bool) {
	text, ok := strings.CutPrefix(cursor, f.serverID+":")
	n, err := strconv.ParseInt(text, 10, 64)
	return n, ok && err == nil && n >= 0 && n <= f.sequence && strconv.FormatInt(n, 10) == text
}
