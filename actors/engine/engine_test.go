package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/repa-app/repa/actors/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func system(t *testing.T) *engine.System {
	t.Helper()
	s := engine.NewSystem(quiet())
	t.Cleanup(func() {
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

// echo is an actor made of functions.
type echo struct {
	receive func(c *engine.Context[any], m any)
	stopped func()
	recover func(*engine.PanicError) bool
	idle    func(c *engine.Context[any])
}

func (e *echo) Receive(c *engine.Context[any], m any) { e.receive(c, m) }
func (e *echo) Stopped() {
	if e.stopped != nil {
		e.stopped()
	}
}
func (e *echo) Panicked(_ *engine.Context[any], err *engine.PanicError) bool {
	return e.recover != nil && e.recover(err)
}
func (e *echo) Idle(c *engine.Context[any]) {
	if e.idle != nil {
		e.idle(c)
	}
}

func spawn(t *testing.T, p engine.Parent, opts engine.Options, e *echo) *engine.Ref[any] {
	t.Helper()
	ref, err := engine.Spawn[any](p, opts, e)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

type question struct {
	engine.Reply[int]
	n int
}

func ask(ref *engine.Ref[any], n int) (int, error) {
	return engine.Ask(ctx, ref, func(r engine.Reply[int]) any { return question{r, n} })
}

func TestAskAndOrder(t *testing.T) {
	var got []int
	ref := spawn(t, system(t), engine.Options{}, &echo{receive: func(_ *engine.Context[any], m any) {
		switch m := m.(type) {
		case int:
			got = append(got, m)
		case question:
			m.Send(len(got))
		}
	}})
	for i := range 500 {
		if err := ref.Tell(i); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := ask(ref, 0); err != nil || n != 500 {
		t.Fatal(n, err)
	}
	for i, v := range got {
		if i != v {
			t.Fatalf("message %d arrived at place %d", v, i)
		}
	}
}

func TestNilMessageIsRefused(t *testing.T) {
	ref := spawn(t, system(t), engine.Options{}, &echo{receive: func(_ *engine.Context[any], m any) { m.(question).Send(1) }})
	if err := ref.Tell(nil); !errors.Is(err, engine.ErrNilMessage) {
		t.Error(err)
	}
	if err := ref.Post(nil); !errors.Is(err, engine.ErrNilMessage) {
		t.Error(err)
	}
	if n, err := ask(ref, 0); n != 1 || err != nil {
		t.Errorf("after a nil message: %d, %v", n, err)
	}
}

func TestFullQueueAnswersBusy(t *testing.T) {
	enter, leave := make(chan struct{}), make(chan struct{})
	var self *engine.Ref[any]
	var count atomic.Int32
	ref := spawn(t, system(t), engine.Options{Queue: 3}, &echo{receive: func(c *engine.Context[any], m any) {
		count.Add(1)
		if m == "block" {
			self = c.Self()
			enter <- struct{}{}
			<-leave
			// An actor that sends to itself while its queue is full must not lock up.
			if err := self.Tell("self"); !errors.Is(err, engine.ErrBusy) {
				t.Errorf("tell to itself when full: %v", err)
			}
			if err := self.Post("fact"); err != nil {
				t.Errorf("post to itself: %v", err)
			}
		}
		if q, ok := m.(question); ok {
			q.Send(int(count.Load()))
		}
	}})
	if err := ref.Tell("block"); err != nil {
		t.Fatal(err)
	}
	<-enter
	for i := range 3 {
		if err := ref.Tell(i); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	if err := ref.Tell("one too many"); !errors.Is(err, engine.ErrBusy) {
		t.Errorf("full queue: %v", err)
	}
	if err := ref.Post("fact"); err != nil {
		t.Errorf("post on a full queue: %v", err)
	}
	close(leave)
	for {
		n, err := ask(ref, 0)
		if errors.Is(err, engine.ErrBusy) {
			continue
		}
		if err != nil || n != 7 { // block, 3 told, 2 posted, the question
			t.Fatalf("%d messages handled, %v", n, err)
		}
		return
	}
}

// batch has the method by which the library would deliver its parts besides itself.
type batch struct{ engine.Reply[int] }

func (batch) GetMessages() []any { return []any{"part", "part"} }

func TestBatchMethodIsNotInterpreted(t *testing.T) {
	var seen []any
	ref := spawn(t, system(t), engine.Options{}, &echo{receive: func(_ *engine.Context[any], m any) {
		seen = append(seen, m)
		if b, ok := m.(batch); ok {
			b.Send(len(seen))
		}
		if q, ok := m.(question); ok {
			q.Send(len(seen))
		}
	}})
	if n, err := engine.Ask(ctx, ref, func(r engine.Reply[int]) any { return batch{r} }); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := ask(ref, 0); n != 2 || err != nil {
		t.Errorf("%d messages arrived for 2 sent: %v", n, seen)
	}
}

func TestStopIsOrderedCompleteAndRepeatable(t *testing.T) {
	s := engine.NewSystem(quiet())
	var mu sync.Mutex
	var ended []string
	note := func(name string) func() {
		return func() { mu.Lock(); ended = append(ended, name); mu.Unlock() }
	}
	handled := 0
	var child *engine.Ref[any]
	first := spawn(t, s, engine.Options{}, &echo{receive: func(*engine.Context[any], any) {}, stopped: note("first")})
	second := spawn(t, s, engine.Options{}, &echo{stopped: note("second"), receive: func(c *engine.Context[any], m any) {
		if m == "spawn" {
			child = spawn(t, c, engine.Options{}, &echo{receive: func(*engine.Context[any], any) {}, stopped: note("child")})
		}
		handled++
	}})
	for _, m := range []any{"spawn", 1, 2, 3} {
		if err := second.Tell(m); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := s.Stop(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if handled != 4 {
		t.Errorf("%d of 4 messages were handled before the end", handled)
	}
	if got := strings.Join(ended, " "); got != "child second first" {
		t.Errorf("ended in the order %s", got)
	}
	for _, ref := range []*engine.Ref[any]{first, second, child} {
		if err := ref.Tell(1); !errors.Is(err, engine.ErrStopped) {
			t.Errorf("tell after the end: %v", err)
		}
		if _, err := ask(ref, 1); !errors.Is(err, engine.ErrStopped) {
			t.Errorf("ask after the end: %v", err)
		}
	}
	if _, err := engine.Spawn[any](s, engine.Options{}, &echo{}); !errors.Is(err, engine.ErrStopped) {
		t.Errorf("spawn after the end: %v", err)
	}
}

func TestStopHasADeadline(t *testing.T) {
	s := engine.NewSystem(quiet())
	leave := make(chan struct{})
	ref := spawn(t, s, engine.Options{}, &echo{receive: func(c *engine.Context[any], m any) {
		c.Go(func(context.Context) any { <-leave; return nil }, func(*engine.PanicError) any { return nil })
		m.(question).Send(0)
	}})
	if _, err := ask(ref, 0); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Stop(short); !errors.Is(err, context.Canceled) {
		t.Errorf("stop with stuck work: %v", err)
	}
	close(leave)
	<-ref.Done()
}

func TestPanicIsLoggedAnsweredAndSurvived(t *testing.T) {
	var log bytes.Buffer
	s := engine.NewSystem(slog.New(slog.NewTextHandler(&log, nil)))
	state := 0
	ref := spawn(t, s, engine.Options{Name: "fragile"}, &echo{
		recover: func(*engine.PanicError) bool { return true },
		receive: func(_ *engine.Context[any], m any) {
			q := m.(question)
			if q.n < 0 {
				explode()
			}
			state += q.n
			q.Send(state)
		},
	})
	if _, err := ask(ref, 5); err != nil {
		t.Fatal(err)
	}
	var p *engine.PanicError
	if _, err := ask(ref, -1); !errors.As(err, &p) || p.Value != "boom" {
		t.Errorf("the asker heard %v", err)
	}
	if n, err := ask(ref, 1); n != 6 || err != nil {
		t.Errorf("after a panic: %d, %v; the actor's state must be its own, not a new value's", n, err)
	}
	if err := s.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); !strings.Contains(got, "explode") || !strings.Contains(got, "fragile") {
		t.Errorf("the log lacks stack or name: %s", got)
	}
}

func explode() { panic("boom") }

func TestPanicWithoutRecoveryStops(t *testing.T) {
	ref := spawn(t, system(t), engine.Options{}, &echo{receive: func(*engine.Context[any], any) { explode() }})
	if _, err := ask(ref, 1); err == nil {
		t.Error("no error")
	}
	<-ref.Done()
}

func TestPanicsThreeTimesAMinuteAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := engine.NewSystem(quiet())
		ref := spawn(t, s, engine.Options{}, &echo{
			recover: func(*engine.PanicError) bool { return true },
			receive: func(*engine.Context[any], any) { explode() },
		})
		for range 3 {
			_, _ = ask(ref, 1)
		}
		time.Sleep(2 * time.Minute)
		for i := range 4 {
			if _, err := ask(ref, 1); errors.Is(err, engine.ErrStopped) {
				t.Fatalf("stopped after %d panics of a new minute", i)
			}
		}
		<-ref.Done()
		if err := s.Stop(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

func TestIdleUnloading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := engine.NewSystem(quiet())
		start := time.Now()
		var idleAt time.Duration
		ref := spawn(t, s, engine.Options{Idle: 5 * time.Minute}, &echo{
			receive: func(*engine.Context[any], any) {},
			idle:    func(c *engine.Context[any]) { idleAt = time.Since(start); c.Stop() },
		})
		for range 3 {
			time.Sleep(4 * time.Minute)
			if err := ref.Tell("hello"); err != nil {
				t.Fatal(err)
			}
		}
		<-ref.Done()
		if idleAt != 17*time.Minute {
			t.Errorf("idle after %v, want 5 minutes after the last message at 12", idleAt)
		}
		if err := s.Stop(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWorkIsBoundedOrderedAndCannotBlockTheActor(t *testing.T) {
	const limit = 2
	running, peak := 0, 0
	var mu sync.Mutex
	leave := make(chan struct{})
	done := make(chan string, 10)
	ref := spawn(t, system(t), engine.Options{Workers: limit}, &echo{receive: func(c *engine.Context[any], m any) {
		switch m := m.(type) {
		case question:
			m.Send(m.n)
		case int:
			c.Go(func(context.Context) any {
				mu.Lock()
				running++
				peak = max(peak, running)
				mu.Unlock()
				<-leave
				mu.Lock()
				running--
				mu.Unlock()
				if m == 3 {
					explode()
				}
				return fmt.Sprint("done ", m)
			}, func(err *engine.PanicError) any { return err.Error() })
		case string:
			done <- m
		}
	}})
	for i := range 6 {
		if err := ref.Tell(i); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := ask(ref, 42); n != 42 || err != nil {
		t.Fatalf("an actor with stuck work does not answer: %d, %v", n, err)
	}
	close(leave)
	got := map[string]bool{}
	for range 6 {
		got[<-done] = true
	}
	for _, want := range []string{"done 0", "done 1", "done 2", "internal error: boom", "done 4", "done 5"} {
		if !got[want] {
			t.Errorf("no %q in %v", want, got)
		}
	}
	if peak > limit {
		t.Errorf("%d works ran at once, the limit is %d", peak, limit)
	}
}

func TestWorkEndsWithItsActor(t *testing.T) {
	ref := spawn(t, system(t), engine.Options{Workers: 1}, &echo{receive: func(c *engine.Context[any], m any) {
		for range 3 {
			c.Go(func(ctx context.Context) any { <-ctx.Done(); return nil }, func(*engine.PanicError) any { return nil })
		}
		c.Stop()
	}})
	if err := ref.Tell("go"); err != nil {
		t.Fatal(err)
	}
	<-ref.Done()
}

// A result of work is received after what was told before it.
func TestWorkResultsDoNotOvertake(t *testing.T) {
	var got []any
	release := make(chan struct{})
	ref := spawn(t, system(t), engine.Options{}, &echo{receive: func(c *engine.Context[any], m any) {
		switch m := m.(type) {
		case string:
			got = append(got, m)
			if m == "start" {
				c.Go(func(context.Context) any { return "result" }, func(*engine.PanicError) any { return nil })
				<-release
			}
		case question:
			if !slices.Contains(got, any("result")) {
				m.Send(0)
				return
			}
			m.Send(slices.Index(got, any("result")) - slices.Index(got, any("before")))
		}
	}})
	if err := errors.Join(ref.Tell("start"), ref.Tell("before")); err != nil {
		t.Fatal(err)
	}
	close(release)
	for {
		n, err := ask(ref, 0)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return // "result" came behind "before"
		}
		if n < 0 {
			t.Fatal("the result came first")
		}
	}
}

func TestRepliesOutsideOfAskAreHarmless(t *testing.T) {
	var r engine.Reply[int]
	r.Send(1)
	r.Fail(errors.New("x"))
	ref := spawn(t, system(t), engine.Options{}, &echo{receive: func(_ *engine.Context[any], m any) {
		q := m.(question)
		q.Send(1)
		q.Send(2)
		q.Fail(errors.New("late"))
	}})
	if n, err := ask(ref, 0); n != 1 || err != nil {
		t.Error(n, err)
	}
}

func TestAskEndsWithItsContext(t *testing.T) {
	ref := spawn(t, system(t), engine.Options{}, &echo{receive: func(*engine.Context[any], any) {}})
	short, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := engine.Ask(short, ref, func(r engine.Reply[int]) any { return question{r, 0} }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func BenchmarkTell(b *testing.B) {
	s := engine.NewSystem(quiet())
	ref, err := engine.Spawn[any](s, engine.Options{Queue: 1 << 20}, &echo{receive: func(_ *engine.Context[any], m any) {
		if q, ok := m.(question); ok {
			q.Send(0)
		}
	}})
	if err != nil {
		b.Fatal(err)
	}
	for i := range b.N {
		for ref.Tell(i) != nil {
		}
	}
	if _, err := ask(ref, 0); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	if err := s.Stop(ctx); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkAsk(b *testing.B) {
	s := engine.NewSystem(quiet())
	ref, err := engine.Spawn[any](s, engine.Options{}, &echo{receive: func(_ *engine.Context[any], m any) { m.(question).Send(0) }})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := ask(ref, 0); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Stop(ctx); err != nil {
		b.Fatal(err)
	}
}
