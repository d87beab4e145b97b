package ledger_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/repa-app/repa/actors/ledger"
	"github.com/repa-app/repa/cas/recordlog"
	"github.com/repa-app/repa/protocol"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestReplayEqualsApply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts := history(t)
		applied := apply(facts...)
		if diff := same(applied, replayed(t, facts...)); diff != "" {
			t.Fatalf("the records say something else: %s", diff)
		}
		if applied.Newer {
			t.Fatal("own records count as newer")
		}
	})
}

// TestApplyReplacesRecords: a record once handed out never changes.
func TestApplyReplacesRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := ledger.NewState()
		kept := map[protocol.ID]*protocol.Run{}
		copies := map[protocol.ID]protocol.Run{}
		for _, f := range history(t) {
			s.Apply(f)
			for id, r := range s.Runs {
				if kept[id] == nil {
					kept[id], copies[id] = r, *r
				}
			}
		}
		for id, r := range kept {
			if diff := cmp.Diff(copies[id], *r); diff != "" {
				t.Fatalf("run %s was changed in place: %s", id, diff)
			}
		}
	})
}

// TestGolden holds every record type, and both versions of an admission: what is written stays the same, and what was written is read.
func TestGolden(t *testing.T) {
	third := apart("request-3", 3, "run-3")
	first := starts("request-1", 1, "run-1")
	steer := steers("request-2", 2, "run-1")
	joined := run("run-1", 1001, "request-1", "request-2")
	for name, f := range map[string]ledger.Fact{
		"admitted-start-1": first, "admitted-steer-1": steer, "ended-1": ends(joined, protocol.RunFailed, true), "settled-1": late("request-2"),
		"queue-1": ledger.QueueChanged{SessionID: "session-1", Paused: true}, "admitted-start-2": third,
	} {
		r := record(t, f)
		path := filepath.Join("testdata", name+".json")
		if *update {
			if err := os.WriteFile(path, append(r.Payload, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(bytes.TrimSpace(want)), string(r.Payload)); diff != "" || !strings.HasSuffix(name, fmt.Sprint(r.Version)) {
			t.Errorf("%s, version %d: %s", name, r.Version, diff)
		}
	}
	s := ledger.NewState()
	for _, file := range []struct {
		name          string
		kind, version uint8
	}{{"admitted-start-1", 1, 1}, {"admitted-steer-1", 1, 1}, {"settled-1", 3, 1}, {"ended-1", 2, 1}, {"queue-1", 4, 1}, {"admitted-start-2", 1, 2}} {
		payload, err := os.ReadFile(filepath.Join("testdata", file.name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		payload = bytes.Replace(payload, []byte("{"), []byte(`{"ofTheFuture":[1],`), 1) // unknown members are ignored
		if err := s.Replay(recordlog.Record{Type: file.kind, Version: file.version, Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	want := apply(first, steer, late("request-2"), ends(joined, protocol.RunFailed, true), ledger.QueueChanged{SessionID: "session-1", Paused: true}, third)
	if diff := same(want, s); diff != "" {
		t.Error(diff)
	}
}

// A text that lies apart stands neither in the record nor in the state, however the request and its run go on.
func TestApart(t *testing.T) {
	f := apart("request-1", 1, "run-1")
	secret := f.Request.Input.Parts[1].Text
	if payload := record(t, f).Payload; bytes.Contains(payload, []byte(secret)) || !bytes.Contains(payload, []byte(f.Texts[0].ID)) {
		t.Errorf("record %s", payload)
	}
	steer := steers("request-2", 2, "run-1")
	s := apply(f, steer)
	check := func(when string) {
		t.Helper()
		r, run := s.Requests["request-1"], s.Runs["run-1"]
		if r.Input.Parts[0].Text != "short" || r.Input.Parts[1].Text != "" || r.Submission.Input.Parts[1].Text != "" || run.Text != "" {
			t.Errorf("%s: %+v of %+v", when, r.Input, run)
		}
		if diff := cmp.Diff(f.Texts, s.TextsOf(*run)); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
	}
	check("admitted")
	if f.Request.Input.Parts[1].Text != secret || f.Run.Text == "" {
		t.Error("the fact was changed")
	}
	s.Keep(f.Request)
	s.KeepRun(*f.Run)
	check("kept")
	s.Keep(steer.Request)
	if got := s.Requests["request-2"].Input.Parts[0].Text; got != steer.Request.Input.Parts[0].Text {
		t.Errorf("a text that is not apart became %q", got)
	}
	end := ends(*f.Run, protocol.RunCompleted, false)
	end.Run.Text = ""
	s.Apply(end)
	check("ended")
	full := ledger.Replace(s.Requests["request-1"].Input, f.Texts, func(x ledger.Text) string { return secret })
	if diff := cmp.Diff(f.Request, ledger.WithInput(f.Request, full)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(f.Request.Input, full); diff != "" {
		t.Error(diff)
	}
	inline := starts("request-9", 9, "run-9")
	end = ends(*inline.Run, protocol.RunCompleted, false)
	end.Run.Text = ""
	if s := apply(inline, end); s.Runs["run-9"].Text != inline.Run.Text {
		t.Error("an end without a text takes the run's away")
	}
	if none := s.TextsOf(protocol.Run{ID: "x"}); len(none) != 0 {
		t.Errorf("a run of nobody: %v", none)
	}
}

func TestNewerRecords(t *testing.T) {
	known := record(t, starts("request-1", 1, "run-1"))
	for name, r := range map[string]recordlog.Record{
		"unknown type": {Type: 5, Version: 1, Payload: []byte(`{}`)}, "content": {Type: 32, Version: 1}, "type 0": {Type: 0, Version: 1},
		"newer version": {Type: known.Type, Version: 3, Payload: []byte("\x00 other form")}, "newer end": {Type: 2, Version: 2, Payload: []byte("{}")},
	} {
		s := ledger.NewState()
		for _, r := range []recordlog.Record{r, known} {
			if err := s.Replay(r); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if !s.Newer || len(s.Requests) != 1 || len(s.Runs) != 1 || s.Next != 2 {
			t.Errorf("%s: the rest is not kept: %+v", name, s)
		}
	}
}

func TestDamagedPayload(t *testing.T) {
	good := starts("request-1", 1, "run-1")
	for name, r := range map[string]recordlog.Record{
		"empty":              {Type: 1, Version: 1},
		"no JSON":            {Type: 2, Version: 1, Payload: []byte("\xff\xfe")},
		"cut":                {Type: 1, Version: 1, Payload: record(t, good).Payload[:40]},
		"behind the end":     {Type: 4, Version: 1, Payload: []byte(`{"sessionId":"a","paused":true}{}`)},
		"wrong type":         {Type: 4, Version: 1, Payload: []byte(`{"sessionId":"a","paused":"yes"}`)},
		"list":               {Type: 3, Version: 1, Payload: []byte(`[]`)},
		"null":               {Type: 1, Version: 1, Payload: []byte(`null`)},
		"no request":         {Type: 1, Version: 1, Payload: []byte(`{"run":{"id":"r"}}`)},
		"run without id":     {Type: 1, Version: 1, Payload: []byte(`{"request":{"requestId":"a"},"run":{}}`)},
		"end of no run":      {Type: 2, Version: 1, Payload: []byte(`{"requests":[]}`)},
		"end of no request":  {Type: 2, Version: 1, Payload: []byte(`{"run":{"id":"r"},"requests":[{}]}`)},
		"nobody is settled":  {Type: 3, Version: 1, Payload: []byte(`{"requests":[{"requestId":"not an id"}]}`)},
		"text of no part":    {Type: 1, Version: 2, Payload: withTexts(`{"part":2,"id":"` + digest + `","size":5}`)},
		"part before all":    {Type: 1, Version: 2, Payload: withTexts(`{"part":-1,"id":"` + digest + `","size":5}`)},
		"text of a file":     {Type: 1, Version: 2, Payload: withTexts(`{"part":1,"id":"` + digest + `","size":5}`)},
		"text without id":    {Type: 1, Version: 2, Payload: withTexts(`{"part":0,"id":"","size":5}`)},
		"text of upper case": {Type: 1, Version: 2, Payload: withTexts(`{"part":0,"id":"` + strings.ToUpper(digest) + `","size":5}`)},
		"text of no bytes":   {Type: 1, Version: 2, Payload: withTexts(`{"part":0,"id":"` + digest + `","size":0}`)},
		"queue of nobody":    {Type: 4, Version: 1, Payload: []byte(`{"paused":true}`)},
		"fraction of a step": {Type: 1, Version: 1, Payload: []byte(`{"request":{"requestId":"a","sequence":1.5}}`)},
	} {
		s, before := apply(good), apply(good)
		if err := s.Replay(r); err == nil || !strings.Contains(err.Error(), "ledger record of type") {
			t.Errorf("%s: %v", name, err)
		}
		if diff := same(before, s); diff != "" {
			t.Errorf("%s changes the state: %s", name, diff)
		}
	}
}

func TestNext(t *testing.T) {
	s := ledger.NewState()
	if s.Next != 1 {
		t.Errorf("an empty journal begins with %d", s.Next)
	}
	s.Apply(steers("request-9", 9, ""))
	s.Apply(steers("request-4", 4, ""))
	if s.Next != 10 {
		t.Errorf("the next admission is %d", s.Next)
	}
}

func TestQueue(t *testing.T) {
	s := apply(ledger.QueueChanged{SessionID: "a", Paused: true}, ledger.QueueChanged{SessionID: "b", Paused: true}, ledger.QueueChanged{SessionID: "a"},
		ledger.QueueChanged{SessionID: "c"}, ends(run("run-1", 1), protocol.RunCompleted, false))
	if diff := cmp.Diff(map[protocol.ID]bool{"b": true}, s.Paused); diff != "" {
		t.Error(diff)
	}
	if s.Apply(ends(run("run-2", 2), protocol.RunFailed, true)); !s.Paused["session-1"] {
		t.Error("a run that failed does not pause its queue")
	}
}

// TestEnd: an end that brings no attempts keeps those of the record.
func TestEnd(t *testing.T) {
	r := request("request-1", 1, "run-1", "start")
	r.ModelAttempts = []protocol.ModelAttempt{{CallID: "c"}}
	e := ledger.End{RequestID: "request-1", Status: protocol.RequestFailed, Delivery: pending, Error: &protocol.Failure{Code: "provider"}}
	if got := e.Of(r); got.Status != protocol.RequestFailed || got.Error == nil || len(got.ModelAttempts) != 1 || r.Error != nil {
		t.Errorf("%+v of %+v", got, r)
	}
	e.ModelAttempts = []protocol.ModelAttempt{{CallID: "d"}, {CallID: "e"}}
	if got := e.Of(r); len(got.ModelAttempts) != 2 {
		t.Errorf("%+v", got.ModelAttempts)
	}
	if s := apply(late("unknown")); len(s.Requests) != 0 {
		t.Error("an end makes a request")
	}
}

func TestRunsOf(t *testing.T) {
	s := ledger.NewState()
	other := run("run-x", 1)
	other.SessionID = "session-2"
	for _, r := range []protocol.Run{run("run-c", 3), run("run-b", 2), run("run-a", 2), other, run("run-d", 1)} {
		s.Apply(ledger.Admitted{Request: request("request-"+r.ID, 1, r.ID, "start"), Run: &r})
	}
	for n, want := range map[int]string{0: "", 1: "run-c", 3: "run-a run-b run-c", 4: "run-d run-a run-b run-c", 100: "run-d run-a run-b run-c"} {
		var got []string
		for _, r := range s.RunsOf("session-1", n) {
			got = append(got, string(r.ID))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("the newest %d are %v, want %s", n, got, want)
		}
	}
	if none := s.RunsOf("nobody", 5); none == nil || len(none) != 0 {
		t.Errorf("no runs are %#v", none)
	}
}

func FuzzReplay(f *testing.F) {
	first, joined := starts("request-1", 1, "run-1"), run("run-1", 1001, "request-1", "request-2")
	records, err := ledger.Records(first, steers("request-2", 2, "run-1"), ends(joined, protocol.RunFailed, true), late("request-2"), ledger.QueueChanged{SessionID: "s", Paused: true}, apart("request-3", 3, "run-3"))
	if err != nil {
		f.Fatal(err)
	}
	for _, r := range records {
		f.Add(r.Type, r.Version, r.Payload)
	}
	f.Add(uint8(1), uint8(1), []byte(`{"request":{"requestId":"a","runId":"run-1","sequence":9007199254740992,"status":"running"}}`))
	f.Add(uint8(1), uint8(2), withTexts(`{"part":0,"id":"`+digest+`","size":5}`))
	f.Add(uint8(1), uint8(2), withTexts(`{"part":7,"id":"`+digest+`","size":5}`))
	f.Add(uint8(2), uint8(1), []byte(`{"run":{"id":"run-1","status":"running","requestIds":["request-1","request-1"]}}`))
	f.Add(uint8(3), uint8(9), []byte(`null`))
	f.Fuzz(func(t *testing.T, kind, version uint8, payload []byte) {
		s, before := apply(first), apply(first)
		if err := s.Replay(recordlog.Record{Type: kind, Version: version, Payload: payload}); err != nil {
			if diff := same(before, s); diff != "" {
				t.Fatalf("%v, and yet: %s", err, diff)
			}
			return
		}
		facts := s.Interrupt(5000, func(protocol.Request) []protocol.ID { return nil })
		for _, fact := range facts {
			s.Apply(fact)
		}
		if again := s.Interrupt(6000, func(protocol.Request) []protocol.ID { return nil }); len(again) != 0 {
			t.Fatalf("interrupted twice: %+v", again)
		}
		if n := len(s.RunsOf("session-1", 2)); n > 2 {
			t.Fatalf("%d runs", n)
		}
	})
}
