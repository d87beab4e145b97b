package feed_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/repa-app/repa/actors/feed"
	"github.com/repa-app/repa/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const serverID = "server-1"

// fatal is what *testing.T and *rapid.T share.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

func emptyView(space, session protocol.ID) protocol.SessionView {
	return protocol.SessionView{SpaceID: space, SessionID: session, Runtime: protocol.RuntimeReady, Messages: []protocol.Message{}, Runs: []protocol.Run{},
		Interactions: []protocol.Interaction{}, Notices: []protocol.Notice{}}
}

func openSpace(id protocol.ID) protocol.Change {
	return protocol.Change{Type: protocol.ChangeSpace, Space: &protocol.Space{ID: id, Path: "/" + string(id)}}
}

func newSession(space, session protocol.ID) protocol.Change {
	view := emptyView(space, session)
	return protocol.Change{Type: protocol.ChangeSession, Session: &view}
}

func message(space, session protocol.ID, id, text string) protocol.Change {
	return protocol.Change{Type: protocol.ChangeMessage, SpaceID: space, SessionID: session,
		Message: &protocol.Message{ID: id, Role: protocol.RoleAssistant, Content: []protocol.Block{protocol.TextBlock(text)}}}
}

func delta(space, session protocol.ID, id string, index int, text string) protocol.Change {
	return protocol.Change{Type: protocol.ChangeDelta, SpaceID: space, SessionID: session, MessageID: id, Index: protocol.Int(index), Kind: "text", Text: text}
}

func runOf(space, session, id protocol.ID, status protocol.RunStatus, text string) protocol.Change {
	return protocol.Change{Type: protocol.ChangeRun, Run: &protocol.Run{SpaceID: space, SessionID: session, ID: id, Text: text, Status: status, Phase: protocol.PhaseModel}}
}

// started is a feed with one space and one session, and their scope.
func started() (*feed.Feed, protocol.Scope) {
	f := feed.New(serverID, slog.New(slog.DiscardHandler))
	f.Publish(openSpace("p"), newSession("p", "s"))
	return f, protocol.Scope{SpaceID: "p", SessionID: "s"}
}

// reader is a front end: it fetches only when it was woken, checks what it gets and folds it as protocol/client does.
type reader struct {
	feed  *feed.Feed
	scope protocol.Scope
	id    protocol.ID
	sub   *feed.Subscription

	ready     bool // something may be there
	known     bool
	state     protocol.Snapshot
	cursor    string
	snapshots int
	updates   int
	since     []protocol.Change // since the newest snapshot
}

func subscribe(f *feed.Feed, id protocol.ID, scope protocol.Scope, cursor *string) *reader {
	r := &reader{feed: f, id: id, scope: scope}
	r.start(cursor)
	return r
}

func (r *reader) start(cursor *string) {
	r.ready = true
	r.sub = r.feed.Subscribe(r.id, r.scope, cursor, func(s *feed.Subscription) { r.ready = true })
}

// resume is a lost connection: what was not fetched is gone, the cursor is not.
func (r *reader) resume() {
	r.sub.Close()
	if r.known {
		cursor := r.cursor
		r.start(&cursor)
	} else {
		r.start(nil)
	}
}

// fetch takes one delivery; false when there is none.
func (r *reader) fetch(t fatal) bool {
	t.Helper()
	if !r.ready {
		return false
	}
	method, params, ok := r.sub.Next()
	if !ok {
		r.ready = false
		return false
	}
	raw, isRaw := params.(jsontext.Value)
	if method != protocol.UpdateNotification || !isRaw {
		t.Fatalf("%s with %T", method, params)
	}
	update, err := protocol.Decode[protocol.SubscriptionUpdate](raw)
	if err != nil {
		t.Fatalf("delivery %.500s: %v", raw, err)
	}
	r.fold(t, update)
	return true
}

func (r *reader) fold(t fatal, update protocol.SubscriptionUpdate) {
	t.Helper()
	d := update.Delivery
	if update.ID != r.id || !strings.HasPrefix(d.Cursor, serverID+":") {
		t.Fatalf("%s got a delivery of %s with cursor %s", r.id, update.ID, d.Cursor)
	}
	r.updates++
	if d.Type == "snapshot" {
		r.state, r.known, r.cursor, r.since = *d.Snapshot, true, d.Cursor, nil
		r.snapshots++
		return
	}
	if !r.known || d.PreviousCursor != r.cursor {
		t.Fatalf("%s: a delivery continues %q, known is %q", r.id, d.PreviousCursor, r.cursor)
	}
	for _, c := range d.Changes {
		if !protocol.Relevant(r.scope, c) {
			t.Fatalf("%s: a change of type %s reaches scope %+v", r.id, c.Type, r.scope)
		}
		if r.scope.SessionID != "" && c.SessionID != "" && c.SessionID != r.scope.SessionID {
			t.Fatalf("%s: something of session %s reaches %s", r.id, c.SessionID, r.scope.SessionID)
		}
		protocol.Apply(&r.state, c)
	}
	r.since, r.cursor = append(r.since, d.Changes...), d.Cursor
}

// drain takes everything that is there.
func (r *reader) drain(t fatal) {
	t.Helper()
	for r.fetch(t) {
	}
}

// text is the text that the reader knows of a message's block.
func (r *reader) text(id string, index int) string {
	for _, view := range r.state.Sessions {
		for _, m := range view.Messages {
			if m.ID == id && index < len(m.Content) {
				return m.Content[index].Text
			}
		}
	}
	return ""
}

// shown brings a state into the form in which states of a scope compare: front ends sort and cut for themselves, and outside of a
// session they forget runs that are over.
func shown(scope protocol.Scope, s protocol.Snapshot) protocol.Snapshot {
	s = s.Clone()
	for i := range s.Sessions {
		v := &s.Sessions[i]
		if scope.SessionID == "" {
			v.Messages = nil
			v.Runs = slices.DeleteFunc(v.Runs, func(r protocol.Run) bool { return r.Status.Terminal() })
		}
		v.Messages, v.Runs = v.Messages[max(0, len(v.Messages)-100):], v.Runs[max(0, len(v.Runs)-100):]
	}
	slices.SortFunc(s.Spaces, func(a, b protocol.Space) int { return strings.Compare(string(a.ID), string(b.ID)) })
	slices.SortFunc(s.Sessions, func(a, b protocol.SessionView) int {
		return strings.Compare(fmt.Sprint(a.SpaceID, a.SessionID), fmt.Sprint(b.SpaceID, b.SessionID))
	})
	return s
}

func differ(scope protocol.Scope, a, b protocol.Snapshot) string {
	return cmp.Diff(shown(scope, a), shown(scope, b), cmpopts.EquateEmpty())
}

// agree drains the reader and compares its state with the feed's.
func (r *reader) agree(t fatal) {
	t.Helper()
	r.drain(t)
	if diff := differ(r.scope, r.feed.Snapshot(r.scope), r.state); diff != "" {
		t.Fatalf("%s sees another state than the feed: %s", r.id, diff)
	}
}
