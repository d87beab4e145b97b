package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/repa-app/repa/protocol"
)

// maxUpdates is how many changes wait for the user before a snapshot stands for them: as many as the server keeps for a resume.
const maxUpdates = 1024

// ErrReplicaClosed ends Next: the replica or its client was closed.
var ErrReplicaClosed = errors.New("replica is closed")

// Update is what happened since the last one: a new state, or changes of the state, in order. Exactly one is set.
type Update struct {
	Snapshot *protocol.Snapshot
	Changes  []protocol.Change
}

// Replica follows a scope.
type Replica struct {
	client *Client
	id     protocol.ID
	scope  protocol.Scope

	mu       sync.Mutex
	state    protocol.Snapshot
	cursor   string
	known    bool // state is that of cursor; otherwise a snapshot is on its way
	pending  []protocol.Change
	replaced bool          // a snapshot stands for everything that is pending
	news     chan struct{} // holds one token while there may be something for Next
	closed   bool
	ended    chan struct{}
}

// Watch starts a replica and waits for its first snapshot.
func Watch(ctx context.Context, c *Client, scope protocol.Scope) (*Replica, error) {
	r := &Replica{client: c, scope: scope, news: make(chan struct{}, 1), ended: make(chan struct{})}
	c.mu.Lock()
	if c.replicas == nil {
		c.mu.Unlock()
		return nil, ErrNotConnected
	}
	c.lastID++
	r.id = protocol.ID("watch-" + strconv.Itoa(c.lastID))
	c.replicas[r.id] = r
	c.mu.Unlock()
	if err := r.start(ctx); err != nil {
		r.forget()
		return nil, fmt.Errorf("watch: %w", err)
	}
	return r, nil
}

func (r *Replica) start(ctx context.Context) error {
	_, err := r.client.call(ctx, protocol.SubscriptionStart.Name, r.subscription())
	return err
}

// subscription asks for what is missing since the cursor, or for everything.
func (r *Replica) subscription() protocol.SubscribeParams {
	r.mu.Lock()
	defer r.mu.Unlock()
	params := protocol.SubscribeParams{ID: r.id, Scope: r.scope}
	if r.known {
		cursor := r.cursor
		params.Cursor = &cursor
	}
	return params
}

// Snapshot is the state as it is now. It is the caller's own.
func (r *Replica) Snapshot() protocol.Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.Clone()
}

// Next waits for something new and hands it over once. The first update is the first snapshot. It fails with ErrReplicaClosed and when ctx
// ends. One goroutine at a time may call it.
func (r *Replica) Next(ctx context.Context) (Update, error) {
	for {
		if update, ok := r.take(); ok {
			return update, nil
		}
		select {
		case <-r.news:
		case <-r.ended:
			return Update{}, ErrReplicaClosed
		case <-ctx.Done():
			return Update{}, ctx.Err()
		}
	}
}

func (r *Replica) take() (Update, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.replaced {
		r.replaced = false
		state := r.state.Clone()
		return Update{Snapshot: &state}, true
	}
	if len(r.pending) > 0 {
		changes := r.pending
		r.pending = nil
		return Update{Changes: changes}, true
	}
	return Update{}, false
}

// Close ends the replica and tells the backend. It does not fail: a backend that is not reachable has forgotten the subscription anyway.
func (r *Replica) Close(ctx context.Context) {
	r.forget()
	_, _ = r.client.call(ctx, protocol.SubscriptionStop.Name, protocol.UnsubscribeParams{ID: r.id})
}

func (r *Replica) forget() {
	r.client.mu.Lock()
	delete(r.client.replicas, r.id)
	r.client.mu.Unlock()
	r.end()
}

func (r *Replica) end() {
	r.mu.Lock()
	already := r.closed
	r.closed = true
	r.mu.Unlock()
	if !already {
		close(r.ended)
	}
}

// deliver folds a delivery in. It runs on the reading goroutine of the connection.
func (r *Replica) deliver(d protocol.Delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case d.Type == "snapshot":
		r.state, r.cursor, r.known = *d.Snapshot, d.Cursor, true
		r.pending, r.replaced = nil, true
	case !r.known:
		return // a change on top of a state that was given up; the snapshot is on its way
	case d.PreviousCursor != r.cursor:
		r.known = false
		r.resync()
		return
	default:
		r.cursor = d.Cursor
		for _, change := range d.Changes {
			protocol.Apply(&r.state, change)
		}
		r.keep(d.Changes)
	}
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// keep holds changes for Next, or lets a snapshot stand for them.
func (r *Replica) keep(changes []protocol.Change) {
	if r.replaced || len(r.pending)+len(changes) > maxUpdates {
		r.pending, r.replaced = nil, true
		return
	}
	r.pending = append(r.pending, changes...)
}

// resync asks for a snapshot beside the reading goroutine, which must go on reading to get it. Without an answer the link is given up: the next
// one asks by itself, because the state is not known.
func (r *Replica) resync() {
	r.client.running.Go(func() {
		if r.start(context.Background()) != nil {
			r.client.renew()
		}
	})
}
