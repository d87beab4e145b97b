package feed_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/actors/feed"
	"github.com/repa-app/repa/protocol"
)

func TestFirstDelivery(t *testing.T) {
	f, scope := started()
	r := subscribe(f, "r", scope, nil)
	r.agree(t)
	if r.snapshots != 1 || r.updates != 1 || len(r.state.Sessions) != 1 {
		t.Errorf("%d snapshots, %d updates, %+v", r.snapshots, r.updates, r.state)
	}
	r.resume() // nothing happened: the answer says so
	r.agree(t)
	if r.snapshots != 1 || r.updates != 2 || len(r.since) != 0 {
		t.Errorf("%d snapshots, %d updates, %d changes", r.snapshots, r.updates, len(r.since))
	}
	f.Publish(message("p", "s", "m", "x"))
	r.resume()
	r.agree(t)
	if r.snapshots != 1 || len(r.since) != 1 {
		t.Errorf("%d snapshots, %d changes", r.snapshots, len(r.since))
	}
	unknown := subscribe(f, "u", protocol.Scope{SpaceID: "p", SessionID: "nobody"}, nil)
	if unknown.agree(t); len(unknown.state.Sessions) != 0 || len(unknown.state.Spaces) != 1 {
		t.Errorf("%+v", unknown.state)
	}
}

func TestForeignCursors(t *testing.T) {
	f, scope := started()
	r := subscribe(f, "r", scope, nil)
	r.agree(t)
	good := r.cursor
	for _, cursor := range []string{
		"", ":", serverID, serverID + ":", "server-2:1", "1", serverID + ":-1", serverID + ":+1", serverID + ":01", serverID + ":1.0", serverID + ": 1", serverID + ":1 ",
		serverID + ":x", serverID + ":3", serverID + ":9223372036854775807", serverID + ":99999999999999999999", strings.Repeat("x", 1<<16), "\xff",
	} {
		s := subscribe(f, "s", scope, &cursor)
		if s.agree(t); s.snapshots != 1 {
			t.Errorf("cursor %q counts as one of this backend", cursor)
		}
	}
	s := subscribe(f, "s", scope, &good)
	s.known, s.cursor, s.state = true, good, r.state
	if s.agree(t); s.snapshots != 0 {
		t.Errorf("cursor %q is not known", good)
	}
}

// A reader that never fetches gets a snapshot instead of what it missed, and goes on from there.
func TestOverflow(t *testing.T) {
	f, scope := started()
	slow, app := subscribe(f, "slow", scope, nil), subscribe(f, "app", protocol.Scope{}, nil)
	slow.agree(t)
	app.agree(t)
	big := strings.Repeat("x", 1<<20)
	for i := range 3 {
		f.Publish(message("p", "s", fmt.Sprint("m", i), big))
	}
	if slow.drain(t); slow.snapshots != 1 || len(slow.since) != 3 {
		t.Errorf("3 MiB: %d snapshots, %d changes", slow.snapshots, len(slow.since))
	}
	for i := range 5 {
		f.Publish(message("p", "s", fmt.Sprint("n", i), big))
	}
	f.Publish(message("p", "s", "last", ""))
	if slow.agree(t); slow.snapshots != 2 || len(slow.since) != 0 {
		t.Errorf("5 MiB: %d snapshots, %d changes", slow.snapshots, len(slow.since))
	}
	f.Publish(message("p", "s", "after", ""))
	if slow.agree(t); slow.snapshots != 2 || len(slow.since) != 1 {
		t.Errorf("afterwards: %d snapshots, %d changes", slow.snapshots, len(slow.since))
	}
	if app.agree(t); app.snapshots != 1 {
		t.Error("a reader that gets none of it has an overflow too")
	}
}

// What a reader took in pieces does not count against it.
func TestNoOverflowForAReaderThatKeepsUp(t *testing.T) {
	f, scope := started()
	r := subscribe(f, "r", scope, nil)
	r.agree(t)
	piece := strings.Repeat("y", 1<<10)
	live := ""
	for i := range 6 << 10 { // 12 MiB, never more than a few KiB waiting, and never nothing
		if i%64 == 0 {
			live = fmt.Sprint("m", i)
			f.Publish(message("p", "s", live, ""))
		}
		f.Publish(delta("p", "s", live, i%2, piece), delta("p", "s", live, i%2, piece))
		r.fetch(t)
		f.Publish(delta("p", "s", live, 2, "z"))
	}
	r.agree(t)
	if r.snapshots != 1 {
		t.Errorf("%d snapshots", r.snapshots)
	}
}

// A ring that has lost something leads to a snapshot, for those only whose scope it concerns.
func TestEviction(t *testing.T) {
	f, scope := started()
	f.Publish(newSession("p", "t"))
	mine, other := subscribe(f, "mine", scope, nil), subscribe(f, "other", protocol.Scope{SpaceID: "p", SessionID: "t"}, nil)
	app, space := subscribe(f, "app", protocol.Scope{}, nil), subscribe(f, "space", protocol.Scope{SpaceID: "p"}, nil)
	readers := []*reader{mine, other, app, space}
	for _, r := range readers {
		r.agree(t)
		r.sub.Close()
	}
	for i := range 5 {
		f.Publish(message("p", "s", fmt.Sprint("m", i), strings.Repeat("x", 300<<10)))
	}
	for _, r := range readers {
		r.resume()
		r.agree(t)
		if want := map[bool]int{true: 2, false: 1}[r == mine]; r.snapshots != want {
			t.Errorf("%s has had %d snapshots, want %d", r.id, r.snapshots, want)
		}
	}
	mine.sub.Close()
	f.Publish(message("p", "s", "huge", strings.Repeat("x", 2<<20))) // larger than a ring, and yet the newest is kept
	mine.resume()
	if mine.agree(t); mine.snapshots != 2 {
		t.Error("the newest change is not kept")
	}
}

// Everything that a reader has not fetched of one block is one change.
func TestMerging(t *testing.T) {
	f, scope := started()
	f.Publish(message("p", "s", "live", ""))
	r, slow := subscribe(f, "r", scope, nil), subscribe(f, "slow", scope, nil)
	r.agree(t)
	slow.agree(t)
	var want strings.Builder
	for i := range 10_000 {
		piece := fmt.Sprint(i, ">")
		want.WriteString(piece)
		f.Publish(delta("p", "s", "live", 0, piece))
		if i%10 == 0 {
			r.fetch(t)
		}
	}
	slow.agree(t)
	r.agree(t)
	if slow.snapshots != 1 || slow.updates != 2 || len(slow.since) != 1 || slow.since[0].Text != want.String() {
		t.Errorf("the slow reader: %d snapshots, %d updates, %d changes", slow.snapshots, slow.updates, len(slow.since))
	}
	if r.snapshots != 1 || len(r.since) > 1001 || r.text("live", 0) != want.String() {
		t.Errorf("the other: %d snapshots, %d changes", r.snapshots, len(r.since))
	}
	f.Publish(delta("p", "s", "live", 0, "a"), delta("p", "s", "live", 0, "b"), delta("p", "s", "live", 0, "c"))
	slow.agree(t)
	slow.resume() // its cursor is behind all that was merged
	if slow.agree(t); slow.snapshots != 1 || slow.text("live", 0) != want.String()+"abc" {
		t.Errorf("resumed with %d snapshots, the text has %d bytes of %d", slow.snapshots, len(slow.text("live", 0)), want.Len()+3)
	}
}

func TestMergingKeepsApart(t *testing.T) {
	f, scope := started()
	f.Publish(message("p", "s", "a", ""), message("p", "s", "b", ""))
	r := subscribe(f, "r", scope, nil)
	r.agree(t)
	thought := delta("p", "s", "a", 1, "thought")
	thought.Kind = "thinking"
	tool := protocol.Change{Type: protocol.ChangeTool, SpaceID: "p", SessionID: "s", RunID: "r", CallID: "c", Name: "n", Status: protocol.ToolRunning}
	f.Publish(delta("p", "s", "a", 0, "1"), delta("p", "s", "a", 0, "2"), thought, delta("p", "s", "a", 1, "3"), delta("p", "s", "b", 1, "4"), delta("p", "s", "b", 1, "5"),
		tool, delta("p", "s", "b", 1, "6"), message("p", "s", "b", "done"), delta("p", "s", "b", 0, "!"))
	r.agree(t)
	var got []string
	for _, c := range r.since {
		got = append(got, string(c.Type)+c.Text)
	}
	if diff := cmp.Diff([]string{"delta12", "deltathought", "delta3", "delta45", "tool", "delta6", "message", "delta!"}, got); diff != "" {
		t.Error(diff)
	}
}

// Deliveries stay small, so that an answer on the same connection comes between them.
func TestDeliverySize(t *testing.T) {
	f, scope := started()
	f.Publish(message("p", "s", "live", ""))
	r := subscribe(f, "r", scope, nil)
	r.agree(t)
	for i := range 3 << 8 {
		f.Publish(delta("p", "s", "live", i%9, strings.Repeat("d", 2<<10)), delta("p", "s", "live", i%9, strings.Repeat("d", 2<<10)))
	}
	const most = 512 << 10
	for before := 0; r.fetch(t); before = len(r.since) {
		size := 0
		for _, c := range r.since[before:] {
			size += len(c.Text)
		}
		if size > most {
			t.Errorf("a delivery carries %d bytes", size)
		}
	}
	r.agree(t)
	if r.snapshots != 1 || r.updates < 8 {
		t.Errorf("%d snapshots, %d updates", r.snapshots, r.updates)
	}
}

func TestTail(t *testing.T) {
	f, scope := started()
	key := protocol.SessionKey{SpaceID: "p", SessionID: "s"}
	count := func(when string, first string) {
		t.Helper()
		v, ok := f.Session(key)
		if !ok || len(v.Messages) != 100 || len(v.Runs) != 100 || v.Messages[0].ID != "m"+first || string(v.Runs[0].ID) != "r"+first {
			t.Errorf("%s: %d messages and %d runs, the first is %s", when, len(v.Messages), len(v.Runs), v.Messages[0].ID)
		}
	}
	for i := range 130 {
		f.Publish(message("p", "s", fmt.Sprint("m", i), ""), runOf("p", "s", protocol.ID(fmt.Sprint("r", i)), protocol.RunCompleted, ""))
	}
	count("published", "30")
	long := emptyView("p", "s")
	for i := range 250 {
		long.Messages = append(long.Messages, *message("p", "s", fmt.Sprint("m", i), "").Message)
		long.Runs = append(long.Runs, *runOf("p", "s", protocol.ID(fmt.Sprint("r", i)), protocol.RunCompleted, "").Run)
	}
	f.Show(long)
	if long.Messages[0].ID != "m0" {
		t.Error("the caller's view changes")
	}
	count("shown", "150")
	f.Publish(protocol.Change{Type: protocol.ChangeSession, Session: &long})
	count("changed", "150")
	if s := f.Snapshot(scope); len(s.Sessions) != 1 || len(s.Sessions[0].Messages) != 100 {
		t.Error("a snapshot shows more")
	}
	if s := f.Snapshot(protocol.Scope{}); len(s.Sessions) != 1 || len(s.Sessions[0].Messages)+len(s.Sessions[0].Runs) != 0 {
		t.Errorf("the application sees %+v", s.Sessions)
	}
}

func TestShow(t *testing.T) {
	f, scope := started()
	r, app := subscribe(f, "r", scope, nil), subscribe(f, "app", protocol.Scope{}, nil)
	r.agree(t)
	app.agree(t)
	view := emptyView("p", "s")
	view.Messages = append(view.Messages, *message("p", "s", "m", "x").Message)
	f.Show(view)
	other := emptyView("p", "t")
	other.Title = "found"
	f.Show(other)
	f.Show(emptyView("nowhere", "s"))
	r.drain(t)
	app.drain(t)
	if r.updates != 1 || app.updates != 1 {
		t.Errorf("showing is no change, but %d and %d updates came", r.updates, app.updates)
	}
	late := subscribe(f, "late", scope, nil)
	if late.agree(t); len(late.state.Sessions[0].Messages) != 1 {
		t.Error("a later reader does not see what was shown")
	}
	f.Publish(delta("p", "s", "m", 0, "y"))
	if late.agree(t); late.text("m", 0) != "xy" {
		t.Errorf("text %q", late.text("m", 0))
	}
	if view.Messages[0].Content[0].Text != "x" {
		t.Error("the caller's view changes")
	}
	if v, ok := f.Session(protocol.SessionKey{SpaceID: "p", SessionID: "t"}); !ok || v.Title != "found" {
		t.Errorf("%+v, %v", v, ok)
	}
	if _, ok := f.Session(protocol.SessionKey{SpaceID: "nowhere", SessionID: "s"}); ok {
		t.Error("a session of an unknown space is shown")
	}
}

func TestUnload(t *testing.T) {
	f, scope := started()
	key := protocol.SessionKey{SpaceID: "p", SessionID: "s"}
	full := emptyView("p", "s")
	full.Messages = append(full.Messages, *message("p", "s", "m", "x").Message)
	f.ShowSummary(full)
	if f.Complete(key) {
		t.Error("a new session counts as complete")
	}
	f.Show(full)
	r, app := subscribe(f, "r", scope, nil), subscribe(f, "app", protocol.Scope{}, nil)
	r.agree(t)
	app.agree(t)
	if !f.Complete(key) || f.Unload(key) {
		t.Error("a session that is watched is unloaded")
	}
	r.sub.Close()
	if !f.Unload(key) || f.Complete(key) {
		t.Error("a session that nobody watches stays")
	}
	if v, _ := f.Session(key); len(v.Messages) != 0 || v.Runtime != protocol.RuntimeUnloaded {
		t.Errorf("%+v", v)
	}
	if app.agree(t); app.snapshots != 1 || app.state.Sessions[0].Runtime != protocol.RuntimeUnloaded {
		t.Errorf("the application is not told: %+v", app.state.Sessions)
	}
	f.ShowSummary(full)
	if f.Complete(key) {
		t.Error("a summary replaces what is there")
	}
	f.Show(full)
	r.resume()
	if r.agree(t); r.snapshots != 2 || r.text("m", 0) != "x" {
		t.Errorf("%d snapshots, text %q", r.snapshots, r.text("m", 0))
	}
	r.resume()
	if r.agree(t); r.snapshots != 2 {
		t.Error("a second resume brings a snapshot too")
	}
	nobody := protocol.SessionKey{SpaceID: "p", SessionID: "nobody"}
	if !f.Unload(nobody) || !f.Complete(nobody) {
		t.Error("something is missing of a session that is not shown")
	}
}

func TestChangeSession(t *testing.T) {
	f, scope := started()
	key := protocol.SessionKey{SpaceID: "p", SessionID: "s"}
	if f.ChangeSession(protocol.SessionKey{SpaceID: "p", SessionID: "t"}, func(*protocol.SessionView) { t.Error("a session that is not there changes") }) {
		t.Error("it says that it did")
	}
	f.Publish(message("p", "s", "live", ""))
	r, app := subscribe(f, "r", scope, nil), subscribe(f, "app", protocol.Scope{}, nil)
	r.agree(t)
	app.agree(t)
	const each = 100
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range each {
				f.ChangeSession(key, func(v *protocol.SessionView) { v.UpdatedAt++ })
				f.Publish(delta("p", "s", "live", 0, "x"))
			}
		})
	}
	group.Wait()
	r.ready, app.ready = true, true // the wakes came from other goroutines, which are over
	r.agree(t)
	app.agree(t)
	if v, ok := f.Session(key); !ok || v.UpdatedAt != 4*each || v.Messages[0].Content[0].Text != strings.Repeat("x", 4*each) {
		t.Errorf("a change was lost: %v, %d", v.UpdatedAt, len(v.Messages[0].Content[0].Text))
	}
	for _, c := range app.since {
		if len(c.Session.Messages) != 0 {
			t.Fatal("messages reach the application's scope")
		}
	}
}

// What is handed out does not change afterwards.
func TestViewsAreIndependent(t *testing.T) {
	f, scope := started()
	key := protocol.SessionKey{SpaceID: "p", SessionID: "s"}
	f.Publish(message("p", "s", "m", "x"))
	view, _ := f.Session(key)
	snapshot := f.Snapshot(scope)
	f.Publish(delta("p", "s", "m", 0, "y"), runOf("p", "s", "r", protocol.RunRunning, ""))
	if view.Messages[0].Content[0].Text != "x" || snapshot.Sessions[0].Messages[0].Content[0].Text != "x" || len(view.Runs)+len(snapshot.Sessions[0].Runs) != 0 {
		t.Errorf("%+v, %+v", view, snapshot)
	}
	view.Messages[0].Content[0].Text = "mine"
	if v, _ := f.Session(key); v.Messages[0].Content[0].Text != "xy" {
		t.Errorf("text %q", v.Messages[0].Content[0].Text)
	}
}

func TestWatched(t *testing.T) {
	f, scope := started()
	key := protocol.SessionKey{SpaceID: "p", SessionID: "s"}
	space, other := subscribe(f, "space", protocol.Scope{SpaceID: "p"}, nil), subscribe(f, "other", protocol.Scope{SpaceID: "p", SessionID: "t"}, nil)
	if f.Watched(key) {
		t.Error("others count")
	}
	a, b := subscribe(f, "a", scope, nil), subscribe(f, "b", scope, nil)
	a.sub.Close()
	a.sub.Close()
	if !f.Watched(key) {
		t.Error("the second reader does not count")
	}
	b.sub.Close()
	if f.Watched(key) || !f.Watched(protocol.SessionKey{SpaceID: "p", SessionID: "t"}) {
		t.Error("a closed reader counts, or closes another")
	}
	space.sub.Close()
	other.sub.Close()
}

func TestClosed(t *testing.T) {
	f, scope := started()
	r := subscribe(f, "r", scope, nil)
	r.agree(t)
	f.Publish(message("p", "s", "m", "x"))
	r.sub.Close()
	r.ready = false
	f.Publish(message("p", "s", "n", "x"))
	if r.ready {
		t.Error("a closed reader is woken")
	}
	if _, params, ok := r.sub.Next(); ok || params != nil {
		t.Errorf("a closed reader gets %v", params)
	}
}

// A space that is gone is gone for everybody, also for those who come back later and when it was opened again meanwhile.
func TestRemoveSpace(t *testing.T) {
	for _, again := range []bool{false, true} {
		f, scope := started()
		f.Publish(openSpace("q"), newSession("q", "s"), message("p", "s", "m", "x"))
		elsewhere := subscribe(f, "elsewhere", protocol.Scope{SpaceID: "q"}, nil)
		readers := []*reader{
			subscribe(f, "app", protocol.Scope{}, nil), subscribe(f, "space", protocol.Scope{SpaceID: "p"}, nil), subscribe(f, "session", scope, nil), elsewhere,
			subscribe(f, "app, away", protocol.Scope{}, nil), subscribe(f, "space, away", protocol.Scope{SpaceID: "p"}, nil), subscribe(f, "session, away", scope, nil),
		}
		away := readers[4:]
		for i, r := range readers {
			r.id = protocol.ID(fmt.Sprint("reader-", i))
			r.sub.Close()
			r.start(nil)
			r.agree(t)
		}
		for _, r := range away {
			r.sub.Close()
		}
		f.Publish(message("p", "s", "n", "lost"), runOf("p", "s", "r", protocol.RunRunning, ""))
		f.RemoveSpace("p")
		f.RemoveSpace("nobody knows it")
		if again {
			f.Publish(openSpace("p"), newSession("p", "s"))
		}
		for _, r := range away {
			r.resume()
		}
		for _, r := range readers {
			r.agree(t)
		}
		if s := f.Snapshot(protocol.Scope{}); len(s.Spaces) != map[bool]int{false: 1, true: 2}[again] {
			t.Errorf("spaces %+v", s.Spaces)
		}
		if elsewhere.snapshots != 1 {
			t.Error("a reader of another space is bothered")
		}
	}
}

// Publishing and reading at once: every reader sees every message whole, in the order of its writer.
func TestConcurrent(t *testing.T) {
	const writers, readers, pieces = 4, 12, 300
	f := feed.New(serverID, slog.New(slog.DiscardHandler))
	f.Publish(openSpace("p"))
	for w := range writers {
		id := protocol.ID(fmt.Sprint("s", w))
		f.Publish(newSession("p", id), message("p", id, "live", ""))
	}
	var writing, reading sync.WaitGroup
	ended := make(chan struct{})
	for i := range readers {
		scope := protocol.Scope{SpaceID: "p", SessionID: protocol.ID(fmt.Sprint("s", i%writers))}
		if i%3 == 2 {
			scope.SessionID = ""
		}
		reading.Go(func() { follow(t, f, protocol.ID(fmt.Sprint("r", i)), scope, i%2 == 0, ended) })
	}
	for w := range writers {
		writing.Go(func() {
			id := protocol.ID(fmt.Sprint("s", w))
			for i := range pieces {
				f.Publish(delta("p", id, "live", 0, fmt.Sprint(i, ">")), runOf("p", id, "r", protocol.RunRunning, fmt.Sprint(i)))
				if i%50 == 0 {
					f.ChangeSession(protocol.SessionKey{SpaceID: "p", SessionID: id}, func(v *protocol.SessionView) { v.Title = fmt.Sprint(i) })
				}
			}
		})
	}
	writing.Wait()
	close(ended)
	reading.Wait()
	if f.Watched(protocol.SessionKey{SpaceID: "p", SessionID: "s0"}) {
		t.Error("a reader was left behind")
	}
}

// follow reads until ended, as a connection does: woken by the feed, sometimes lost and come back.
func follow(t *testing.T, f *feed.Feed, id protocol.ID, scope protocol.Scope, unsteady bool, ended <-chan struct{}) {
	news := make(chan struct{}, 1)
	wake := func(*feed.Subscription) {
		select {
		case news <- struct{}{}:
		default:
		}
	}
	r := &reader{feed: f, scope: scope, id: id}
	connect := func() {
		var cursor *string
		if r.known {
			last := r.cursor
			cursor = &last
		}
		r.sub = f.Subscribe(id, scope, cursor, wake)
	}
	connect()
	defer func() { r.sub.Close() }()
	for {
		last := false
		select {
		case <-news:
		case <-ended:
			last = true
		}
		for r.ready = true; r.fetch(patient{t}); {
			if unsteady && r.updates%7 == 0 {
				r.sub.Close()
				connect()
			}
		}
		if last {
			break
		}
	}
	if diff := differ(scope, f.Snapshot(scope), r.state); diff != "" {
		t.Errorf("%s sees another state: %s", id, diff)
	}
}

// patient reports from goroutines, which must not call Fatalf.
type patient struct{ *testing.T }

func (p patient) Fatalf(format string, args ...any) { p.Errorf(format, args...) }

func TestSnapshotOrder(t *testing.T) {
	f := feed.New(serverID, slog.New(slog.DiscardHandler))
	f.Publish(openSpace("q"), openSpace("p"))
	for i, id := range []protocol.ID{"c", "a", "b", "d"} {
		c := newSession("p", id)
		c.Session.UpdatedAt, c.Session.CreatedAt = protocol.Millis(max(1, i)), protocol.Millis(i/3)
		f.Publish(c)
	}
	s := f.Snapshot(protocol.Scope{})
	var got []string
	for _, v := range s.Sessions {
		got = append(got, string(v.SessionID))
	}
	if s.Spaces[0].ID != "p" || !slices.Equal(got, []string{"d", "b", "a", "c"}) {
		t.Errorf("spaces %+v, sessions %v; the newest come first", s.Spaces, got)
	}
}

// A change that has no wire form is a fault of its publisher: it is logged and left out, and costs nobody the others.
func TestAChangeWithoutAWireFormIsLeftOut(t *testing.T) {
	var log bytes.Buffer
	f := feed.New(serverID, slog.New(slog.NewTextHandler(&log, nil)))
	path := "/home/ada/bad \xff name"
	f.Publish(protocol.Change{Type: protocol.ChangeSpace, Space: &protocol.Space{ID: "p", Path: path}}, newSession("p", "s"))
	sub := f.Subscribe("w", protocol.Scope{SpaceID: "p", SessionID: "s"}, nil, func(*feed.Subscription) {})
	next := func() protocol.Delivery {
		t.Helper()
		_, params, ok := sub.Next()
		if !ok {
			t.Fatal("nothing was delivered")
		}
		u, err := protocol.Decode[protocol.SubscriptionUpdate](params.(jsontext.Value))
		if err != nil {
			t.Fatal(err)
		}
		return u.Delivery
	}
	first := next()
	if got := first.Snapshot.Spaces[0].Path; got != "/home/ada/bad \ufffd name" {
		t.Errorf("a path that is no UTF-8 is shown as %q", got)
	}
	bad := message("p", "s", "bad", "x")
	bad.Message.Details = jsontext.Value("{")
	f.Publish(message("p", "s", "one", "1"), bad, message("p", "s", "two", "2"))
	second := next()
	if len(second.Changes) != 2 || second.Changes[1].Message.ID != "two" || second.PreviousCursor != first.Cursor {
		t.Errorf("%+v", second)
	}
	if !strings.Contains(log.String(), "left out") {
		t.Errorf("the log says %q", log.String())
	}
}
