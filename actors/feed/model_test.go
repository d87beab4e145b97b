package feed_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/repa-app/repa/actors/feed"
	"github.com/repa-app/repa/protocol"
)

// model is the reference: everything that was published, in one list and in one state.
type model struct {
	t     *rapid.T
	feed  *feed.Feed
	n     int // numbers everything, so that each change is known by its text
	state protocol.Snapshot
	log   []published
	live  map[protocol.SessionKey]string      // the message that is being written
	runs  map[protocol.SessionKey]protocol.ID // the run that is active
}

type published struct {
	change protocol.Change
	lost   bool // of a session that was removed since: a resume does not bring it back
}

var spaces, sessions = []protocol.ID{"p", "q"}, []protocol.ID{"s", "t", "u"}

func newModel(t *rapid.T) *model {
	return &model{t: t, feed: feed.New(serverID, slog.New(slog.DiscardHandler)), state: protocol.Snapshot{Lifecycle: protocol.LifecycleRunning},
		live: map[protocol.SessionKey]string{}, runs: map[protocol.SessionKey]protocol.ID{}}
}

func (m *model) next(prefix string) string {
	m.n++
	return fmt.Sprintf("%s-%d", prefix, m.n)
}

// publish hands changes to the feed and to the reference.
func (m *model) publish(changes ...protocol.Change) {
	m.feed.Publish(changes...)
	for _, c := range changes {
		m.record(c)
	}
}

func (m *model) record(c protocol.Change) {
	if c.Type == protocol.ChangeSessionRemoved {
		m.lose(c.SpaceID, c.SessionID)
	}
	m.log = append(m.log, published{change: c})
	protocol.Apply(&m.state, c)
	for i := range m.state.Sessions {
		v := &m.state.Sessions[i]
		v.Messages, v.Runs = v.Messages[max(0, len(v.Messages)-100):], v.Runs[max(0, len(v.Runs)-100):]
	}
}

// lose forgets the sessions of a space, or one of them.
func (m *model) lose(space, session protocol.ID) {
	for i := range m.log {
		c := &m.log[i].change
		if c.SpaceID == space && (session == "" || c.SessionID == session) && slices.Contains([]protocol.ChangeType{"message", "delta", "tool"}, c.Type) {
			m.log[i].lost = true
		}
	}
	for _, id := range sessions {
		if key := (protocol.SessionKey{SpaceID: space, SessionID: id}); session == "" || session == id {
			delete(m.live, key)
			delete(m.runs, key)
		}
	}
}

// view is what a scope shows according to the reference.
func (m *model) view(scope protocol.Scope) protocol.Snapshot {
	s := m.state.Clone()
	s.Spaces = slices.DeleteFunc(s.Spaces, func(p protocol.Space) bool { return scope.SpaceID != "" && scope.SpaceID != p.ID })
	s.Sessions = slices.DeleteFunc(s.Sessions, func(v protocol.SessionView) bool { return !scope.Contains(v.Key().Scope()) })
	return s
}

func (m *model) space() (protocol.ID, bool) {
	id := rapid.SampledFrom(spaces).Draw(m.t, "space")
	return id, slices.ContainsFunc(m.state.Spaces, func(p protocol.Space) bool { return p.ID == id })
}

// session draws a session and makes it, and its space, if they are not there.
func (m *model) session() protocol.SessionKey {
	space, there := m.space()
	if !there {
		m.publish(openSpace(space))
	}
	key := protocol.SessionKey{SpaceID: space, SessionID: rapid.SampledFrom(sessions).Draw(m.t, "session")}
	if !slices.ContainsFunc(m.state.Sessions, func(v protocol.SessionView) bool { return v.Key() == key }) {
		c := newSession(key.SpaceID, key.SessionID)
		c.Session.Title = m.next("new")
		m.publish(c)
	}
	return key
}

// happen does one thing that can happen in a backend.
func (m *model) happen() {
	kinds := []string{"delta", "delta", "delta", "message", "message", "finish", "run", "run", "tool", "notice", "question", "change", "content", "space",
		"lifecycle", "signals", "batch", "many", "remove session", "remove space", "flood", "stray"}
	switch kind := rapid.SampledFrom(kinds).Draw(m.t, "happens"); kind {
	case "content":
		if space, there := m.space(); there {
			m.publish(protocol.Change{Type: protocol.ChangeContent, SpaceID: space, Revision: m.next("revision"), Paths: []string{"a.md"}})
		}
	case "space":
		space, _ := m.space()
		c := openSpace(space)
		c.Space.Path = m.next("/path")
		m.publish(c)
	case "lifecycle":
		m.publish(protocol.Change{Type: protocol.ChangeLifecycle, Lifecycle: rapid.SampledFrom([]protocol.Lifecycle{"running", "draining"}).Draw(m.t, "lifecycle")})
	case "remove space":
		if space, there := m.space(); there && rapid.IntRange(0, 3).Draw(m.t, "really") == 0 {
			m.feed.RemoveSpace(space)
			m.lose(space, "")
			m.state.Spaces = slices.DeleteFunc(m.state.Spaces, func(p protocol.Space) bool { return p.ID == space })
			m.state.Sessions = slices.DeleteFunc(m.state.Sessions, func(v protocol.SessionView) bool { return v.SpaceID == space })
		}
	default:
		m.inSession(kind, m.session())
	}
}

func (m *model) inSession(kind string, key protocol.SessionKey) {
	at := func(c protocol.Change) protocol.Change {
		c.SpaceID, c.SessionID = key.SpaceID, key.SessionID
		return c
	}
	switch kind {
	case "delta":
		m.publish(m.streamed(key)...)
	case "message":
		m.begin(key)
	case "finish":
		m.finish(key)
	case "run":
		m.run(key)
	case "tool":
		m.publish(at(protocol.Change{Type: protocol.ChangeTool, RunID: "r", CallID: m.next("call"), Name: "read", Status: protocol.ToolRunning}))
	case "notice":
		id := rapid.SampledFrom([]string{"a", "b"}).Draw(m.t, "notice")
		m.publish(at(protocol.Change{Type: protocol.ChangeNotice, Notice: &protocol.Notice{ID: id, Code: "c", Message: m.next("notice"), Level: protocol.LevelInfo}}))
	case "question":
		c := at(protocol.Change{Type: protocol.ChangeInteraction, ID: "question"})
		if rapid.Bool().Draw(m.t, "asks") {
			c.Interaction = &protocol.Interaction{ID: "question", Kind: protocol.InteractionInput, Title: m.next("question"), SpaceID: key.SpaceID, SessionID: key.SessionID, RunID: "r"}
		}
		m.publish(c)
	case "change":
		title := m.next("title")
		var changed protocol.SessionView
		m.feed.ChangeSession(key, func(v *protocol.SessionView) {
			v.Title, v.UpdatedAt = title, protocol.Millis(m.n)
			changed = protocol.Snapshot{Sessions: []protocol.SessionView{*v}}.Clone().Sessions[0]
		})
		m.record(protocol.Change{Type: protocol.ChangeSession, Session: &changed})
	case "signals":
		m.publish(protocol.Change{Type: protocol.ChangeConnection, ConnectionID: protocol.ID(m.next("connection"))},
			protocol.Change{Type: protocol.ChangeQueue, Queue: &protocol.Queue{Target: key, Status: protocol.QueuePaused, Requests: []protocol.Request{}}})
	case "batch":
		var all []protocol.Change
		for range rapid.IntRange(2, 6).Draw(m.t, "pieces") {
			all = append(all, m.streamed(key)...)
		}
		m.publish(all...)
	case "many":
		m.finish(key)
		m.publish(slices.Concat(m.copies(key, 30, ""), m.finished(key, 30))...)
	case "remove session":
		m.publish(at(protocol.Change{Type: protocol.ChangeSessionRemoved}))
	case "flood": // more than a ring keeps, with luck more than waits for a reader
		if rapid.IntRange(0, 3).Draw(m.t, "really") == 0 {
			m.finish(key)
			m.publish(m.copies(key, rapid.IntRange(4, 18).Draw(m.t, "large"), flood)...)
		}
	case "stray": // what comes too late for a session that is gone
		m.feed.Publish(delta(key.SpaceID, "gone", "x", 0, "x"), message(key.SpaceID, "gone", "x", "x"), delta("nowhere", "s", "x", 0, "x"))
	}
}

var flood = strings.Repeat("x", 270<<10)

// begin starts a message that is written piece by piece.
func (m *model) begin(key protocol.SessionKey) {
	m.finish(key)
	c := message(key.SpaceID, key.SessionID, m.next("message"), "")
	c.Message.Streaming, c.Message.Content = true, []protocol.Block{}
	m.live[key] = c.Message.ID
	m.publish(c)
}

// streamed is a piece of the message that is being written.
func (m *model) streamed(key protocol.SessionKey) []protocol.Change {
	if m.live[key] == "" {
		m.begin(key)
	}
	id := m.live[key]
	index := rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(m.t, "block")
	return []protocol.Change{delta(key.SpaceID, key.SessionID, id, index, m.next("")+">")}
}

func (m *model) finish(key protocol.SessionKey) {
	id := m.live[key]
	if id == "" {
		return
	}
	delete(m.live, key)
	c := message(key.SpaceID, key.SessionID, m.next("final"), "whole")
	c.Replaces = id
	m.publish(c)
}

func (m *model) copies(key protocol.SessionKey, n int, text string) (out []protocol.Change) {
	for range n {
		out = append(out, message(key.SpaceID, key.SessionID, m.next("message"), text))
	}
	return out
}

func (m *model) finished(key protocol.SessionKey, n int) (out []protocol.Change) {
	if id := m.runs[key]; id != "" {
		out = append(out, runOf(key.SpaceID, key.SessionID, id, protocol.RunFailed, m.next("failed")))
		delete(m.runs, key)
	}
	for range n {
		out = append(out, runOf(key.SpaceID, key.SessionID, protocol.ID(m.next("run")), protocol.RunCompleted, ""))
	}
	return out
}

func (m *model) run(key protocol.SessionKey) {
	if id := m.runs[key]; id != "" {
		status := rapid.SampledFrom([]protocol.RunStatus{"running", "waiting", "completed"}).Draw(m.t, "status")
		if status.Terminal() {
			delete(m.runs, key)
		}
		m.publish(runOf(key.SpaceID, key.SessionID, id, status, m.next("run")))
		return
	}
	m.runs[key] = protocol.ID(m.next("run"))
	m.publish(runOf(key.SpaceID, key.SessionID, m.runs[key], protocol.RunAccepted, ""))
}

// tokens name what a change is, the same for the whole and the slim form, and a merged delta as its pieces.
func tokens(c protocol.Change) []string {
	switch c.Type {
	case protocol.ChangeDelta:
		var out []string
		for _, piece := range strings.SplitAfter(c.Text, ">") {
			if piece != "" {
				out = append(out, fmt.Sprint("delta ", c.MessageID, " ", c.Index, " ", piece))
			}
		}
		return out
	case protocol.ChangeMessage:
		return []string{"message " + c.Message.ID}
	case protocol.ChangeRun:
		return []string{"run " + string(c.Run.ID+" "+protocol.ID(c.Run.Status)) + c.Run.Text}
	case protocol.ChangeSession:
		return []string{"session " + c.Session.Title}
	case protocol.ChangeSpace:
		return []string{"space " + c.Space.Path}
	case protocol.ChangeNotice:
		return []string{"notice " + c.Notice.Message}
	case protocol.ChangeQueue:
		return []string{fmt.Sprint("queue ", c.Queue.Target)}
	case protocol.ChangeInteraction:
		if c.Interaction != nil {
			return []string{"question " + c.Interaction.Title}
		}
	}
	return []string{fmt.Sprint(c.Type, c.SpaceID, c.SessionID, c.CallID, c.Revision, c.Lifecycle, c.ConnectionID)}
}

// watcher is a reader with the place in the reference at which its newest snapshot was taken.
type watcher struct {
	*reader
	base int
}

func (m *model) fetch(w *watcher) bool {
	before := w.snapshots
	ok := w.reader.fetch(m.t)
	if w.snapshots > before {
		w.base = len(m.log)
	}
	return ok
}

// check brings a watcher up to date and compares it with the reference: its state, and each change since its snapshot exactly once
// and in order.
func (m *model) check(w *watcher) {
	for m.fetch(w) {
	}
	if diff := differ(w.scope, m.view(w.scope), w.state); diff != "" {
		m.t.Fatalf("%s sees another state than was published: %s", w.id, diff)
	}
	var got []string
	for _, c := range w.since {
		got = append(got, tokens(c)...)
	}
	for _, p := range m.log[w.base:] {
		if !protocol.Relevant(w.scope, p.change) {
			continue
		}
		for _, token := range tokens(p.change) {
			switch {
			case len(got) > 0 && got[0] == token:
				got = got[1:]
			case !p.lost:
				m.t.Fatalf("%s: %q is missing or in the wrong place; next is %q", w.id, token, got[:min(3, len(got))])
			}
		}
	}
	if len(got) > 0 {
		m.t.Fatalf("%s got too much: %q", w.id, got)
	}
}

func TestEveryReaderSeesEverythingOnce(t *testing.T) {
	scopes := []protocol.Scope{{}, {SpaceID: "p"}, {SpaceID: "q"}, {SpaceID: "p", SessionID: "s"}, {SpaceID: "p", SessionID: "t"}, {SpaceID: "q", SessionID: "s"}}
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		var watchers []*watcher
		for range rapid.IntRange(5, 80).Draw(t, "steps") {
			switch step := rapid.IntRange(0, 9).Draw(t, "step"); {
			case step < 6 || len(watchers) == 0 && step < 9:
				m.happen()
			case len(watchers) == 0 || step == 9 && len(watchers) < 8:
				scope := rapid.SampledFrom(scopes).Draw(t, "scope")
				watchers = append(watchers, &watcher{reader: subscribe(m.feed, protocol.ID(m.next("reader")), scope, nil)})
			default:
				w := rapid.SampledFrom(watchers).Draw(t, "watcher")
				switch {
				case step == 6:
					m.fetch(w) // one delivery: a slow reader
				case step == 7:
					m.check(w)
				default:
					w.resume()
					m.check(w)
				}
			}
		}
		for _, w := range watchers {
			m.check(w)
			if diff := differ(w.scope, m.feed.Snapshot(w.scope), w.state); diff != "" {
				t.Fatalf("the feed shows another state: %s", diff)
			}
		}
	})
}
