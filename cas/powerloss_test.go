package cas_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/testkit/crashfs"
)

// tracer runs operations on a store and notes what a crash at any step may leave.
type tracer struct {
	disk    *crashfs.FS
	trace   *crashfs.Trace
	store   *cas.Store
	opts    cas.Options
	bytesOf map[cas.ID][]byte
	states  []state // after each operation; the zeroth before all
	names   []string
}

func newTracer(opts cas.Options) *tracer {
	disk := crashfs.New()
	opts.FS = disk
	return &tracer{disk: disk, trace: disk.Record(), opts: opts, states: []state{newState()},
		bytesOf: map[cas.ID][]byte{cas.Sum(nothing(1)): nothing(1)}}
}

// operation changes a store and the model of it.
type operation struct {
	name string
	do   func(r *tracer, m state) error
}

// run performs an operation and marks its end.
func (r *tracer) run(op operation) error {
	m := r.states[len(r.states)-1].clone()
	r.names = append(r.names, op.name)
	if r.store == nil && op.name != "close" {
		s, err := cas.Open(ctx, "store", r.opts)
		if err != nil {
			return err
		}
		r.store = s
	}
	if err := op.do(r, m); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(r.names, ", "), err)
	}
	r.states = append(r.states, m)
	r.trace.Mark(op.name)
	return nil
}

func (r *tracer) end() error {
	defer r.trace.Stop()
	if r.store == nil {
		return nil
	}
	return r.store.Close()
}

func (r *tracer) put(m state, data []byte) cas.ID {
	id := cas.Sum(data)
	r.bytesOf[id], m.objects[id] = data, true
	return id
}

var (
	ownerA = document("a")
	ownerB = cas.Owner{Kind: cas.OwnerSession, ID: "b"}
	ownerL = cas.Owner{Kind: cas.OwnerLease, ID: "l"}
	dataX  = content(1, 300)
	dataY  = content(2, 1500)
	dataZ  = content(3, 700)
)

// letters is what a store does, small enough for all words of three letters.
var letters = []operation{
	{"put", func(r *tracer, m state) error {
		r.put(m, dataX)
		_, err := r.store.Put(ctx, dataX)
		return err
	}},
	{"putheld", func(r *tracer, m state) error {
		m.hold(ownerA, r.put(m, dataX), r.put(m, dataY))
		_, err := r.store.PutHeld(ctx, ownerA, dataX, dataY)
		return err
	}},
	{"hold", func(r *tracer, m state) error {
		id := cas.Sum(dataX)
		if err := r.store.Hold(ctx, ownerB, id); m.objects[id] || !errors.Is(err, cas.ErrNotFound) {
			m.hold(ownerB, id)
			return err
		}
		return nil
	}},
	{"replace", func(r *tracer, m state) error {
		id := r.put(m, dataZ)
		if _, err := r.store.Put(ctx, dataZ); err != nil {
			return err
		}
		m.release(ownerA)
		m.hold(ownerA, id)
		return r.store.Replace(ctx, ownerA, id)
	}},
	{"release", func(r *tracer, m state) error {
		m.release(ownerA, cas.Sum(dataX))
		return r.store.Release(ctx, ownerA, cas.Sum(dataX))
	}},
	{"lease", func(r *tracer, m state) error {
		id := r.put(m, dataY)
		if _, err := r.store.Put(ctx, dataY); err != nil {
			return err
		}
		m.release(ownerL)
		m.hold(ownerL, id)
		return r.store.Lease(ctx, ownerL, time.Hour, id)
	}},
	{"collect", func(r *tracer, m state) error {
		m.collect()
		_, err := r.store.Collect(ctx)
		return err
	}},
	{"close", func(r *tracer, m state) error {
		s := r.store
		if r.store = nil; s == nil {
			return nil
		}
		return s.Close()
	}},
}

// acceptable returns the states that a crash at a step may leave: what was acknowledged, or with the operation under way.
func (r *tracer) acceptable(step int) []state {
	n := 0
	for _, mark := range r.trace.Marks() {
		if mark.Step <= step {
			n++
		}
	}
	return r.states[n:min(n+2, len(r.states))]
}

// checkCrash opens a store on what a crash left, and again after writing, and after a power loss. It returns what is wrong.
func (r *tracer) checkCrash(disk *crashfs.FS, step int) error {
	allowed := r.acceptable(step)
	opts := r.opts
	opts.FS = disk
	s, err := cas.Open(ctx, "store", opts)
	if err != nil {
		return err
	}
	defer s.Close()
	before := holdsOf(s)
	must := map[cas.ID]bool{}
	fits := false
	for i, m := range allowed {
		fits = fits || before == m.holds()
		if i == 0 {
			must = m.clone().objects
		}
		for id := range must {
			if !m.objects[id] {
				delete(must, id)
			}
		}
	}
	if !fits {
		return fmt.Errorf("holds %q, want %q", before, allowed[0].holds())
	}
	if err := sound(s, r.bytesOf, must); err != nil {
		return err
	}
	// Whoever saw this must see it again, whenever the power fails now.
	if err := r.reopen(disk.Crash(nil), before, must, 0); err != nil {
		return fmt.Errorf("power lost after the recovery: %w", err)
	}
	if _, err := s.PutHeld(ctx, ownerB, nothing(1)); err != nil {
		return fmt.Errorf("put after the crash: %w", err)
	}
	after := holdsOf(s)
	lost := disk.Crash(nil)
	if err := s.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	for i, again := range []*crashfs.FS{lost, lost, disk} {
		if err := r.reopen(again, after, must, 1-i); err != nil {
			return fmt.Errorf("opened again, %d: %w", i, err)
		}
	}
	return nil
}

// reopen checks that a store holds what was seen, also when it is killed, more times.
func (r *tracer) reopen(disk *crashfs.FS, holds string, must map[cas.ID]bool, more int) error {
	opts := r.opts
	opts.FS = disk
	s, err := cas.Open(ctx, "store", opts)
	if err != nil {
		return err
	}
	if got := holdsOf(s); got != holds {
		err = fmt.Errorf("holds %q, want %q", got, holds)
	} else {
		err = sound(s, r.bytesOf, must)
	}
	unclosed := disk.All()
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	if err == nil && more > 0 {
		err = r.reopen(unclosed, holds, must, more-1)
	}
	if err == nil {
		err = tidy(disk)
	}
	return err
}

// checkSteps visits the moments of a trace from a step on, and returns how many states it opened.
func (r *tracer) checkSteps(t testing.TB, from, subsets int) (states int) {
	steps := r.trace.Steps()
	for i := from; i <= len(steps); i++ {
		at := r.trace.At(i)
		check := func(kind string, disk *crashfs.FS) {
			states++
			if err := r.checkCrash(disk, i); err != nil {
				step := "the beginning"
				if i > 0 {
					step = steps[i-1].String()
				}
				t.Errorf("%s: %s after step %d of %d (%s): %v", strings.Join(r.names, ", "), kind, i, len(steps), step, err)
			}
		}
		check("kill", at.All())
		n := 0
		for disk := range at.Subsets(subsets) {
			check(fmt.Sprintf("power loss %d", n), disk)
			n++
		}
		if t.Failed() {
			break
		}
	}
	return states
}

// TestPowerLossExhaustive (C1): all words of at most three operations, each with a power loss or a kill, and a power loss after that, at each step
// of the last operation; those before are words of their own.
func TestPowerLossExhaustive(t *testing.T) {
	subsets := scale(2, 64)
	skip := scale(40/fewer(5), 1) // the short form takes all words of two letters and an eighth of the longer ones
	turn := int(seed(t) % uint64(skip))
	var traces, states atomic.Int64
	t.Run("words", func(t *testing.T) {
		for _, first := range letters {
			t.Run(first.name, func(t *testing.T) {
				t.Parallel()
				words := [][]operation{{first}}
				for _, second := range letters {
					words = append(words, []operation{first, second})
					for _, third := range letters {
						words = append(words, []operation{first, second, third})
					}
				}
				for n, word := range words {
					if len(word) == 3 && n%skip != turn {
						continue
					}
					// Small limits, so that packs change and checkpoints come on their own; and large ones, so that they do not.
					opts := cas.Options{Grace: -1, Elapsed: (&manual{}).now}
					if n%3 != 0 {
						opts.SegmentSize, opts.Checkpoint = 500, 1000
					}
					r := newTracer(opts)
					from := 0
					for i, op := range word {
						if i == len(word)-1 && i > 0 {
							from = r.trace.Len()
						}
						if err := r.run(op); err != nil {
							t.Fatal(err)
						}
					}
					if err := r.end(); err != nil {
						t.Fatal(err)
					}
					traces.Add(1)
					states.Add(int64(r.checkSteps(t, from, subsets)))
					if t.Failed() {
						return
					}
				}
			})
		}
	})
	t.Logf("%d traces, %d crash states", traces.Load(), states.Load())
}

// randomOperation makes an operation with objects of its own.
func randomOperation(rng *rand.Rand) operation {
	if rng.IntN(4) > 0 {
		return letters[rng.IntN(len(letters))]
	}
	n, size, kind := rng.Uint64N(6), 1+rng.IntN(3000), rng.IntN(4)
	if rng.IntN(40) == 0 {
		size = 1<<20 + rng.IntN(1<<20)
	}
	return operation{fmt.Sprintf("putheld of %d+%d", n, size), func(r *tracer, m state) error {
		data := content(n, size)
		owner := document(fmt.Sprint(kind))
		m.hold(owner, r.put(m, data))
		_, err := r.store.PutHeld(ctx, owner, data)
		return err
	}}
}

// TestPowerLossSeeded (C1): longer traces.
func TestPowerLossSeeded(t *testing.T) {
	start := seed(t)
	traces, operations, states := scale(fewer(100), 10_000), 0, 0
	for n := range traces {
		rng := rand.New(rand.NewPCG(start, uint64(n)))
		opts := cas.Options{Grace: -1, Elapsed: (&manual{}).now, SegmentSize: 1 << (9 + rng.IntN(9)), Checkpoint: 1 << (9 + rng.IntN(9))}
		r := newTracer(opts)
		for range 4 + rng.IntN(9) {
			if err := r.run(randomOperation(rng)); err != nil {
				t.Fatal(err)
			}
			operations++
		}
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		// A part of the steps, another one each time.
		steps := r.trace.Len()
		for range scale(4, 24) {
			i := rng.IntN(steps + 1)
			at := r.trace.At(i)
			for kind, disk := range []*crashfs.FS{at.All(), at.Crash(nil), at.Crash(rng), at.Crash(rng)} {
				states++
				if err := r.checkCrash(disk, i); err != nil {
					t.Fatalf("trace %d: %s: kind %d after step %d of %d (%v): %v", n, strings.Join(r.names, ", "), kind, i, steps, r.trace.Steps()[max(0, i-1)], err)
				}
			}
		}
	}
	t.Logf("%d traces, %d operations, %d crash states", traces, operations, states)
}

// A process was killed while it began a pack, the next one wrote on, and the power failed: the pack that nobody wrote into is gone, and
// nothing is missed.
func TestPackThatWasBegunInVain(t *testing.T) {
	disk := crashfs.New()
	opts := cas.Options{FS: disk, SegmentSize: 500}
	s := open(t, opts)
	must[[]cas.ID](t)(s.PutHeld(ctx, document("d"), content(1, 1500)))
	trace := disk.Record()
	must[[]cas.ID](t)(s.PutHeld(ctx, document("d"), content(2, 1500)))
	trace.Stop()
	closeStore(t, s)
	for i := range trace.Len() + 1 {
		opts.FS = trace.At(i).All()
		s = open(t, opts)
		must[[]cas.ID](t)(s.PutHeld(ctx, document("d"), content(3, 1500)))
		lost := opts.FS.(*crashfs.FS).Crash(nil)
		closeStore(t, s)
		for round := range 4 {
			opts.FS = lost
			s = open(t, opts)
			wantBytes(t, s, cas.Sum(content(1, 1500)), content(1, 1500))
			wantBytes(t, s, cas.Sum(content(3, 1500)), content(3, 1500))
			if st := s.Stats(); st.InDoubt != "" {
				t.Errorf("killed after %v, opened %d times: %s", trace.Steps()[:i], round+1, st.InDoubt)
			}
			lost = lost.All()
			closeStore(t, s)
		}
	}
}
