package cas_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/testkit/crashfs"
)

// points names the steps of traces for the log.
type points map[string]int

func (p points) add(s crashfs.Step) {
	name := s.Op + " " + s.Path
	for i := 0; i < len(name); i++ {
		if c := name[i]; c >= '0' && c <= '9' {
			name = name[:i] + "N" + trimHex(name[i:])
		}
	}
	p[name]++
}

func trimHex(s string) string {
	for len(s) > 0 && (s[0] >= '0' && s[0] <= '9' || s[0] >= 'a' && s[0] <= 'f') {
		s = s[1:]
	}
	return s
}

// TestCrashInsideRecovery (C3): Open after a crash is crashed at each of its steps, and the Open after that too.
func TestCrashInsideRecovery(t *testing.T) {
	start := seed(t)
	named, states := points{}, 0
	for n := range scale(8, 1000) {
		rng := rand.New(rand.NewPCG(start, uint64(n)))
		r := newTracer(cas.Options{Grace: -1, Elapsed: (&manual{}).now, SegmentSize: 1 << (9 + rng.IntN(5)), Checkpoint: 1 << (9 + rng.IntN(5))})
		for range 3 + rng.IntN(5) {
			if err := r.run(randomOperation(rng)); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		step := rng.IntN(r.trace.Len() + 1)
		crashed := r.trace.At(step).All()
		if rng.IntN(2) == 0 {
			crashed = r.trace.At(step).Crash(rng)
		}
		states += r.crashAgain(t, crashed, step, named, rng, 2)
	}
	t.Logf("%d crash states; points %v", states, named)
}

// crashAgain records what Open does on a crashed disk and crashes it at each step; a depth of 2 goes into one of those recoveries once more.
func (r *tracer) crashAgain(t *testing.T, crashed *crashfs.FS, step int, named points, rng *rand.Rand, depth int) (states int) {
	opts := r.opts
	opts.FS = crashed
	trace := crashed.Record()
	s, err := cas.Open(ctx, "store", opts)
	if err != nil {
		t.Fatal(err)
	}
	seen := holdsOf(s)
	opened := trace.Len()
	closeStore(t, s)
	trace.Stop()
	steps := trace.Steps()
	for i := range len(steps) + 1 {
		if i > 0 {
			named.add(steps[i-1])
		}
		if i < len(steps) && steps[i].Op == "write" && i > 0 && steps[i-1].Path == steps[i].Path && !long() {
			continue // one of several writes in a row
		}
		at := trace.At(i)
		for kind, disk := range []*crashfs.FS{at.All(), at.Crash(nil), at.Crash(rng)} {
			states++
			err := r.checkCrash(disk, step)
			if err == nil && i >= opened { // the state was seen by somebody
				err = r.reopen(at.Crash(rng), seen, nil, 0)
			}
			if err != nil {
				t.Fatalf("%v: crash after step %d, recovery crashed after step %d of %d (%v), kind %d: %v", r.names, step, i, len(steps), steps[max(0, i-1)], kind, err)
			}
		}
	}
	if depth > 1 {
		states += r.crashAgain(t, trace.At(rng.IntN(len(steps)+1)).Crash(rng), step, named, rng, depth-1)
	}
	return states
}

// TestCrashInsideRepair (C3): Repair is crashed at each of its steps and done again.
func TestCrashInsideRepair(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed(t), 3))
	named, states := points{}, 0
	for round := range scale(4, 100) {
		disk := crashfs.New()
		opts := cas.Options{FS: disk, Grace: -1, SegmentSize: 4000}
		s := open(t, opts)
		var ids []cas.ID
		for i := range 8 {
			ids = append(ids, must[[]cas.ID](t)(s.PutHeld(ctx, document(fmt.Sprint(i)), content(uint64(i), 1500)))...)
			must[cas.ID](t)(s.Put(ctx, content(uint64(i+100), 400))) // nobody's
		}
		damaged := disk
		if round%2 == 0 {
			damaged = disk.All() // without a checkpoint
		}
		closeStore(t, s)
		damaged.Flip(packs(t, damaged)[0], 64+20+44+100, uint(rng.IntN(8))) // in the first object
		if round%4 > 1 {
			damaged.Flip(packs(t, damaged)[1], 200, uint(rng.IntN(8)))
		}
		opts.FS = damaged
		s = open(t, opts)
		bad := must[cas.Verification](t)(s.Verify(ctx, nil))
		closeStore(t, s)
		if bad.Sound() {
			t.Fatal("the damage is not seen")
		}
		trace := damaged.Record()
		s = open(t, opts)
		must[cas.Repaired](t)(s.Repair(ctx, nil))
		closeStore(t, s)
		trace.Stop()
		steps := trace.Steps()
		for i := range len(steps) + 1 {
			if i > 0 {
				named.add(steps[i-1])
			}
			at := trace.At(i)
			for _, disk := range []*crashfs.FS{at.All(), at.Crash(nil), at.Crash(rng)} {
				states++
				if err := checkRepair(disk, opts, ids); err != nil {
					t.Fatalf("round %d, repair crashed after step %d of %d (%v): %v", round, i, len(steps), steps[max(0, i-1)], err)
				}
			}
		}
	}
	t.Logf("%d crash states; points %v", states, named)
}

// checkRepair repairs and checks that what is held is there or known to be damaged, and whole when it is put again.
func checkRepair(disk *crashfs.FS, opts cas.Options, ids []cas.ID) error {
	opts.FS = disk
	s, err := cas.Open(ctx, "store", opts)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.Repair(ctx, nil); err != nil {
		return err
	}
	for i, id := range ids {
		data := content(uint64(i), 1500)
		got, err := s.Get(ctx, id, -1)
		if err == nil && string(got) != string(data) {
			return fmt.Errorf("object %d: other bytes", i)
		}
		if err != nil && !isDamage(err) && !isNotFound(err) {
			return err
		}
		if _, err := s.PutHeld(ctx, document(fmt.Sprint(i)), data); err != nil {
			return err
		}
		if err != nil && i > 5 {
			return fmt.Errorf("object %d, which was not damaged: %w", i, err)
		}
	}
	if _, err := s.Repair(ctx, nil); err != nil {
		return err
	}
	v, err := s.Verify(ctx, nil)
	if err != nil || !v.Sound() {
		return fmt.Errorf("after everything was put again: %+v, %w", v, err)
	}
	return s.Close()
}
