package actors

import (
	"context"
	"time"

	"github.com/repa-app/repa/actors/engine"
	"github.com/repa-app/repa/agent/connection"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/server"
	"github.com/repa-app/repa/space"
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
	// holdTaken: the host has a hold from now on. heartbeat: it is still there. holdsRenewed: its holds last again.
	holdTaken struct {
		space *space.Space
		id    protocol.ID
	}
	heartbeat    struct{}
	holdsRenewed struct{}
	// holdsReleased: a host that leaves holds nothing any more.
	holdsReleased struct{}
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
func (holdTaken) forHost()       {}
func (heartbeat) forHost()       {}
func (holdsRenewed) forHost()    {}
func (holdsReleased) forHost()   {}

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
	holds      map[holdTaken]bool
	beat       *time.Timer // runs while there are holds
}

func newHost(b *Backend, id protocol.ID) *host {
	return &host{backend: b, id: id, sockets: map[*conn]bool{}, holds: map[holdTaken]bool{}}
}

// Stopped implements engine.Stopped.
func (h *host) Stopped() {
	for _, t := range []*time.Timer{h.grace, h.beat} {
		if t != nil {
			t.Stop()
		}
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
		h.releaseAll(ctx)
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
	case holdTaken:
		h.holds[m] = true
		h.armBeat(ctx)
	case heartbeat:
		h.renewAll(ctx)
	case holdsRenewed:
		h.beat = nil
		h.armBeat(ctx)
	case holdsReleased:
		ctx.Stop()
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

// armBeat lets the holds be renewed in a while.
func (h *host) armBeat(ctx *engine.Context[hostMessage]) {
	if h.beat == nil && len(h.holds) > 0 {
		self := ctx.Self()
		h.beat = time.AfterFunc(holdBeat, func() { _ = self.Post(heartbeat{}) }) // a host that ended has left
	}
}

// renewAll lets the holds of a host with sockets last on, those that have run half of their time; without sockets they run out.
func (h *host) renewAll(ctx *engine.Context[hostMessage]) {
	var due []holdTaken
	for hold := range h.holds {
		remains, lasts := hold.space.Store().Remains(holdLease(hold.id))
		switch {
		case !lasts:
			delete(h.holds, hold)
		case remains < holdLife/2 && len(h.sockets) > 0:
			due = append(due, hold)
		}
	}
	ctx.Go(func(work context.Context) hostMessage {
		for _, hold := range due {
			if err := hold.space.Store().Renew(work, holdLease(hold.id), holdLife); err != nil && work.Err() == nil {
				h.backend.log.Debug("a hold is not renewed", "hold", hold.id, "error", err)
			}
		}
		return holdsRenewed{}
	}, func(*engine.PanicError) hostMessage { return holdsRenewed{} })
}

// releaseAll ends the holds of a host that leaves, then its actor.
func (h *host) releaseAll(ctx *engine.Context[hostMessage]) {
	holds := h.holds
	h.holds = map[holdTaken]bool{}
	ctx.Go(func(work context.Context) hostMessage {
		for hold := range holds {
			if err := h.backend.endHold(work, hold.space, hold.id); err != nil && work.Err() == nil {
				h.backend.log.Warn("a hold of a front end that left is not ended; it runs out by itself", "hold", hold.id, "error", err)
			}
		}
		return holdsReleased{}
	}, func(*engine.PanicError) hostMessage { return holdsReleased{} })
}
