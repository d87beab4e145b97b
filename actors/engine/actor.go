package engine

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Actor handles messages of type M, usually an interface that the actor's messages implement.
type Actor[M any] interface {
	Receive(c *Context[M], m M)
}

// Started is implemented by an actor that wants to act before its first message.
type Started[M any] interface{ Started(c *Context[M]) }

// Stopped is implemented by an actor that wants to act when it has ended: its children and its work are over before. Work that
// never returns keeps it from being called.
type Stopped interface{ Stopped() }

// Panicked is implemented by an actor that can go on after a panic in Receive. It repairs or rebuilds the state and returns
// true, or false to stop.
type Panicked[M any] interface {
	Panicked(c *Context[M], err *PanicError) bool
}

// Idle is implemented by an actor with Options.Idle: called when no message came for that long.
type Idle[M any] interface{ Idle(c *Context[M]) }

// Options of Spawn.
type Options struct {
	Name    string        // for the log
	Queue   int           // how many told messages may wait; 0: 1024, some hundred kilobytes of small messages
	Workers int           // how much work runs at once, the rest waits in order; 0: 4, so that one actor cannot take the machine
	Idle    time.Duration // 0: never
}

const (
	defaultQueue   = 1024
	defaultWorkers = 4
	// panicLimit in panicWindow: an actor that fails more often will not get better by itself.
	panicLimit  = 3
	panicWindow = time.Minute
)

// Spawn starts an actor below parent. Errors: ErrStopped when the system is stopping.
func Spawn[M any](parent Parent, opts Options, a Actor[M]) (*Ref[M], error) {
	if opts.Queue == 0 {
		opts.Queue = defaultQueue
	}
	if opts.Workers == 0 {
		opts.Workers = defaultWorkers
	}
	sys := parent.system()
	ref := &Ref[M]{sys: sys, limit: int64(opts.Queue), done: make(chan struct{})}
	c := &Context[M]{ref: ref, opts: opts, log: sys.log.With("actor", opts.Name), actor: a}
	c.life, c.end = context.WithCancel(context.Background())
	props := actor.PropsFromFunc(c.receive,
		actor.WithSupervisor(actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })),
		actor.WithOnInit(func(ac actor.Context) { ref.pid = ac.Self() }))
	if err := parent.register(ref); err != nil {
		return nil, err
	}
	if _, err := parent.start(props); err != nil {
		return nil, err
	}
	return ref, nil
}

// Context is an actor's view of the engine; use it only inside the actor's own methods.
type Context[M any] struct {
	ref   *Ref[M]
	opts  Options
	log   *slog.Logger
	actor Actor[M]

	life context.Context
	end  context.CancelFunc

	ac      actor.Context // while a message is handled
	idle    *time.Timer
	panics  []time.Time
	running int
	waiting []func()
	workers sync.WaitGroup

	children []stopper
}

// Self returns the actor's address.
func (c *Context[M]) Self() *Ref[M] { return c.ref }

// Log returns the actor's logger.
func (c *Context[M]) Log() *slog.Logger { return c.log }

// Stop ends the actor after the present message.
func (c *Context[M]) Stop() { c.ac.Stop(c.ac.Self()) }

// Lifetime returns a context that ends with the actor.
func (c *Context[M]) Lifetime() context.Context { return c.life }

func (c *Context[M]) system() *System { return c.ref.sys }

func (c *Context[M]) start(props *actor.Props) (*actor.PID, error) {
	return c.ac.SpawnPrefix(props, "c"), nil
}

func (c *Context[M]) register(child stopper) error {
	c.children = append(alive(c.children), child)
	return nil
}

// Go runs work on a worker goroutine; its result is received as a message, ahead of nothing that came before it. A panic in work
// is logged and the message is what failed returns. The work's context ends with the actor; the result is then dropped.
func (c *Context[M]) Go(work func(ctx context.Context) M, failed func(*PanicError) M) {
	run := func() {
		c.workers.Go(func() {
			m := guard(c, work, failed)
			_ = c.ref.deliver(&workDone[M]{m}) // the actor may have ended: then nobody wants the result
		})
	}
	if c.running == c.opts.Workers {
		c.waiting = append(c.waiting, run)
		return
	}
	c.running++
	run()
}

func guard[M any](c *Context[M], work func(context.Context) M, failed func(*PanicError) M) (m M) {
	defer func() {
		if v := recover(); v != nil {
			err := &PanicError{Value: v, Stack: debug.Stack()}
			c.log.Error("panic in work", "value", v, "stack", string(err.Stack))
			m = failed(err)
		}
	}()
	return work(c.life)
}

type workDone[M any] struct{ message M }

// IgnoreDeadLetterLogging: see envelope.
func (*workDone[M]) IgnoreDeadLetterLogging() {}

type idleTick struct{}

// IgnoreDeadLetterLogging: see envelope.
func (*idleTick) IgnoreDeadLetterLogging() {}

func (c *Context[M]) receive(ac actor.Context) {
	c.ac = ac
	switch m := ac.Message().(type) {
	case *actor.Started:
		c.armIdle()
		if s, ok := c.actor.(Started[M]); ok {
			c.protect(nil, func() { s.Started(c) })
		}
	case *envelope[M]:
		if m.bounded {
			c.ref.queued.Add(-1)
		}
		c.handle(m.message)
	case *workDone[M]:
		c.running--
		if len(c.waiting) > 0 {
			next := c.waiting[0]
			c.waiting = c.waiting[1:]
			c.running++
			next()
		}
		if any(m.message) != nil {
			c.handle(m.message)
		}
	case *idleTick:
		c.armIdle()
		if i, ok := c.actor.(Idle[M]); ok {
			c.protect(nil, func() { i.Idle(c) })
		}
	case *lastMessage:
		c.Stop()
	case *actor.Stopped:
		c.stopped()
	}
}

func (c *Context[M]) handle(m M) {
	c.armIdle()
	c.protect(m, func() { c.actor.Receive(c, m) })
}

func (c *Context[M]) armIdle() {
	if c.opts.Idle == 0 {
		return
	}
	if c.idle == nil {
		c.idle = time.AfterFunc(c.opts.Idle, func() { _ = c.ref.deliver(&idleTick{}) })
		return
	}
	c.idle.Reset(c.opts.Idle)
}

// protect runs a handler and deals with its panic: log, fail the message's reply, ask the actor whether it can go on.
func (c *Context[M]) protect(message any, handler func()) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		err := &PanicError{Value: v, Stack: debug.Stack()}
		c.log.Error("panic in actor", "value", v, "stack", string(err.Stack))
		if f, ok := message.(failer); ok {
			f.Fail(err)
		}
		if !c.goOn(err) {
			c.Stop()
		}
	}()
	handler()
}

func (c *Context[M]) goOn(err *PanicError) (ok bool) {
	p, can := c.actor.(Panicked[M])
	if !can {
		return false
	}
	now := time.Now()
	for len(c.panics) > 0 && now.Sub(c.panics[0]) > panicWindow {
		c.panics = c.panics[1:]
	}
	c.panics = append(c.panics, now)
	if len(c.panics) > panicLimit {
		c.log.Error("actor panics too often and is stopped", "times", len(c.panics))
		return false
	}
	defer func() {
		if v := recover(); v != nil {
			c.log.Error("panic while recovering an actor", "value", v, "stack", string(debug.Stack()))
			ok = false
		}
	}()
	return p.Panicked(c, err)
}

func (c *Context[M]) stopped() {
	if c.idle != nil {
		c.idle.Stop()
	}
	c.end()
	c.waiting = nil
	go func() {
		defer close(c.ref.done)
		c.workers.Wait()
		for _, child := range c.children {
			<-child.Done()
		}
		s, ok := c.actor.(Stopped)
		if !ok {
			return
		}
		defer func() {
			if v := recover(); v != nil {
				c.log.Error("panic in a stopped actor", "value", v, "stack", string(debug.Stack()))
			}
		}()
		s.Stopped()
	}()
}
