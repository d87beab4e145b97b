// Package fake is a backend in memory for the tests of server and client: it speaks real JSON-RPC over a real listener but does
// nothing. Only tests import it.
package fake

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/rpc"
	"github.com/repa-app/repa/protocol/server"
)

// Token lets its bearer in.
const Token = "0123456789abcdef0123456789abcdef"

// Backend keeps spaces and a log of changes.
type Backend struct {
	ID string
	// Before sees each call first; true means that it answers the call itself.
	Before func(call *server.Call) bool

	mu     sync.Mutex
	state  protocol.Snapshot
	log    []protocol.Change
	oldest int // changes before it cannot be resumed
	conns  map[*conn]struct{}
	bytes  map[protocol.ID][]byte // of the resources, by space and id with a slash between
	nextID int
}

// New makes an empty backend.
func New(id string) *Backend {
	return &Backend{ID: id, state: protocol.Snapshot{Lifecycle: protocol.LifecycleRunning}, conns: map[*conn]struct{}{}, bytes: map[protocol.ID][]byte{}}
}

// Serve listens until the test ends.
func (b *Backend) Serve(t testing.TB, change ...func(*server.Options)) *server.Server {
	t.Helper()
	options := server.Options{Token: Token, Logger: slog.New(slog.DiscardHandler), Backend: b, CheckResults: true}
	for _, f := range change {
		f(&options)
	}
	s, err := server.Listen(options)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shut down: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s
}

// ServerID implements server.Backend.
func (b *Backend) ServerID() string { return b.ID }

// Connect implements server.Backend.
func (b *Backend) Connect(peer *rpc.Peer, host server.HostIdentity) server.Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &conn{backend: b, peer: peer, host: host, subscriptions: map[protocol.ID]*subscription{}}
	b.conns[c] = struct{}{}
	return c
}

// Connections counts those that are open.
func (b *Backend) Connections() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.conns)
}

// DropAll cuts every connection.
func (b *Backend) DropAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.conns {
		c.peer.Abort()
	}
}

// Publish records a change and tells the subscribers.
func (b *Backend) Publish(change protocol.Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.publish(change)
}

func (b *Backend) publish(change protocol.Change) {
	protocol.Apply(&b.state, change)
	b.log = append(b.log, change)
	for c := range b.conns {
		for _, s := range c.subscriptions {
			c.peer.Push(s)
		}
	}
}

// Forget makes every resume impossible and, with skip, lets all subscribers miss what they have not got yet.
func (b *Backend) Forget(skip bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.oldest = len(b.log)
	for c := range b.conns {
		for _, s := range c.subscriptions {
			if skip {
				s.sent = len(b.log)
				s.cursor = b.cursor(s.sent)
			}
		}
	}
}

// State is what a subscriber of the application sees.
func (b *Backend) State() protocol.Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.Clone()
}

func (b *Backend) cursor(n int) string { return b.ID + ":" + strconv.Itoa(n) }

// conn is one connection.
type conn struct {
	backend       *Backend
	peer          *rpc.Peer
	host          server.HostIdentity
	subscriptions map[protocol.ID]*subscription // guarded by the backend
	detached      bool
}

// Detached implements server.Detacher.
func (c *conn) Detached() bool {
	c.backend.mu.Lock()
	defer c.backend.mu.Unlock()
	return c.detached
}

// Closed implements server.Conn.
func (c *conn) Closed() {
	c.backend.mu.Lock()
	defer c.backend.mu.Unlock()
	delete(c.backend.conns, c)
}

// Call implements server.Conn.
func (c *conn) Call(call *server.Call) {
	b := c.backend
	if b.Before != nil && b.Before(call) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch p := call.Params.(type) {
	case protocol.SpaceOpenParams:
		space := protocol.Space{ID: protocol.ID("space-" + strconv.Itoa(len(b.state.Spaces))), Path: p.Path}
		b.publish(protocol.Change{Type: protocol.ChangeSpace, Space: &space})
		call.Reply(space)
	case protocol.SpaceParams:
		c.spaceCall(call, p)
	case protocol.StateParams:
		call.Reply(b.state)
	case protocol.SubscribeParams:
		s := &subscription{backend: b, id: p.ID, scope: p.Scope, asked: p.Cursor, fresh: true}
		if old := c.subscriptions[p.ID]; old != nil {
			old.over = true
		}
		c.subscriptions[p.ID] = s
		c.peer.Push(s)
		call.Reply(nil)
	case protocol.UnsubscribeParams:
		if old := c.subscriptions[p.ID]; old != nil {
			old.over = true
		}
		delete(c.subscriptions, p.ID)
		call.Reply(nil)
	case protocol.ShutdownParams:
		call.Reply(nil)
	default:
		c.plainCall(call)
	}
}

func (c *conn) spaceCall(call *server.Call, p protocol.SpaceParams) {
	b := c.backend
	if call.Method == protocol.SessionList.Name {
		call.Fail(fmt.Errorf("list sessions: %w", protocol.Errorf(protocol.CodeNotFound, "Space %s is not open", p.SpaceID)))
		return
	}
	b.nextID++
	view := protocol.SessionView{SpaceID: p.SpaceID, SessionID: protocol.ID("session-" + strconv.Itoa(b.nextID)), Runtime: protocol.RuntimeUnloaded}
	b.publish(protocol.Change{Type: protocol.ChangeSession, Session: &view})
	call.Reply(view)
}

func (c *conn) plainCall(call *server.Call) {
	b := c.backend
	switch call.Method {
	case protocol.SpaceList.Name:
		call.Reply(b.state.Spaces)
	case protocol.ConnectionList.Name:
		call.Reply([]protocol.ModelConnection{})
	case protocol.ClientDetach.Name:
		call.Reply(nil)
		for other := range b.conns {
			if other.host == c.host {
				other.detached = true
				other.peer.Close(rpc.CodeNormal, "detached")
			}
		}
	default:
		call.Fail(fmt.Errorf("nothing behind %s", call.Method))
	}
}

// subscription is a source that reads the log of the backend: what a slow reader misses is merged into its next delivery.
type subscription struct {
	backend *Backend
	id      protocol.ID
	scope   protocol.Scope
	asked   *string
	fresh   bool
	over    bool
	sent    int
	cursor  string
}

// Next implements rpc.Source.
func (s *subscription) Next() (string, any, bool) {
	b := s.backend
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.over {
		return "", nil, false
	}
	resumed := false
	if s.fresh {
		s.fresh = false
		if resumed = s.resume(); !resumed {
			s.sent, s.cursor = len(b.log), b.cursor(len(b.log))
			raw, err := protocol.Encode(b.state)
			if err != nil {
				panic(err) // the tests made it
			}
			return protocol.UpdateNotification, protocol.SnapshotUpdate(s.id, s.cursor, raw), true
		}
	}
	var changes []jsontext.Value
	for ; s.sent < len(b.log); s.sent++ {
		if !protocol.Relevant(s.scope, b.log[s.sent]) {
			continue
		}
		raw, err := protocol.Encode(b.log[s.sent])
		if err != nil {
			panic(err) // the tests made it
		}
		changes = append(changes, raw)
	}
	if len(changes) == 0 && !resumed {
		return "", nil, false
	}
	previous := s.cursor
	s.cursor = b.cursor(s.sent)
	return protocol.UpdateNotification, protocol.ChangesUpdate(s.id, previous, s.cursor, changes), true
}

func (s *subscription) resume() bool {
	if s.asked == nil {
		return false
	}
	number, ok := strings.CutPrefix(*s.asked, s.backend.ID+":")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < s.backend.oldest || n > len(s.backend.log) {
		return false
	}
	s.sent, s.cursor = n, *s.asked
	return true
}
