package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	cmap "github.com/orcaman/concurrent-map"
)

// Errors of sending and asking.
var (
	// ErrBusy: the actor's queue is full; the message was not taken. Try again later.
	ErrBusy = errors.New("busy: too many messages wait")
	// ErrStopped: the actor has ended; the message may not have been handled.
	ErrStopped = errors.New("actor has stopped")
	// ErrNilMessage: a nil message was refused.
	ErrNilMessage = errors.New("nil message")
)

// PanicError is what a recovered panic becomes.
type PanicError struct {
	Value any
	Stack []byte
}

// Error implements error; it leaves out the stack, which is logged.
func (e *PanicError) Error() string { return fmt.Sprintf("internal error: %v", e.Value) }

// System holds the actors of a process. Its methods are safe for concurrent use.
type System struct {
	as  *actor.ActorSystem
	log *slog.Logger

	mu       sync.Mutex
	roots    []stopper // in the order they were spawned
	stopping bool
}

type stopper interface {
	Stop(ctx context.Context) error
	Done() <-chan struct{}
}

// oneShard makes each of the library's 1,024 registry maps one map instead of 32: four megabytes and ten milliseconds less at every
// start. The number is a global of the map package, which nothing but the registry uses, and may not change once a map exists.
var oneShard = sync.OnceFunc(func() { cmap.SHARD_COUNT = 1 })

// NewSystem makes a system.
func NewSystem(log *slog.Logger) *System {
	oneShard()
	quiet := func(*actor.ActorSystem) *slog.Logger { return log }
	// A message to an actor that has just ended starts a goroutine in the library that counts such messages for this long.
	const count = time.Millisecond
	return &System{as: actor.NewActorSystem(actor.WithLoggerFactory(quiet), actor.WithDeadLetterThrottleInterval(count)), log: log}
}

// Stop ends the system's root actors, the newest first, each with its children, letting each handle what it has received
// before. When ctx ends first, the rest is stopped without that, and ctx's error is returned. Calling it again is harmless.
func (s *System) Stop(ctx context.Context) error {
	s.mu.Lock()
	roots := s.roots
	s.stopping = true
	s.mu.Unlock()
	var errs []error
	for i := len(roots) - 1; i >= 0; i-- {
		errs = append(errs, roots[i].Stop(ctx))
	}
	return errors.Join(errs...)
}

func (s *System) system() *System { return s }

func (s *System) start(props *actor.Props) (*actor.PID, error) {
	return s.as.Root.SpawnPrefix(props, "a"), nil
}

func (s *System) register(r stopper) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return ErrStopped
	}
	s.roots = append(alive(s.roots), r)
	return nil
}

func alive(actors []stopper) []stopper {
	return slices.DeleteFunc(slices.Clone(actors), func(a stopper) bool {
		select {
		case <-a.Done():
			return true
		default:
			return false
		}
	})
}

// Parent is where an actor is spawned: a *System for a root, a *Context for a child of the actor that spawns.
type Parent interface {
	system() *System
	start(*actor.Props) (*actor.PID, error)
	register(stopper) error
}
