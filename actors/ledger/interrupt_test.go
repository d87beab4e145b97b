package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/repa-app/repa/actors/ledger"
	"github.com/repa-app/repa/cas/recordlog"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/testkit/crashfs"
)

// holds says that the history has the input of these requests.
func holds(ids ...protocol.ID) func(protocol.Request) []protocol.ID {
	return func(r protocol.Request) []protocol.ID {
		for _, id := range ids {
			if id == r.RequestID {
				return []protocol.ID{"m-" + id}
			}
		}
		return nil
	}
}

// brief says how everything in the state ended.
func brief(s *ledger.State) map[string]string {
	out := map[string]string{}
	for id, r := range s.Runs {
		out[string(id)] = string(r.Status)
	}
	for id, r := range s.Requests {
		out[string(id)] = string(r.Status) + ", " + string(r.Delivery.Status)
	}
	for id := range s.Paused {
		out[string(id)] = "paused"
	}
	return out
}

func TestInterrupt(t *testing.T) {
	first, steer := starts("request-1", 1, "run-1"), steers("request-2", 2, "run-1")
	joined := run("run-1", 1001, "request-1", "request-2")
	queued := ledger.Admitted{Request: request("request-3", 3, "", "queue")}
	queued.Request.Status = protocol.RequestQueued
	second := starts("request-4", 4, "run-2")
	second.Request.Target.SessionID, second.Run.SessionID = "session-2", "session-2"
	const interrupted = "interrupted, entered"
	const lost = "interrupted, not_entered"
	for name, c := range map[string]struct {
		facts   []ledger.Fact
		entered []protocol.ID
		made    int
		want    map[string]string
	}{
		"empty":       {nil, nil, 0, map[string]string{}},
		"entered":     {[]ledger.Fact{first}, []protocol.ID{"request-1"}, 1, map[string]string{"run-1": "interrupted", "request-1": interrupted, "session-1": "paused"}},
		"not entered": {[]ledger.Fact{first}, nil, 1, map[string]string{"run-1": "interrupted", "request-1": lost, "session-1": "paused"}},
		"steer that entered": {[]ledger.Fact{first, steer}, []protocol.ID{"request-1", "request-2"}, 1,
			map[string]string{"run-1": "interrupted", "request-1": interrupted, "request-2": interrupted, "session-1": "paused"}},
		"steer that did not": {[]ledger.Fact{first, steer}, []protocol.ID{"request-1"}, 1,
			map[string]string{"run-1": "interrupted", "request-1": interrupted, "request-2": lost, "session-1": "paused"}},
		"steer settled before": {[]ledger.Fact{first, steer, late("request-2")}, []protocol.ID{"request-1"}, 1,
			map[string]string{"run-1": "interrupted", "request-1": interrupted, "request-2": "not_entered, not_entered", "session-1": "paused"}},
		"over": {[]ledger.Fact{first, steer, ends(joined, protocol.RunCompleted, false)}, nil, 0,
			map[string]string{"run-1": "completed", "request-1": "completed, entered", "request-2": "completed, entered"}},
		"steer behind the end": {[]ledger.Fact{first, ends(run("run-1", 1001, "request-1"), protocol.RunCompleted, false), steer}, nil, 1,
			map[string]string{"run-1": "completed", "request-1": "completed, entered", "request-2": lost}},
		"steer of an unknown run": {[]ledger.Fact{steer}, []protocol.ID{"request-2"}, 1, map[string]string{"request-2": interrupted}},
		"queue waits on":          {[]ledger.Fact{first, queued}, nil, 1, map[string]string{"run-1": "interrupted", "request-1": lost, "request-3": "queued, pending", "session-1": "paused"}},
		"two sessions": {[]ledger.Fact{first, second}, []protocol.ID{"request-4"}, 2,
			map[string]string{"run-1": "interrupted", "request-1": lost, "session-1": "paused", "run-2": "interrupted", "request-4": interrupted, "session-2": "paused"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := replayed(t, c.facts...)
			facts := s.Interrupt(9000, holds(c.entered...))
			if len(facts) != c.made {
				t.Errorf("%d facts, want %d: %+v", len(facts), c.made, facts)
			}
			for _, f := range facts {
				s.Apply(f)
			}
			if diff := cmp.Diff(c.want, brief(s)); diff != "" {
				t.Error(diff)
			}
			if again := s.Interrupt(9500, holds()); len(again) != 0 {
				t.Errorf("said twice: %+v", again)
			}
			if diff := same(s, replayed(t, append(c.facts, facts...)...)); diff != "" {
				t.Errorf("the records say something else: %s", diff)
			}
		})
	}
}

// TestInterruptedRecords: what people and front ends read of it.
func TestInterruptedRecords(t *testing.T) {
	s := apply(starts("request-1", 1, "run-1"), steers("request-2", 2, "run-1"))
	for _, f := range s.Interrupt(9000, holds("request-1")) {
		s.Apply(f)
	}
	r := s.Runs["run-1"]
	if r.FinishedAt != 9000 || r.Phase != protocol.PhaseIdle || r.Error == nil || r.Error.Code != string(protocol.CodeInterrupted) || len(r.RequestIDs) != 2 {
		t.Errorf("run %+v", r)
	}
	for id, q := range s.Requests {
		if err := q.Delivery.Validate(); err != nil || q.Error == nil || q.Error.Code != string(protocol.CodeInterrupted) || q.Error.Message == "" {
			t.Errorf("%s: %+v, %v", id, q, err)
		}
	}
	if ids := s.Requests["request-1"].Delivery.MessageIDs; len(ids) != 1 || ids[0] != "m-request-1" {
		t.Errorf("messages %v", ids)
	}
}

func TestInterruptOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := apply(history(t)...)
		before := s.Next
		for _, f := range s.Interrupt(9000, holds("request-0", "request-2")) {
			s.Apply(f)
		}
		if again := s.Interrupt(9001, holds()); len(again) != 0 || s.Next != before {
			t.Fatalf("again: %+v", again)
		}
		for id, r := range s.Runs {
			if !r.Status.Terminal() {
				t.Fatalf("run %s is %s", id, r.Status)
			}
		}
		for id, r := range s.Requests {
			if r.Status == protocol.RequestRunning || r.Delivery.Status == protocol.DeliveryPending {
				t.Fatalf("request %s is %s, %s", id, r.Status, r.Delivery.Status)
			}
		}
	})
}

var errPower = errors.New("the power is gone")

// cutPower makes the n-th call of the disk from now on, and all behind it, fail.
func cutPower(disk *crashfs.FS, n int) {
	last := disk.Calls() + n
	disk.SetFault(func(c crashfs.Call) error {
		if c.N >= last {
			return errPower
		}
		return nil
	})
}

func open(disk *crashfs.FS) (*recordlog.Log, *ledger.State, error) {
	s := ledger.NewState()
	l, _, err := recordlog.Open(context.Background(), disk, recordlog.Options{SegmentSize: 4096}, s.Replay)
	return l, s, err
}

// write appends the calls until one fails and returns how many were acknowledged.
func write(t *testing.T, l *recordlog.Log, calls [][]ledger.Fact) (acked int, failed bool) {
	t.Helper()
	for _, facts := range calls {
		records, err := ledger.Records(facts...)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Append(t.Context(), records...); err != nil {
			return acked, true
		}
		acked++
	}
	return acked, false
}

// TestPowerLoss cuts the power at every call of the disk. What was acknowledged is in the state afterwards, the call that was
// under way is there as a whole or not at all, and what was left open is ended once, also when the power goes again meanwhile.
func TestPowerLoss(t *testing.T) {
	calls := [][]ledger.Fact{
		{starts("request-1", 1, "run-1")}, {steers("request-2", 2, "run-1")}, {late("request-2")},
		{ends(run("run-1", 1001, "request-1", "request-2"), protocol.RunCompleted, false)},
		{ledger.QueueChanged{SessionID: "session-1", Paused: true}, ledger.QueueChanged{SessionID: "session-2", Paused: true}},
		{starts("request-3", 3, "run-3")}, {ends(run("run-3", 1003, "request-3"), protocol.RunFailed, true), starts("request-4", 4, "run-4")},
	}
	for n := 1; ; n++ {
		disk := crashfs.New()
		l, _, err := open(disk)
		if err != nil {
			t.Fatal(err)
		}
		cutPower(disk, n)
		acked, failed := write(t, l, calls)
		_ = l.Close() // it reports what failed before
		rng := rand.New(rand.NewPCG(uint64(n), 1))
		for round := range 4 {
			after := disk.Crash(rng)
			if round == 0 {
				after = disk.Crash(nil)
			}
			reopen(t, fmt.Sprintf("call %d, round %d", n, round), after, calls, acked)
		}
		if !failed {
			if n == 1 {
				t.Fatal("the power was never cut")
			}
			return
		}
	}
}

func reopen(t *testing.T, where string, disk *crashfs.FS, calls [][]ledger.Fact, acked int) {
	t.Helper()
	l, s, err := open(disk)
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	diff := ""
	for known := acked; known <= min(acked+1, len(calls)); known++ {
		var facts []ledger.Fact
		for _, call := range calls[:known] {
			facts = append(facts, call...)
		}
		if diff = same(apply(facts...), s); diff == "" {
			break
		}
	}
	if diff != "" {
		t.Fatalf("%s: %d calls were acknowledged, but: %s", where, acked, diff)
	}
	cutPower(disk, 1+len(where)%4) // another moment each time; with luck it survives
	facts := s.Interrupt(9000, holds("request-1"))
	if len(facts) > 0 {
		_, _ = write(t, l, [][]ledger.Fact{facts})
	}
	_ = l.Close()
	again := disk.Crash(nil)
	l, s, err = open(again)
	if err != nil {
		t.Fatalf("%s, the second time: %v", where, err)
	}
	facts = s.Interrupt(9500, holds("request-1"))
	if _, failed := write(t, l, [][]ledger.Fact{facts}); failed && len(facts) > 0 {
		t.Fatalf("%s: the end cannot be written", where)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, s, err = open(again)
	if err != nil {
		t.Fatal(err)
	}
	if left := s.Interrupt(9999, holds()); len(left) != 0 {
		t.Fatalf("%s: not over after all: %+v", where, left)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
