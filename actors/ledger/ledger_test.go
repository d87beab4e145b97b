package ledger_test

import (
	"bytes"
	"flag"
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

// TestGolden holds version 1 of every record type: what is written stays the same, and what was written is read.
func TestGolden(t *testing.T) {
	first := starts("request-1", 1, "run-1")
	steer := steers("request-2", 2, "run-1")
	joined := run("run-1", 1001, "request-1", "request-2")
	for name, f := range map[string]ledger.Fact{
		"admitted-start": first, "admitted-steer": steer, "ended": ends(joined, protocol.RunFailed, true), "settled": late("request-2"),
		"queue": ledger.QueueChanged{SessionID: "session-1", Paused: true},
	} {
		r := record(t, f)
		path := filepath.Join("testdata", name+"-1.json")
		if *update {
			if err := os.WriteFile(path, append(r.Payload, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(bytes.TrimSpace(want)), string(r.Payload)); diff != "" || r.Version != 1 {
			t.Errorf("%s, version %d: %s", name, r.Version, diff)
		}
	}
	s := ledger.NewState()
	for _, file := range []struct {
		name string
		kind uint8
	}{{"admitted-start", 1}, {"admitted-steer", 1}, {"settled", 3}, {"ended", 2}, {"queue", 4}} {
		payload, err := os.ReadFile(filepath.Join("testdata", file.name+"-1.json"))
		if err != nil {
			t.Fatal(err)
		}
		payload = bytes.Replace(payload, []byte("{"), []byte(`{"ofTheFuture":[1],`), 1) // unknown members are ignored
		if err := s.Replay(recordlog.Record{Type: file.kind, Version: 1, Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	want := apply(first, steer, late("request-2"), ends(joined, protocol.RunFailed, true), ledger.QueueChanged{SessionID: "session-1", Paused: true})
	if diff := same(want, s); diff != "" {
		t.Error(diff)
	}
}

func TestNewerRecords(t *testing.T) {
	known := record(t, starts("request-1", 1, "run-1"))
	for name, r := range map[string]recordlog.Record{
		"unknown type": {Type: 5, Version: 1, Payload: []byte(`{}`)}, "content": {Type: 32, Version: 1}, "type 0": {Type: 0, Version: 1},
		"newer version": {Type: known.Type, Version: 2, Payload: []byte("\x00 other form")},
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
	records, err := ledger.Records(first, steers("request-2", 2, "run-1"), ends(joined, protocol.RunFailed, true), late("request-2"), ledger.QueueChanged{SessionID: "s", Paused: true})
	if err != nil {
		f.Fatal(err)
	}
	for _, r := range records {
		f.Add(r.Type, r.Version, r.Payload)
	}
	f.Add(uint8(1), uint8(1), []byte(`{"request":{"requestId":"a","runId":"run-1","sequence":9007199254740992,"status":"running"}}`))
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
