package actors

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/repa-app/repa/actors/engine"
	"github.com/repa-app/repa/actors/feed"
	"github.com/repa-app/repa/agent/connection"
	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/rpc"
	"github.com/repa-app/repa/protocol/server"
	"github.com/repa-app/repa/space/content"
	"github.com/repa-app/repa/space/grant"
	"github.com/repa-app/repa/space/watch"
)

// Clock tells the wall-clock time that goes into records and file names.
type Clock interface{ Now() time.Time }

// Options of New. Log and Random are required.
type Options struct {
	Log            *slog.Logger
	Random         io.Reader // ids; one source, so that a whole backend can run under a seed
	Clock          Clock     // nil: the system's
	HTTP           *http.Client
	ConnectionFile string // named to whoever finds a space in use
	PID            int
	// ExitWhenDetached lets the backend end IdleExit after the last front end left, when nothing runs.
	ExitWhenDetached bool
	IdleExit         time.Duration // 0: 60 s, so that the next command finds it running
	SessionIdle      time.Duration // 0: 5 minutes; after that a session is unloaded
	MaxTurns         int           // of one run; 0: the agent's default
	// Store is how the spaces' stores are opened; Rate 0 stands for one that leaves the disk to the learner.
	Store cas.Options
	// SpaceIdle is after how long without a message a space may tidy up. 0: 10 s, so that it happens before IdleExit.
	SpaceIdle time.Duration
	// Config is the application's folder of settings, with the grants of reading outside of spaces; "": nothing outside is read.
	Config string
	// Default is the model of a submission that names none; the zero value is the built-in one.
	Default connection.Bound
}

const (
	idleExit  = 60 * time.Second
	spaceIdle = 10 * time.Second
	// storeRate bounds what collections read: 32 MiB a second are some hundredths of what a disk of today gives, and collect a full pack
	// of 64 MiB in two seconds.
	storeRate   = 32 << 20
	unloadAfter = 5 * time.Minute
	hostGrace   = 3 * time.Second // fixed by protocol version 1: a page that reloads is the same host
	// stopGrace is how long teardown waits for work that does not end. What is cut is found as interrupted at the next start.
	stopGrace = 10 * time.Second
)

// Backend is the whole application behind the protocol. It implements server.Backend and is safe for concurrent use.
type Backend struct {
	opts   Options
	id     string
	system *engine.System
	feed   *feed.Feed
	log    *slog.Logger

	watcher *watch.Watcher
	grants  content.Grants // nil: nothing outside is read
	holding sync.Mutex     // one hold is made at a time, so that a repeated id finds the first

	lifecycle   atomic.Value // protocol.Lifecycle, written by the coordinator
	active      activity
	coordinator *engine.Ref[coordinatorMessage]
	quit        chan struct{} // closed by the coordinator when the backend may end
}

// New starts a backend with no spaces open.
func New(opts Options) (*Backend, error) {
	if opts.Clock == nil {
		opts.Clock = systemClock{}
	}
	if opts.IdleExit == 0 {
		opts.IdleExit = idleExit
	}
	if opts.SessionIdle == 0 {
		opts.SessionIdle = unloadAfter
	}
	if opts.SpaceIdle == 0 {
		opts.SpaceIdle = spaceIdle
	}
	if opts.Store.Rate == 0 {
		opts.Store.Rate = storeRate
	}
	if opts.Default.Model == "" {
		opts.Default = connection.Bound{Lent: connection.Offline(), Model: connection.OfflineModel}
	}
	b := &Backend{opts: opts, log: opts.Log, system: engine.NewSystem(opts.Log), quit: make(chan struct{})}
	b.id = string(b.newID())
	b.feed = feed.New(b.id, opts.Log)
	if opts.Config != "" {
		b.grants = grant.New(opts.Config)
	}
	b.watcher = watch.New(watch.Options{Log: opts.Log})
	b.lifecycle.Store(protocol.LifecycleRunning)
	c := &coordinator{backend: b, spaces: map[protocol.ID]*openSpace{}, paths: map[string]*opening{}, hosts: map[protocol.ID]*connectedHost{}}
	var err error
	b.coordinator, err = engine.Spawn[coordinatorMessage](b.system, engine.Options{Name: "coordinator", Workers: spaceOpeners}, c)
	if err != nil {
		return nil, errors.Join(err, b.watcher.Close())
	}
	b.active.ended = func() { _ = b.coordinator.Post(activityEnded{}) } // a stopped coordinator needs no news
	return b, nil
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

// newID mints an id that sorts by time (UUID version 7).
func (b *Backend) newID() protocol.ID {
	id, err := uuid.NewV7FromReader(b.opts.Random)
	if err != nil {
		panic("random source ended: " + err.Error()) // nothing can be named any more
	}
	return protocol.ID(id.String())
}

func (b *Backend) now() protocol.Millis { return protocol.MillisOf(b.opts.Clock.Now()) }

// ServerID implements server.Backend.
func (b *Backend) ServerID() string { return b.id }

// Connect implements server.Backend.
func (b *Backend) Connect(peer *rpc.Peer, host server.HostIdentity) server.Conn {
	return newConn(b, peer, host.ID)
}

func (b *Backend) state() protocol.Lifecycle { return b.lifecycle.Load().(protocol.Lifecycle) }

// gate refuses what the lifecycle does not allow.
func (b *Backend) gate(g protocol.Gate) error {
	state := b.state()
	switch {
	case g == protocol.GateOpen && state == protocol.LifecycleStopped:
		return protocol.Errorf(protocol.CodeClosed, "the backend has ended")
	case g == protocol.GateRunning && state != protocol.LifecycleRunning:
		return errShuttingDown
	}
	return nil
}

var errShuttingDown = protocol.Errorf(protocol.CodeShuttingDown, "the backend is shutting down and takes no new work; start it again")

// Shutdown begins the end: drain lets runs finish, cancel ends them. It returns at once; repeating it is harmless, and cancel
// after drain counts.
func (b *Backend) Shutdown(mode protocol.ShutdownMode) {
	_ = b.coordinator.Post(shutdownRequested{mode}) // a stopped coordinator has shut down
}

// Run waits until the backend may end and tears it down: spaces are closed with everything durable. When ctx ends first, runs
// are cancelled. It must be called once; the server that connects front ends is shut down after it.
func (b *Backend) Run(ctx context.Context) error {
	select {
	case <-b.quit:
	case <-ctx.Done():
		b.Shutdown(protocol.ShutdownCancel)
		<-b.quit
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	err := b.coordinator.Stop(stop)
	b.lifecycle.Store(protocol.LifecycleStopped)
	b.feed.Publish(protocol.Change{Type: protocol.ChangeLifecycle, Lifecycle: protocol.LifecycleStopped})
	return err
}

// Close ends what is left after Run and the server's shutdown.
func (b *Backend) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	return errors.Join(b.system.Stop(ctx), b.watcher.Close())
}

// activity counts what keeps the backend from ending: runs, and calls that are being answered.
type activity struct {
	n     atomic.Int64
	ended func()
}

func (a *activity) begin() { a.n.Add(1) }

func (a *activity) end() {
	if a.n.Add(-1) == 0 {
		a.ended()
	}
}

func (a *activity) idle() bool { return a.n.Load() == 0 }

var errPanic = errors.New("internal error; the log has the details")
