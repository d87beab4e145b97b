package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/client"
	"github.com/repa-app/repa/protocol/internal/fake"
	"github.com/repa-app/repa/protocol/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func dial(t *testing.T, url string, change ...func(*client.Options)) *client.Client {
	t.Helper()
	options := client.Options{URL: url, Token: fake.Token}
	for _, f := range change {
		f(&options)
	}
	c, err := client.Dial(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Drop)
	return c
}

func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestTypedCalls(t *testing.T) {
	c := dial(t, fake.New("s").Serve(t).URL())
	ctx := limited(t)
	space, err := client.Call(ctx, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: "/x"})
	if err != nil || space.Path != "/x" {
		t.Fatal(space, err)
	}
	spaces, err := client.Call(ctx, c, protocol.SpaceList, protocol.Empty{})
	if err != nil || len(spaces) != 1 || spaces[0] != space {
		t.Error(spaces, err)
	}
	_, err = client.Call(ctx, c, protocol.SessionList, protocol.SpaceParams{SpaceID: "other"})
	if !errors.Is(err, &protocol.Error{Reason: protocol.CodeNotFound}) {
		t.Errorf("domain error: %v", err)
	}
	_, err = client.Call(ctx, c, protocol.SpaceOpen, protocol.SpaceOpenParams{})
	var fault *protocol.Fault
	if !errors.As(err, &fault) || fault.Number != protocol.NumberInvalidParams {
		t.Errorf("bad params: %v", err)
	}
	if c.Server().ServerID != "s" || c.Server().HostKey == "" {
		t.Error(c.Server())
	}
}

func TestWrongTokenIsRefused(t *testing.T) {
	_, err := client.Dial(limited(t), client.Options{URL: fake.New("s").Serve(t).URL(), Token: strings.Repeat("x", 32)})
	var fault *protocol.Fault
	if !errors.As(err, &fault) || fault.Number != protocol.NumberUnauthorised {
		t.Error(err)
	}
}

func TestResultsAreReadStrictly(t *testing.T) {
	backend := fake.New("s")
	backend.Before = func(call *server.Call) bool {
		if call.Method == "space.list" {
			call.Reply([]protocol.Space{{ID: "not an id"}})
			return true
		}
		return false
	}
	url := backend.Serve(t, func(o *server.Options) { o.CheckResults = false }).URL()
	_, err := client.Call(limited(t), dial(t, url), protocol.SpaceList, protocol.Empty{})
	var fault *protocol.Fault
	if !errors.As(err, &fault) || fault.Number != protocol.NumberInternal {
		t.Error(err)
	}
}

func TestOutcomeIsUnknownAfterDropAndTimeout(t *testing.T) {
	backend := fake.New("s")
	arrived := make(chan struct{}, 1)
	backend.Before = func(call *server.Call) bool {
		if call.Method == "space.open" {
			arrived <- struct{}{}
			return true // never answered
		}
		return false
	}
	c := dial(t, backend.Serve(t).URL())
	go func() { <-arrived; backend.DropAll() }()
	if _, err := client.Call(limited(t), c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: "/x"}); !errors.Is(err, client.ErrOutcomeUnknown) {
		t.Errorf("drop: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-arrived; cancel() }()
	if _, err := client.Call(ctx, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: "/x"}); !errors.Is(err, client.ErrOutcomeUnknown) {
		t.Errorf("timeout: %v", err)
	}
	if _, err := client.Call(limited(t), c, protocol.SpaceList, protocol.Empty{}); err != nil {
		t.Errorf("after both: %v", err)
	}
}

func TestSameHostAfterReconnect(t *testing.T) {
	backend := fake.New("s")
	c := dial(t, backend.Serve(t).URL())
	before := c.Server()
	backend.DropAll()
	if _, err := client.Call(limited(t), c, protocol.SpaceList, protocol.Empty{}); err != nil && !errors.Is(err, client.ErrOutcomeUnknown) {
		t.Fatal(err)
	}
	if _, err := client.Call(limited(t), c, protocol.SpaceList, protocol.Empty{}); err != nil {
		t.Fatal(err)
	}
	if c.Server().HostKey != before.HostKey {
		t.Error("another host came back")
	}
}

func TestCloseDetaches(t *testing.T) {
	backend := fake.New("s")
	var once sync.Once
	closed := make(chan error, 1)
	c := dial(t, backend.Serve(t).URL(), func(o *client.Options) {
		o.OnClose = func(err error) { once.Do(func() { closed <- err }) }
	})
	r, err := client.Watch(limited(t), c, protocol.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(limited(t)); err != nil {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Errorf("OnClose: %v", err)
	}
	if _, err := client.Call(limited(t), c, protocol.SpaceList, protocol.Empty{}); !errors.Is(err, client.ErrNotConnected) {
		t.Errorf("call after close: %v", err)
	}
	if _, err := r.Next(limited(t)); err == nil {
		_, err = r.Next(limited(t)) // the first snapshot may still have been there
		if !errors.Is(err, client.ErrReplicaClosed) {
			t.Errorf("next after close: %v", err)
		}
	}
	if _, err := client.Watch(limited(t), c, protocol.Scope{}); !errors.Is(err, client.ErrNotConnected) {
		t.Errorf("watch after close: %v", err)
	}
}

func TestServerThatStopsIsNotCalledAgain(t *testing.T) {
	closed := make(chan error, 1)
	s := fake.New("s").Serve(t)
	c := dial(t, s.URL(), func(o *client.Options) { o.OnClose = func(err error) { closed <- err } })
	if err := s.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := <-closed; err == nil {
		t.Error("OnClose got no reason")
	}
	if _, err := client.Call(limited(t), c, protocol.SpaceList, protocol.Empty{}); !errors.Is(err, client.ErrNotConnected) {
		t.Error(err)
	}
}

func space(i int) protocol.Change {
	return protocol.Change{Type: protocol.ChangeSpace, Space: &protocol.Space{ID: protocol.ID(fmt.Sprint("space-", i)), Path: "/x"}}
}

// follow folds the updates of a replica by itself until it has seen the last space, as a user would.
func follow(t *testing.T, r *client.Replica, last int) protocol.Snapshot {
	t.Helper()
	ctx := limited(t)
	var state protocol.Snapshot
	for {
		update, err := r.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if update.Snapshot != nil {
			state = *update.Snapshot
		}
		for _, change := range update.Changes {
			protocol.Apply(&state, change)
		}
		for _, s := range state.Spaces {
			if s.ID == space(last).Space.ID {
				return state
			}
		}
	}
}

func same(t *testing.T, what string, got, want protocol.Snapshot) {
	t.Helper()
	left, err := protocol.Canonical(got)
	if err != nil {
		t.Fatal(err)
	}
	right, err := protocol.Canonical(want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(right), string(left)); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

func watch(t *testing.T, c *client.Client) *client.Replica {
	t.Helper()
	r, err := client.Watch(limited(t), c, protocol.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReplicaFollows(t *testing.T) {
	backend := fake.New("s")
	r := watch(t, dial(t, backend.Serve(t).URL()))
	for i := range 500 {
		backend.Publish(space(i))
	}
	same(t, "folded by the user", follow(t, r, 499), backend.State())
	same(t, "folded by the replica", r.Snapshot(), backend.State())
}

// TestReplicaSurvivesDrops cuts the connection again and again while changes go on; the state is whole at the end, whether the server
// can resume or not.
func TestReplicaSurvivesDrops(t *testing.T) {
	for _, forgetful := range []bool{false, true} {
		t.Run(fmt.Sprint("forgetful ", forgetful), func(t *testing.T) {
			t.Parallel()
			backend := fake.New("s")
			c := dial(t, backend.Serve(t).URL())
			r := watch(t, c)
			for i := range 300 {
				backend.Publish(space(i))
				if i%100 != 50 {
					continue
				}
				backend.DropAll()
				if forgetful {
					backend.Forget(false)
				}
				if _, err := client.Call(limited(t), c, protocol.SpaceList, protocol.Empty{}); err != nil && !errors.Is(err, client.ErrOutcomeUnknown) {
					t.Fatal(err)
				}
			}
			same(t, "folded by the user", follow(t, r, 299), backend.State())
			same(t, "folded by the replica", r.Snapshot(), backend.State())
		})
	}
}

// TestReplicaHealsGaps lets the server skip changes without saying so.
func TestReplicaHealsGaps(t *testing.T) {
	backend := fake.New("s")
	r := watch(t, dial(t, backend.Serve(t).URL()))
	for i := range 50 {
		backend.Publish(space(i))
		if i%10 == 5 {
			backend.Publish(protocol.Change{Type: protocol.ChangeSpace, Space: &protocol.Space{ID: protocol.ID(fmt.Sprint("skipped-", i)), Path: "/y"}})
			backend.Forget(true)
		}
	}
	backend.Publish(space(50))
	same(t, "folded by the user", follow(t, r, 50), backend.State())
}

// TestReplicaBoundsWhatIsNotTaken publishes far more than is kept: a snapshot stands for it and nothing is lost.
func TestReplicaBoundsWhatIsNotTaken(t *testing.T) {
	backend := fake.New("s")
	r := watch(t, dial(t, backend.Serve(t).URL()))
	if update, err := r.Next(limited(t)); err != nil || update.Snapshot == nil {
		t.Fatal(update, err)
	}
	const many = 3000
	for i := range many {
		backend.Publish(space(i))
	}
	other := watch(t, dialAgain(t, r, backend, many-1))
	if update, err := r.Next(limited(t)); err != nil || update.Snapshot == nil || len(update.Snapshot.Spaces) != many {
		t.Errorf("%d changes, snapshot %v, %v", len(update.Changes), update.Snapshot != nil, err)
	}
	other.Close(limited(t))
	if _, err := other.Next(limited(t)); err == nil {
		if _, err = other.Next(limited(t)); !errors.Is(err, client.ErrReplicaClosed) {
			t.Errorf("next after close: %v", err)
		}
	}
}

// dialAgain waits until the replica holds the last space, then gives a second client.
func dialAgain(t *testing.T, r *client.Replica, backend *fake.Backend, last int) *client.Client {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for len(r.Snapshot().Spaces) <= last {
		select {
		case <-poll.C:
		case <-deadline.C:
			t.Fatal("the replica does not arrive at the last change")
		}
	}
	return dial(t, backend.Serve(t).URL())
}
