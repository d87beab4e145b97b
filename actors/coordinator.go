package actors

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/repa-app/repa/actors/engine"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/server"
	"github.com/repa-app/repa/space"
)

// spaceOpeners is how many spaces are opened at once; opening reads files, more would only queue at the disk.
const spaceOpeners = 4

// coordinatorMessage is what the coordinator receives.
type coordinatorMessage interface{ forCoordinator() }

type (
	// openSpaceRequest asks for the folder at Path to be open.
	openSpaceRequest struct {
		engine.Reply[protocol.Space]
		path string
	}
	// spaceLoaded: a worker opened a folder, or did not.
	spaceLoaded struct {
		path   string
		loaded *loadedSpace
		err    error
	}
	// findSpace asks for an open space.
	findSpace struct {
		engine.Reply[*openSpace]
		id protocol.ID
	}
	// listSpaces asks for all open spaces.
	listSpaces struct {
		engine.Reply[[]*openSpace]
	}
	// hostConnected: a socket of a host was opened.
	hostConnected struct{ conn *conn }
	// socketGone: a socket was closed.
	socketGone struct{ conn *conn }
	// hostDetached: a host said over a socket that it leaves; the call is answered when nobody finds it any more.
	hostDetached struct {
		conn *conn
		call *server.Call
	}
	// findHost asks for the actor of a host.
	findHost struct {
		engine.Reply[*engine.Ref[hostMessage]]
		host protocol.ID
	}
	// hostIdle: the last of so many sockets of a host has been gone for the grace period.
	hostIdle struct {
		host   protocol.ID
		ref    *engine.Ref[hostMessage]
		opened int
	}
	// shutdownRequested begins the end.
	shutdownRequested struct{ mode protocol.ShutdownMode }
	// shutdownOverdue: what was cancelled had time enough to end.
	shutdownOverdue struct{}
	// activityEnded: nothing runs at the moment.
	activityEnded struct{}
	// idleExitDue: the time without front ends is over, unless one came back since.
	idleExitDue struct{ generation int }
)

func (openSpaceRequest) forCoordinator()  {}
func (spaceLoaded) forCoordinator()       {}
func (findSpace) forCoordinator()         {}
func (listSpaces) forCoordinator()        {}
func (hostConnected) forCoordinator()     {}
func (socketGone) forCoordinator()        {}
func (hostDetached) forCoordinator()      {}
func (findHost) forCoordinator()          {}
func (hostIdle) forCoordinator()          {}
func (shutdownRequested) forCoordinator() {}
func (shutdownOverdue) forCoordinator()   {}
func (activityEnded) forCoordinator()     {}
func (idleExitDue) forCoordinator()       {}

// openSpace is an open space as others address it.
type openSpace struct {
	info protocol.Space
	ref  *engine.Ref[spaceMessage]
}

// opening is a folder that is being opened.
type opening struct {
	waiting []engine.Reply[protocol.Space]
}

// connectedHost is a host as the coordinator knows it.
type connectedHost struct {
	ref    *engine.Ref[hostMessage]
	opened int // sockets so far
}

// coordinator owns which spaces are open, which hosts are there, and the lifecycle.
type coordinator struct {
	backend *Backend
	spaces  map[protocol.ID]*openSpace
	paths   map[string]*opening
	hosts   map[protocol.ID]*connectedHost

	explicit   bool // shutdown was asked for: nobody's return changes that
	idleTimer  *time.Timer
	generation int // of the idle timer
	overdue    *time.Timer
	ending     bool
}

// Started implements engine.Started.
func (c *coordinator) Started(ctx *engine.Context[coordinatorMessage]) { c.armIdleExit(ctx) }

// Stopped implements engine.Stopped.
func (c *coordinator) Stopped() {
	for _, timer := range []*time.Timer{c.idleTimer, c.overdue} {
		if timer != nil {
			timer.Stop()
		}
	}
}

// Panicked implements engine.Panicked: the state is maps that every handler leaves whole.
func (c *coordinator) Panicked(*engine.Context[coordinatorMessage], *engine.PanicError) bool {
	return true
}

// Receive implements engine.Actor.
func (c *coordinator) Receive(ctx *engine.Context[coordinatorMessage], m coordinatorMessage) {
	switch m := m.(type) {
	case openSpaceRequest:
		c.open(ctx, m)
	case spaceLoaded:
		c.loaded(ctx, m)
	case findSpace:
		if s := c.live(m.id); s != nil {
			m.Send(s)
		} else {
			m.Fail(protocol.Errorf(protocol.CodeNotFound, "no space with id %s is open; open its folder first", m.id))
		}
	case listSpaces:
		var all []*openSpace
		for id := range c.spaces {
			if s := c.live(id); s != nil {
				all = append(all, s)
			}
		}
		m.Send(all)
	case hostConnected:
		c.connected(ctx, m)
	case socketGone:
		if h := c.hosts[m.conn.host]; h != nil {
			_ = h.ref.Post(socketClosed(m)) // a host that ended has forgotten its sockets
		}
	case hostDetached:
		c.detach(ctx, m)
	case findHost:
		if h := c.hosts[m.host]; h != nil {
			m.Send(h.ref)
		} else {
			m.Fail(protocol.Errorf(protocol.CodeClosed, "this host has detached; open a new connection to go on"))
		}
	case hostIdle:
		// A socket that the host has not heard of yet keeps it.
		if h := c.hosts[m.host]; h != nil && h.ref == m.ref && h.opened == m.opened {
			delete(c.hosts, m.host)
			_ = m.ref.Post(leaveHost{}) // ended already
			c.armIdleExit(ctx)
		}
	case shutdownRequested:
		c.shutdown(ctx, m.mode)
	case shutdownOverdue:
		if !c.ending {
			ctx.Log().Warn("work that was cancelled does not end; it will be found as interrupted")
			c.end()
		}
	case activityEnded:
		c.endIfDone()
	case idleExitDue:
		if m.generation == c.generation && len(c.hosts) == 0 {
			c.setLifecycle(protocol.LifecycleDraining)
			c.endIfDone()
		}
	}
}

// live returns an open space, forgetting it when its actor has ended.
func (c *coordinator) live(id protocol.ID) *openSpace {
	s := c.spaces[id]
	if s == nil {
		return nil
	}
	select {
	case <-s.ref.Done():
		delete(c.spaces, id)
		c.backend.feed.RemoveSpace(id)
		return nil
	default:
		return s
	}
}

func (c *coordinator) open(ctx *engine.Context[coordinatorMessage], m openSpaceRequest) {
	path, err := space.Resolve(m.path)
	if err != nil {
		m.Fail(err)
		return
	}
	for id, s := range c.spaces {
		if s.info.Path == path && c.live(id) != nil && sameFolder(path, s) {
			m.Send(s.info)
			return
		}
	}
	if o := c.paths[path]; o != nil {
		o.waiting = append(o.waiting, m.Reply)
		return
	}
	c.paths[path] = &opening{waiting: []engine.Reply[protocol.Space]{m.Reply}}
	c.backend.active.begin()
	ctx.Go(func(work context.Context) coordinatorMessage {
		loaded, err := loadSpace(work, c.backend, path)
		return spaceLoaded{path, loaded, err}
	}, func(err *engine.PanicError) coordinatorMessage { return spaceLoaded{path: path, err: err} })
}

// sameFolder reports whether the folder at path still is the open space: it may have been moved away and another made there.
func sameFolder(path string, s *openSpace) bool {
	_, err := os.Stat(filepath.Join(path, space.MetaFolder))
	return err == nil
}

func (c *coordinator) loaded(ctx *engine.Context[coordinatorMessage], m spaceLoaded) {
	defer c.backend.active.end()
	o := c.paths[m.path]
	delete(c.paths, m.path)
	info, err := c.adopt(ctx, m)
	for _, reply := range o.waiting {
		reply.Done(info, err)
	}
}

// adopt makes a loaded space an actor.
func (c *coordinator) adopt(ctx *engine.Context[coordinatorMessage], m spaceLoaded) (protocol.Space, error) {
	if m.err != nil {
		return protocol.Space{}, m.err
	}
	id := protocol.ID(m.loaded.space.ID())
	if other := c.live(id); other != nil {
		m.loaded.close(ctx.Log())
		return protocol.Space{}, protocol.Errorf(protocol.CodeSpaceIdentityConflict,
			"%s is a copy of the open space %s and has the same identity; remove %s in the copy to make it a space of its own",
			m.path, other.info.Path, filepath.Join(m.path, space.MetaFolder))
	}
	info := protocol.Space{ID: id, Path: m.path}
	c.backend.feed.Publish(protocol.Change{Type: protocol.ChangeSpace, Space: &info})
	ref, err := engine.Spawn[spaceMessage](ctx, engine.Options{Name: "space " + string(id), Queue: spaceQueue, Idle: c.backend.opts.SpaceIdle}, newSpace(c.backend, info, m.loaded))
	if err != nil {
		m.loaded.close(ctx.Log())
		return protocol.Space{}, err
	}
	c.spaces[id] = &openSpace{info: info, ref: ref}
	return info, nil
}

func (c *coordinator) connected(ctx *engine.Context[coordinatorMessage], m hostConnected) {
	c.generation++ // whoever comes back ends the wait for the idle exit
	if c.idleTimer != nil {
		c.idleTimer.Stop()
	}
	if c.backend.state() == protocol.LifecycleDraining && !c.explicit && !c.ending {
		c.setLifecycle(protocol.LifecycleRunning)
	}
	h := c.hosts[m.conn.host]
	if h == nil {
		ref, err := engine.Spawn[hostMessage](ctx, engine.Options{Name: "host " + string(m.conn.host), Workers: 1}, newHost(c.backend, m.conn.host))
		if err != nil {
			m.conn.peer.Close(closeStopped, "backend stopped")
			return
		}
		h = &connectedHost{ref: ref}
		c.hosts[m.conn.host] = h
	}
	h.opened++
	if err := h.ref.Post(socketOpened(m)); err != nil {
		m.conn.peer.Close(closeStopped, "backend stopped")
	}
}

// detach forgets a host before it is told: whoever comes with its key from now on is a new host.
func (c *coordinator) detach(ctx *engine.Context[coordinatorMessage], m hostDetached) {
	h := c.hosts[m.conn.host]
	delete(c.hosts, m.conn.host)
	if h == nil || h.ref.Post(detachRequested{m.call}) != nil {
		m.call.Reply(nil) // the host is gone already
		m.conn.peer.Close(closeDetached, "detached")
	}
	c.armIdleExit(ctx)
}

func (c *coordinator) armIdleExit(ctx *engine.Context[coordinatorMessage]) {
	if !c.backend.opts.ExitWhenDetached || len(c.hosts) > 0 {
		return
	}
	c.generation++
	due := idleExitDue{c.generation}
	self := ctx.Self()
	c.idleTimer = time.AfterFunc(c.backend.opts.IdleExit, func() { _ = self.Post(due) }) // stopped means ended anyway
}

func (c *coordinator) setLifecycle(l protocol.Lifecycle) {
	if c.backend.state() == l {
		return
	}
	c.backend.lifecycle.Store(l)
	c.backend.feed.Publish(protocol.Change{Type: protocol.ChangeLifecycle, Lifecycle: l})
}

func (c *coordinator) shutdown(ctx *engine.Context[coordinatorMessage], mode protocol.ShutdownMode) {
	c.explicit = true
	switch {
	case mode == protocol.ShutdownCancel:
		c.setLifecycle(protocol.LifecycleStopping)
		if c.overdue == nil {
			self := ctx.Self()
			c.overdue = time.AfterFunc(stopGrace, func() { _ = self.Post(shutdownOverdue{}) }) // stopped means ended anyway
		}
		for _, s := range c.spaces {
			_ = s.ref.Post(cancelRuns{}) // a space that ended has no runs
		}
	case c.backend.state() == protocol.LifecycleRunning:
		c.setLifecycle(protocol.LifecycleDraining)
	}
	c.endIfDone()
}

// endIfDone lets Backend.Run go on when the end was begun and nothing runs any more.
func (c *coordinator) endIfDone() {
	if c.ending || c.backend.state() == protocol.LifecycleRunning || !c.backend.active.idle() {
		return
	}
	c.end()
}

func (c *coordinator) end() {
	c.ending = true
	close(c.backend.quit)
}
