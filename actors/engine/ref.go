package engine

import (
	"context"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// Ref is the address of an actor that takes messages of type M. It stays valid after the actor ended. Safe for concurrent use.
type Ref[M any] struct {
	sys    *System
	pid    *actor.PID
	queued atomic.Int64
	limit  int64
	done   chan struct{}
}

// envelope carries a message. Being our own type, it has no method that the library would interpret, and the library reports
// no undelivered ones (a report would start a goroutine that lives for a second).
type envelope[M any] struct {
	message M
	bounded bool
}

// IgnoreDeadLetterLogging is the library's mark for that.
func (*envelope[M]) IgnoreDeadLetterLogging() {}

// lastMessage ends the actor when it comes to it. The library's own pill would be reported when the actor has just ended.
type lastMessage struct{}

// IgnoreDeadLetterLogging: see envelope.
func (*lastMessage) IgnoreDeadLetterLogging() {}

// Tell sends a message. Errors: ErrBusy when the queue is full, ErrStopped, ErrNilMessage.
func (r *Ref[M]) Tell(m M) error {
	if r.queued.Add(1) > r.limit {
		r.queued.Add(-1)
		return ErrBusy
	}
	err := r.send(m, true)
	if err != nil {
		r.queued.Add(-1)
	}
	return err
}

// Post sends a fact that must not be refused for a full queue; the sender bounds how many it sends. Errors: ErrStopped,
// ErrNilMessage.
func (r *Ref[M]) Post(m M) error { return r.send(m, false) }

func (r *Ref[M]) send(m M, bounded bool) error {
	if any(m) == nil {
		return ErrNilMessage
	}
	return r.deliver(&envelope[M]{message: m, bounded: bounded})
}

func (r *Ref[M]) deliver(m any) error {
	select {
	case <-r.done:
		return ErrStopped
	default:
	}
	r.sys.as.Root.Send(r.pid, m)
	return nil
}

// Done is closed when the actor has ended and its last worker returned.
func (r *Ref[M]) Done() <-chan struct{} { return r.done }

// Stop ends the actor after the messages that it received before, and waits for Done. When ctx ends first the actor is stopped
// without handling them and ctx's error is returned at once.
func (r *Ref[M]) Stop(ctx context.Context) error {
	select {
	case <-r.done:
		return nil
	default:
	}
	r.sys.as.Root.Send(r.pid, &lastMessage{})
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		r.sys.as.Root.Stop(r.pid)
		return ctx.Err()
	}
}

// Reply is the way back of a message that wants an answer of type R. Embed it in the message. The first Send or Fail counts,
// later ones are ignored; both may be called from any goroutine, once or never. The zero Reply takes answers and drops them.
type Reply[R any] struct {
	ch chan result[R]
}

type result[R any] struct {
	value R
	err   error
}

// Send answers.
func (r Reply[R]) Send(value R) { r.put(result[R]{value: value}) }

// Fail answers with an error.
func (r Reply[R]) Fail(err error) { r.put(result[R]{err: err}) }

// Done answers with an error when there is one, else with value.
func (r Reply[R]) Done(value R, err error) { r.put(result[R]{value, err}) }

func (r Reply[R]) put(v result[R]) {
	select {
	case r.ch <- v:
	default: // a second answer, or nobody asked
	}
}

// failer is what every message with an embedded Reply is.
type failer interface{ Fail(error) }

// Ask sends the message that build makes around a Reply and waits for the answer. It must not be called inside Receive.
// Errors: those of Tell, ErrStopped when the actor ends without an answer, ctx's error, and what the actor answered.
func Ask[M, R any](ctx context.Context, to *Ref[M], build func(Reply[R]) M) (R, error) {
	reply := Reply[R]{ch: make(chan result[R], 1)}
	var none R
	if err := to.Tell(build(reply)); err != nil {
		return none, err
	}
	select {
	case v := <-reply.ch:
		return v.value, v.err
	case <-ctx.Done():
		return none, ctx.Err()
	case <-to.done:
		select {
		case v := <-reply.ch:
			return v.value, v.err
		default:
			return none, ErrStopped
		}
	}
}
