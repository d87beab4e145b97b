package actors_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/repa-app/repa/actors"
	"github.com/repa-app/repa/agent/connection"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/client"
	"github.com/repa-app/repa/testkit/clock"
	"github.com/repa-app/repa/testkit/modelserver"
)

func TestASecondSubmissionOfAnIDIsTheFirst(t *testing.T) {
	w := start(t, nil)
	c := w.dial()
	_, key := w.session(c)
	var group sync.WaitGroup
	runs := make([]protocol.ID, 8)
	for i := range runs {
		group.Go(func() { runs[i] = call(w, c, protocol.SessionSubmit, submission(key, "r1", "hello")).RunID })
	}
	group.Wait()
	if slices.ContainsFunc(runs, func(id protocol.ID) bool { return id == "" || id != runs[0] }) {
		t.Fatalf("one request id started %v", runs)
	}
	w.ended(c, key, runs[0])
	if r := call(w, c, protocol.SessionSubmit, submission(key, "r1", "hello")); r.Status != protocol.RequestCompleted || r.RunID != runs[0] {
		t.Errorf("%+v", r)
	}
	if n := len(w.model.Requests()); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
	for name, p := range map[string]protocol.Submit{
		"text": submission(key, "r1", "other"),
		"dispatch": func() protocol.Submit {
			p := submission(key, "r1", "hello")
			p.Dispatch = protocol.Dispatch{Kind: "queue"}
			return p
		}(),
	} {
		if _, err := client.Call(ctx, c, protocol.SessionSubmit, p); code(err) != protocol.CodeRequestIdConflict {
			t.Errorf("another %s: %v", name, err)
		}
	}
}

func TestOneRunPerSession(t *testing.T) {
	w := start(t, nil)
	c := w.dial()
	_, key := w.session(c)
	w.script(modelserver.Turn{Chunks: []string{"x"}, Hold: "h"})
	r := call(w, c, protocol.SessionSubmit, submission(key, "r1", "hello"))
	if _, err := client.Call(ctx, c, protocol.SessionSubmit, submission(key, "r2", "hello")); code(err) != protocol.CodeSessionBusy {
		t.Error(err)
	}
	// A refused id is free again.
	<-w.model.Started("h")
	w.model.Release("h")
	w.ended(c, key, r.RunID)
	if r := call(w, c, protocol.SessionSubmit, submission(key, "r2", "hello again")); r.Status != protocol.RequestRunning {
		t.Errorf("%+v", r)
	}
}

func TestRefusals(t *testing.T) {
	w := start(t, nil)
	c := w.dial()
	_, key := w.session(c)
	with := func(change func(*protocol.Submit)) protocol.Submit {
		p := submission(key, "r", "hello")
		change(&p)
		return p
	}
	model := func(connection, id string) func(*protocol.Submit) {
		return func(p *protocol.Submit) {
			p.Selection = &protocol.RunSelection{Model: &protocol.ModelSelection{ConnectionID: protocol.ID(connection), ID: id}}
		}
	}
	for name, tc := range map[string]struct {
		p    protocol.Submit
		code protocol.Code
	}{
		"blank":              {with(func(p *protocol.Submit) { p.Input.Parts[0].Text = " \n" }), protocol.CodeInvalidInput},
		"unknown space":      {with(func(p *protocol.Submit) { p.Target.SpaceID = "none" }), protocol.CodeNotFound},
		"unknown session":    {with(func(p *protocol.Submit) { p.Target.SessionID = "none" }), protocol.CodeNotFound},
		"unknown connection": {with(model("none", "m")), protocol.CodeConnectionNotFound},
		"lost connection":    {with(model(connection.LentPrefix+"openai-x", "m")), protocol.CodeAuthRequired},
		"unknown model":      {with(model("builtin", "gpt")), protocol.CodeModelNotFound},
		"queue":              {with(func(p *protocol.Submit) { p.Dispatch = protocol.Dispatch{Kind: "queue"} }), protocol.CodeInvalidInput},
	} {
		if _, err := client.Call(ctx, c, protocol.SessionSubmit, tc.p); code(err) != tc.code {
			t.Errorf("%s: %v, want %s", name, err, tc.code)
		}
	}
	if r := call(w, c, protocol.RequestGet, protocol.RequestGetParams{SpaceID: key.SpaceID, RequestID: "r"}); r.Unknown == nil {
		t.Errorf("a refused request left a record: %+v", r)
	}
}

// What was acknowledged is found by the next backend; what ran is interrupted; nothing runs twice.
func TestTheNextBackendFindsEverything(t *testing.T) {
	first := start(t, nil)
	c := first.dial()
	s, key := first.session(c)
	done := call(first, c, protocol.SessionSubmit, submission(key, "done", "hello"))
	first.ended(c, key, done.RunID)
	c.Drop()
	first.stop()

	// A crash leaves the folder as it is; a copy of it in mid-run stands for one.
	second := start(t, nil)
	c = second.dial()
	call(second, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: s.Path})
	second.script(modelserver.Turn{Chunks: []string{"x"}, Hold: "h"})
	run := call(second, c, protocol.SessionSubmit, submission(key, "active", "still running")).RunID
	<-second.model.Started("h")
	crashed := filepath.Join(t.TempDir(), "crashed")
	if err := os.CopyFS(crashed, os.DirFS(s.Path)); err != nil {
		t.Fatal(err)
	}

	third := start(t, nil)
	c3 := third.dial()
	again := call(third, c3, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: crashed})
	if again.ID != s.ID {
		t.Errorf("the space changed its id from %s to %s", s.ID, again.ID)
	}
	if r := call(third, c3, protocol.SessionSubmit, submission(key, "done", "hello")); r.Status != protocol.RequestCompleted || r.RunID != done.RunID {
		t.Errorf("%+v", r)
	}
	r := call(third, c3, protocol.SessionSubmit, submission(key, "active", "still running"))
	if r.Status != protocol.RequestInterrupted || r.RunID != run || r.Delivery.Status != protocol.DeliveryEntered {
		t.Errorf("%s of run %s, %+v", r.Status, r.RunID, r.Delivery)
	}
	if got := call(third, c3, protocol.RunGet, protocol.RunParams{SpaceID: s.ID, RunID: run}).Run; got.Status != protocol.RunInterrupted || got.Error.Code != "interrupted" {
		t.Errorf("%+v", got)
	}
	if n := len(third.model.Requests()); n != 0 {
		t.Errorf("the next backend asked the model %d times by itself", n)
	}
	v := call(third, c3, protocol.SessionGet, key)
	if len(v.Messages) != 3 || v.Title != "hello" || len(v.Runs) != 2 {
		t.Errorf("%d messages, %d runs, title %q", len(v.Messages), len(v.Runs), v.Title)
	}
	second.model.Release("h")
	second.ended(c, key, run)
}

func TestSessionsUnloadAndComeBack(t *testing.T) {
	w := start(t, func(o *actors.Options) { o.SessionIdle = time.Millisecond })
	c := w.dial()
	s, key := w.session(c)
	for i := range 5 {
		r := call(w, c, protocol.SessionSubmit, submission(key, fmt.Sprintf("r%d", i), fmt.Sprintf("question %d", i)))
		w.ended(c, key, r.RunID)
		// The listing comes from what is published, so it does not load the session again.
		for {
			list := call(w, c, protocol.SessionList, protocol.SpaceParams{SpaceID: s.ID})
			if list[0].Runtime == protocol.RuntimeUnloaded {
				break
			}
		}
		if got := len(messages(w, c, key)); got != 2*(i+1) {
			t.Fatalf("%d messages after %d runs", got, i+1)
		}
	}
}

func TestHistoryPages(t *testing.T) {
	w := start(t, nil)
	c := w.dial()
	_, key := w.session(c)
	for i := range 4 {
		r := call(w, c, protocol.SessionSubmit, submission(key, fmt.Sprintf("r%d", i), fmt.Sprintf("question %d", i)))
		w.ended(c, key, r.RunID)
	}
	all := messages(w, c, key)
	p := protocol.HistoryParams{SpaceID: key.SpaceID, SessionID: key.SessionID, Limit: 3}
	var got []protocol.Message
	var revision protocol.Revision
	for {
		page := call(w, c, protocol.SessionHistory, p)
		if revision == "" {
			revision = page.Revision
			// What comes later does not move the pages of this revision.
			r := call(w, c, protocol.SessionSubmit, submission(key, "late", "late question"))
			w.ended(c, key, r.RunID)
		}
		got = append(slices.Clone(page.Messages), got...)
		if page.Before == "" {
			break
		}
		p.Before, p.Revision = page.Before, revision
	}
	if len(got) != len(all) {
		t.Fatalf("%d messages in pages, %d in all", len(got), len(all))
	}
	for i := range all {
		if got[i].ID != all[i].ID {
			t.Errorf("message %d is %s, want %s", i, got[i].ID, all[i].ID)
		}
	}
	around := call(w, c, protocol.SessionHistory, protocol.HistoryParams{SpaceID: key.SpaceID, SessionID: key.SessionID, Around: protocol.ID(all[4].ID), Limit: 3})
	if len(around.Messages) != 3 || around.Messages[1].ID != all[4].ID {
		t.Errorf("around: %d messages", len(around.Messages))
	}
	for name, p := range map[string]protocol.HistoryParams{
		"cursor":   {Before: "none"},
		"revision": {Revision: "history-v1:other:none"},
	} {
		p.SpaceID, p.SessionID = key.SpaceID, key.SessionID
		_, err := client.Call(ctx, c, protocol.SessionHistory, p)
		if want := map[string]protocol.Code{"cursor": protocol.CodeInvalidCursor, "revision": protocol.CodeRevisionUnavailable}[name]; code(err) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestADamagedSessionHarmsNoOther(t *testing.T) {
	w := start(t, nil)
	dir := w.directory()
	folder := filepath.Join(dir, ".repa", "sessions")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(folder, "2026-01-01T00-00-00-000Z_bad.jsonl")
	if err := os.WriteFile(bad, []byte("no session\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := w.dial()
	s := call(w, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: dir})
	key := call(w, c, protocol.SessionCreate, protocol.SpaceParams{SpaceID: s.ID}).Key()
	if list := call(w, c, protocol.SessionList, protocol.SpaceParams{SpaceID: s.ID}); len(list) != 1 {
		t.Errorf("%d sessions are listed", len(list))
	}
	r := call(w, c, protocol.SessionSubmit, submission(key, "r1", "hello"))
	w.ended(c, key, r.RunID)
	_, err := client.Call(ctx, c, protocol.SessionGet, protocol.SessionKey{SpaceID: s.ID, SessionID: "bad"})
	if code(err) != protocol.CodeInvalidStorage || !strings.Contains(err.Error(), filepath.Base(bad)) {
		t.Error(err)
	}
	if data, err := os.ReadFile(bad); err != nil || string(data) != "no session\n" {
		t.Errorf("a damaged file was changed: %q, %v", data, err)
	}
}

func TestSpaces(t *testing.T) {
	w := start(t, nil)
	c := w.dial()
	dir := w.directory()
	var group sync.WaitGroup
	ids := make([]protocol.ID, 6)
	for i := range ids {
		group.Go(func() { ids[i] = call(w, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: dir}).ID })
	}
	group.Wait()
	if slices.ContainsFunc(ids, func(id protocol.ID) bool { return id != ids[0] }) {
		t.Errorf("one folder was opened as %v", ids)
	}
	copied := w.directory() + "-copy"
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other := start(t, nil)
	for name, tc := range map[string]struct {
		w    *world
		path string
		code protocol.Code
	}{
		"copy":        {w, copied, protocol.CodeSpaceIdentityConflict},
		"file":        {w, file, "not_directory"},
		"root":        {w, "/", "invalid_path"},
		"relative":    {w, "notes", "invalid_path"},
		"second user": {other, dir, protocol.CodeSpaceInUse},
	} {
		_, err := client.Call(ctx, tc.w.dial(), protocol.SpaceOpen, protocol.SpaceOpenParams{Path: tc.path})
		if code(err) != tc.code {
			t.Errorf("%s: %v, want %s", name, err, tc.code)
		}
	}
	if list := call(w, c, protocol.SpaceList, protocol.Empty{}); len(list) != 1 {
		t.Errorf("%v", list)
	}
}

func TestLentConnectionsBelongToTheirHost(t *testing.T) {
	w := start(t, nil)
	a, b := w.dial(), w.dial()
	_, key := w.session(a)
	lend := protocol.LendParams{Provider: "openai", BaseURL: w.model.OpenAIURL(), Secret: "canary-secret"}
	id := call(w, a, protocol.ConnectionLend, lend).ConnectionID
	if again := call(w, a, protocol.ConnectionLend, lend).ConnectionID; again != id {
		t.Errorf("lending the same again gave %s, then %s", id, again)
	}
	if n := len(call(w, a, protocol.ConnectionList, protocol.Empty{})); n != 2 {
		t.Errorf("%d connections", n)
	}
	if n := len(call(w, b, protocol.ConnectionList, protocol.Empty{})); n != 1 {
		t.Errorf("another host sees %d connections", n)
	}
	p := submission(key, "r1", "hello")
	p.Selection = &protocol.RunSelection{Model: &protocol.ModelSelection{ConnectionID: id, ID: "m"}}
	if _, err := client.Call(ctx, b, protocol.SessionSubmit, p); code(err) != protocol.CodeAuthRequired {
		t.Errorf("another host: %v", err)
	}
	r := call(w, a, protocol.SessionSubmit, p)
	w.ended(a, key, r.RunID)
	if strings.Contains(w.log.String(), "canary-secret") {
		t.Error("the secret is in the log")
	}
	host := a.Server().HostKey
	if err := a.Close(ctx); err != nil {
		t.Error(err)
	}
	back, err := client.Dial(ctx, client.Options{URL: w.server.URL(), Token: testToken, HostKey: protocol.HostKey(host)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(back.Drop)
	p.RequestID = "r2"
	if _, err := client.Call(ctx, back, protocol.SessionSubmit, p); code(err) != protocol.CodeAuthRequired {
		t.Errorf("after the host left: %v", err)
	}
}

func TestDrainWaitsAndCancelDoesNot(t *testing.T) {
	for _, mode := range []protocol.ShutdownMode{protocol.ShutdownDrain, protocol.ShutdownCancel} {
		t.Run(string(mode), func(t *testing.T) {
			w := start(t, nil)
			c := w.dial()
			s, key := w.session(c)
			w.script(modelserver.Turn{Chunks: []string{"x"}, Hold: "h"})
			r := call(w, c, protocol.SessionSubmit, submission(key, "r1", "hello"))
			<-w.model.Started("h")
			call(w, c, protocol.Shutdown, protocol.ShutdownParams{Mode: mode})
			want := protocol.RunCancelled
			if mode == protocol.ShutdownDrain {
				if _, err := client.Call(ctx, c, protocol.SessionSubmit, submission(key, "r2", "more")); code(err) != protocol.CodeShuttingDown {
					t.Errorf("new work while draining: %v", err)
				}
				if again := call(w, c, protocol.SessionSubmit, submission(key, "r1", "hello")); again.RunID != r.RunID {
					t.Errorf("a known request while draining: %+v", again)
				}
				w.model.Release("h")
				want = protocol.RunCompleted
			}
			<-w.done
			w.stop()
			next := start(t, nil)
			c = next.dial()
			call(next, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: s.Path})
			if run := call(next, c, protocol.RunGet, protocol.RunParams{SpaceID: s.ID, RunID: r.RunID}).Run; run.Status != want {
				t.Errorf("the run ended as %s, want %s", run.Status, want)
			}
		})
	}
}

// With a model that never answers, every actor still answers.
func TestNothingBlocksBehindAModel(t *testing.T) {
	w := start(t, nil)
	c := w.dial()
	s, key := w.session(c)
	w.script(modelserver.Turn{Hold: "never"})
	r := call(w, c, protocol.SessionSubmit, submission(key, "r1", "hello"))
	<-w.model.Started("never")
	short, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	other := call(w, c, protocol.SessionCreate, protocol.SpaceParams{SpaceID: s.ID}).Key()
	r2 := call(w, c, protocol.SessionSubmit, submission(other, "r2", "hello"))
	w.ended(c, other, r2.RunID)
	for name, ask := range map[string]func() error{
		"session": func() error { _, err := client.Call(short, c, protocol.SessionGet, key); return err },
		"history": func() error {
			_, err := client.Call(short, c, protocol.SessionHistory, protocol.HistoryParams{SpaceID: s.ID, SessionID: key.SessionID})
			return err
		},
		"space": func() error {
			_, err := client.Call(short, c, protocol.SessionList, protocol.SpaceParams{SpaceID: s.ID})
			return err
		},
		"coordinator": func() error { _, err := client.Call(short, c, protocol.SpaceList, protocol.Empty{}); return err },
		"host":        func() error { _, err := client.Call(short, c, protocol.ConnectionList, protocol.Empty{}); return err },
		"run": func() error {
			_, err := client.Call(short, c, protocol.RunCancel, protocol.RunParams{SpaceID: s.ID, RunID: r.RunID})
			return err
		},
	} {
		if err := ask(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.ended(c, key, r.RunID)
}

func TestLeavesWhenNobodyIsThere(t *testing.T) {
	w := start(t, func(o *actors.Options) { o.ExitWhenDetached, o.IdleExit = true, time.Millisecond })
	<-w.done // nobody came at all
	if _, err := client.Dial(ctx, client.Options{URL: w.server.URL(), Token: testToken}); err == nil {
		t.Error("a backend that has ended still answers")
	}
}

// A run keeps the backend alive after its front end has left.
func TestARunOutlivesItsFrontEnd(t *testing.T) {
	w := start(t, func(o *actors.Options) { o.ExitWhenDetached, o.IdleExit = true, 300*time.Millisecond })
	c := w.dial()
	s, key := w.session(c)
	w.script(modelserver.Turn{Chunks: []string{"x"}, Hold: "h"})
	r := call(w, c, protocol.SessionSubmit, submission(key, "r1", "hello"))
	<-w.model.Started("h")
	if err := c.Close(ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.done:
		t.Fatal("the backend left while a run was active")
	case <-time.After(600 * time.Millisecond): // twice the time after which it leaves when nothing runs
	}
	w.model.Release("h")
	<-w.done
	w.stop()
	next := start(t, nil)
	c = next.dial()
	call(next, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: s.Path})
	if run := call(next, c, protocol.RunGet, protocol.RunParams{SpaceID: s.ID, RunID: r.RunID}).Run; run.Status != protocol.RunCompleted {
		t.Errorf("the run ended as %s", run.Status)
	}
}

// Records carry the clock's time, and nothing depends on its direction: it jumps back a day between two runs.
func TestAClockThatJumpsBack(t *testing.T) {
	var wall clock.Clock
	w := start(t, func(o *actors.Options) { o.Clock = &wall })
	c := w.dial()
	_, key := w.session(c)
	for i, jump := range []time.Duration{0, -24 * time.Hour, 48 * time.Hour} {
		wall.Advance(jump)
		r := call(w, c, protocol.SessionSubmit, submission(key, fmt.Sprintf("r%d", i), "hello"))
		if run := w.ended(c, key, r.RunID); run.Status != protocol.RunCompleted || run.CreatedAt != protocol.MillisOf(wall.Now()) {
			t.Errorf("%+v", run)
		}
	}
	var order []string
	for _, m := range messages(w, c, key) {
		if m.Role == protocol.RoleUser {
			order = append(order, string(m.RequestID))
		}
	}
	if got := strings.Join(order, " "); got != "r0 r1 r2" {
		t.Errorf("history is in the order %s", got)
	}
}
