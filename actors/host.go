package actors

import (
	"context"
	"time"

	"github.com/repa-app/repa/actors/engine"
	"github.com/repa-app/repa/agent/connection"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/server"
)

// hostMessage is what a host receives.
type hostMessage interface{ forHost() }

type (
	// socketOpened: one more socket of this host.
	socketOpened struct{ conn *conn }
	// socketClosed: a socket is gone.
	socketClosed struct{ conn *conn }
	// detachRequested: the host says that it leaves.
	detachRequested struct{ call *server.Call }
	// leaveHost: nobody finds this host any more.
	leaveHost struct{}
	// graceOver: the time to come back is over, unless somebody did.
	graceOver struct{ generation int }
	// lendConnection hands over a key.
	lendConnection struct {
		engine.Reply[protocol.ID]
		params protocol.LendParams
	}
	// findConnection asks for a connection that this host may use.
	findConnection struct {
		engine.Reply[connection.Lent]
		id protocol.ID
	}
	// listConnections asks for all of them.
	listConnections struct {
		engine.Reply[[]connection.Lent]
	}
)

func (socketOpened) forHost()    {}
func (socketClosed) forHost()    {}
func (detachRequested) forHost() {}
func (leaveHost) forHost()       {}
func (graceOver) forHost()       {}
func (lendConnection) forHost()  {}
func (findConnection) forHost()  {}
func (listConnections) forHost() {}

const (
	closeDetached = 1000
	closeStopped  = 1000
	// maxLent bounds the connections one host lends: one for each key and endpoint that a learner has, with room to spare.
	maxLent = 64
)

// host is a front end: its sockets and the connections it lent. Everything it lent ends with it.
type host struct {
	backend    *Backend
	id         protocol.ID
	sockets    map[*conn]bool
	lent       []connection.Lent
	opened     int // sockets so far
	generation int // of the grace timer
	grace      *time.Timer
}

func newHost(b *Backend, id protocol.ID) *host {
	return &host{backend: b, id: id, sockets: map[*conn]bool{}}
}

// Stopped implements engine.Stopped.
func (h *host) Stopped() {
	if h.grace != nil {
		h.grace.Stop()
	}
}

// Receive implements engine.Actor.
func (h *host) Receive(ctx *engine.Context[hostMessage], m hostMessage) {
	switch m := m.(type) {
	case socketOpened:
		h.generation++
		h.opened++
		h.sockets[m.conn] = true
		if m.conn.gone.Load() {
			h.closed(ctx, m.conn) // it closed before we heard of it
		}
	case socketClosed:
		h.closed(ctx, m.conn)
	case detachRequested:
		m.call.Reply(nil) // before its socket is closed
		for c := range h.sockets {
			c.detached.Store(true)
			c.peer.Close(closeDetached, "detached")
		}
		ctx.Stop()
	case leaveHost:
		ctx.Stop()
	case graceOver:
		if m.generation == h.generation && len(h.sockets) == 0 {
			_ = h.backend.coordinator.Post(hostIdle{h.id, ctx.Self(), h.opened}) // a stopped coordinator has no hosts
		}
	case lendConnection:
		m.Done(h.lend(m.params))
	case findConnection:
		for _, l := range append(h.lent, connection.Offline()) {
			if l.ID == string(m.id) {
				m.Send(l)
				return
			}
		}
		m.Fail(connection.NotFound(string(m.id)))
	case listConnections:
		m.Send(append([]connection.Lent{connection.Offline()}, h.lent...))
	}
}

func (h *host) closed(ctx *engine.Context[hostMessage], c *conn) {
	if !h.sockets[c] {
		return
	}
	delete(h.sockets, c)
	if len(h.sockets) > 0 {
		return
	}
	h.generation++
	due := graceOver{h.generation}
	self := ctx.Self()
	h.grace = time.AfterFunc(hostGrace, func() { _ = self.Post(due) }) // a host that ended has left
}

func (h *host) lend(p protocol.LendParams) (protocol.ID, error) {
	l, err := connection.Lend(string(h.backend.newID()), connection.Provider(p.Provider), p.BaseURL, p.Secret)
	if err != nil {
		return "", err
	}
	for _, old := range h.lent {
		if old.Same(l) {
			return protocol.ID(old.ID), nil
		}
	}
	if len(h.lent) == maxLent {
		return "", protocol.Errorf(protocol.CodeBusy, "this front end has lent %d connections, more are not kept", maxLent)
	}
	h.lent = append(h.lent, l)
	return protocol.ID(l.ID), nil
}

// askHost asks the actor of a host.
func askHost[R any](ctx context.Context, b *Backend, id protocol.ID, build func(engine.Reply[R]) hostMessage) (R, error) {
	ref, err := engine.Ask(ctx, b.coordinator, func(r engine.Reply[*engine.Ref[hostMessage]]) coordinatorMessage {
		return findHost{r, id}
	})
	if err != nil {
		var none R
		return none, err
	}
	return engine.Ask(ctx, ref, build)
}
