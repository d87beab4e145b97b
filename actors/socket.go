package actors

import (
	"context"
	"sync/atomic"

	"github.com/repa-app/repa/actors/engine"
	"github.com/repa-app/repa/actors/feed"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/rpc"
	"github.com/repa-app/repa/protocol/server"
)

// socketMessage is what a socket receives.
type socketMessage interface{ forSocket() }

type (
	// callReceived: the front end called a method.
	callReceived struct{ call *server.Call }
	// callAnswered: a worker has answered a call.
	callAnswered struct{}
	// watchReady: everything a subscription shows is loaded.
	watchReady struct {
		call   *server.Call
		params protocol.SubscribeParams
		err    error
	}
	// socketEnded: the socket is gone.
	socketEnded struct{}
)

func (callReceived) forSocket() {}

// Fail answers the call of a message whose handling panicked.
func (m callReceived) Fail(err error) { m.call.Fail(err) }

func (callAnswered) forSocket() {}
func (watchReady) forSocket()   {}
func (socketEnded) forSocket()  {}

const (
	// socketWorkers is how many calls of one socket are worked on at once; they mostly wait for other actors.
	socketWorkers = 64
	// maxSubscriptions of one socket: a window watches a handful.
	maxSubscriptions = 256
)

// conn is a socket's side towards the server.
type conn struct {
	backend  *Backend
	peer     *rpc.Peer
	host     protocol.ID
	ref      *engine.Ref[socketMessage]
	detached atomic.Bool
	gone     atomic.Bool
}

func newConn(b *Backend, peer *rpc.Peer, host protocol.ID) server.Conn {
	c := &conn{backend: b, peer: peer, host: host}
	s := &socket{conn: c, watches: map[protocol.ID]*feed.Subscription{}}
	ref, err := engine.Spawn[socketMessage](b.system, engine.Options{Name: "socket", Workers: socketWorkers}, s)
	if err == nil {
		c.ref = ref
		err = b.coordinator.Post(hostConnected{c})
	}
	if err != nil {
		peer.Close(closeStopped, "backend stopped")
	}
	return c
}

// Call implements server.Conn.
func (c *conn) Call(call *server.Call) {
	if c.ref == nil {
		call.Fail(errShuttingDown)
		return
	}
	switch err := c.ref.Tell(callReceived{call}); err {
	case nil:
	case engine.ErrBusy:
		call.Fail(protocol.Errorf(protocol.CodeBusy, "too many calls are waiting; try again when some are answered"))
	default:
		call.Fail(protocol.Errorf(protocol.CodeClosed, "this connection has ended"))
	}
}

// Closed implements server.Conn.
func (c *conn) Closed() {
	c.gone.Store(true)
	if c.ref != nil {
		_ = c.ref.Post(socketEnded{}) // ended already
	}
}

// Detached implements server.Detacher.
func (c *conn) Detached() bool { return c.detached.Load() }

// socket is one connection of a front end: its calls and its subscriptions.
type socket struct {
	conn    *conn
	watches map[protocol.ID]*feed.Subscription
}

// Panicked implements engine.Panicked: the failed call is left unanswered, the others go on.
func (s *socket) Panicked(*engine.Context[socketMessage], *engine.PanicError) bool { return true }

// Stopped implements engine.Stopped.
func (s *socket) Stopped() {
	for _, w := range s.watches {
		w.Close()
	}
}

// Receive implements engine.Actor.
func (s *socket) Receive(ctx *engine.Context[socketMessage], m socketMessage) {
	switch m := m.(type) {
	case callReceived:
		s.call(ctx, m.call)
	case watchReady:
		s.watch(ctx, m)
	case socketEnded:
		_ = s.conn.backend.coordinator.Post(socketGone{s.conn}) // a stopped coordinator knows no sockets
		ctx.Stop()
	}
}

func (s *socket) call(ctx *engine.Context[socketMessage], call *server.Call) {
	b := s.conn.backend
	method, _ := protocol.Lookup(call.Method)
	if err := b.gate(method.Gate); err != nil {
		call.Fail(err)
		return
	}
	switch p := call.Params.(type) {
	case protocol.UnsubscribeParams:
		if w := s.watches[p.ID]; w != nil {
			w.Close()
			delete(s.watches, p.ID)
		}
		call.Reply(nil)
		return
	case protocol.ShutdownParams:
		call.Reply(nil)
		b.Shutdown(p.Mode)
		return
	}
	if call.Method == protocol.ClientDetach.Name {
		s.conn.detached.Store(true)
		if b.coordinator.Post(hostDetached{s.conn, call}) != nil {
			call.Reply(nil) // a stopped coordinator has closed everything
		}
		return
	}
	b.active.begin()
	ctx.Go(func(work context.Context) socketMessage {
		defer b.active.end()
		if p, ok := call.Params.(protocol.SubscribeParams); ok {
			return watchReady{call, p, b.loadScope(work, p.Scope)}
		}
		result, err := b.answer(work, s.conn.host, call)
		if err != nil {
			call.Fail(err)
		} else {
			call.Reply(result)
		}
		return callAnswered{}
	}, func(*engine.PanicError) socketMessage {
		call.Fail(errPanic)
		return callAnswered{}
	})
}

// watch starts a subscription. Its first delivery is queued before the answer.
func (s *socket) watch(ctx *engine.Context[socketMessage], m watchReady) {
	if m.err != nil {
		m.call.Fail(m.err)
		return
	}
	if old := s.watches[m.params.ID]; old != nil {
		old.Close()
		delete(s.watches, m.params.ID)
	}
	if len(s.watches) == maxSubscriptions {
		m.call.Fail(protocol.Errorf(protocol.CodeBusy, "this connection has %d subscriptions; stop one first", maxSubscriptions))
		return
	}
	peer := s.conn.peer
	sub := s.conn.backend.feed.Subscribe(m.params.ID, m.params.Scope, m.params.Cursor, func(w *feed.Subscription) { peer.Push(w) })
	if key := (protocol.SessionKey{SpaceID: m.params.Scope.SpaceID, SessionID: m.params.Scope.SessionID}); key.SessionID != "" && !s.conn.backend.feed.Complete(key) {
		// The session was unloaded just before it was watched. Now that it is watched it stays, once it is loaded again.
		sub.Close()
		s.call(ctx, m.call)
		return
	}
	s.watches[m.params.ID] = sub
	peer.Push(sub)
	m.call.Reply(nil)
}
