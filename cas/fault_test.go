package cas_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/testkit/crashfs"
)

// task is an operation at whose every disk call something fails.
type task struct {
	name string
	// closed says that the task opens the store itself.
	closed bool
	killed bool // and that it was not closed before
	do     func(f *faulty) error
}

// faulty is a store in which three objects are held and half of a pack is dead.
type faulty struct {
	disk  *crashfs.FS
	opts  cas.Options
	clock *manual
	store *cas.Store
	held  map[cas.ID][]byte // acknowledged
	known map[cas.ID][]byte // put, whatever became of it
}

func newFaulty(t testing.TB, k task) *faulty {
	f := &faulty{disk: crashfs.New(), clock: &manual{}, held: map[cas.ID][]byte{}, known: map[cas.ID][]byte{}}
	f.opts = cas.Options{FS: f.disk, SegmentSize: 3000, Elapsed: f.clock.now, Grace: time.Minute}
	s := open(t, f.opts)
	for i := range 3 {
		data := content(uint64(i), 1000)
		id := must[[]cas.ID](t)(s.PutHeld(ctx, document("d"), data))[0]
		f.held[id], f.known[id] = data, data
		must[cas.ID](t)(s.Put(ctx, content(uint64(i+50), 1200)))
	}
	f.clock.at += time.Hour
	f.store = s
	if k.closed {
		if k.killed {
			f.disk = f.disk.All()
			f.opts.FS = f.disk
		}
		closeStore(t, s)
		f.store = nil
	}
	return f
}

func (f *faulty) open() (err error) {
	if f.store == nil {
		f.store, err = cas.Open(ctx, "store", f.opts)
	}
	return err
}

func (f *faulty) put(owner string, data []byte) error {
	f.known[cas.Sum(data)] = data
	ids, err := f.store.PutHeld(ctx, document(owner), data)
	if err == nil {
		f.held[ids[0]] = data
	}
	return err
}

var tasks = []task{
	{"open", true, false, (*faulty).open},
	{"open after a crash", true, true, (*faulty).open},
	{"put", false, false, func(f *faulty) error { _, err := f.store.Put(ctx, content(9, 500)); return err }},
	{"put held", false, false, func(f *faulty) error { return f.put("e", content(10, 900)) }},
	{"put large", false, false, func(f *faulty) error { return f.put("large", content(11, 1<<20+5000)) }},
	{"hold", false, false, func(f *faulty) error { return f.store.Hold(ctx, ownerB, cas.Sum(content(0, 1000))) }},
	{"release", false, false, func(f *faulty) error { return f.store.Release(ctx, ownerB) }},
	{"lease", false, false, func(f *faulty) error { return f.store.Lease(ctx, ownerL, time.Hour, cas.Sum(content(0, 1000))) }},
	{"collect", false, false, func(f *faulty) error { _, err := f.store.Collect(ctx); return err }},
	{"verify", false, false, func(f *faulty) error {
		v, err := f.store.Verify(ctx, nil)
		if err == nil && !v.Sound() {
			return fmt.Errorf("not sound: %+v", v.Damaged)
		}
		return err
	}},
	{"get", false, false, func(f *faulty) error {
		for id, want := range f.held {
			if got, err := f.store.Get(ctx, id, -1); err != nil || !bytes.Equal(got, want) {
				return fmt.Errorf("get: %d bytes, %w", len(got), err)
			}
		}
		return nil
	}},
	{"repair", false, false, func(f *faulty) error { _, err := f.store.Repair(ctx, nil); return err }},
	{"close", false, false, func(f *faulty) error { s := f.store; f.store = nil; return s.Close() }},
	{"open fresh", true, true, func(f *faulty) error {
		fresh := f.opts
		sub, err := subOf(f.disk)
		if err != nil {
			return err
		}
		defer sub.Close()
		fresh.FS = sub
		s, err := cas.Open(ctx, "fresh", fresh)
		if err != nil {
			return err
		}
		_, err = s.Put(ctx, []byte("x"))
		return errors.Join(err, s.Close())
	}},
}

// TestEveryCallFails (C5): each call of each task fails in each way, once.
func TestEveryCallFails(t *testing.T) {
	faults, surfaced := 0, 0
	for _, k := range tasks {
		for i, cause := range crashfs.Errors() {
			if i >= fewer(len(crashfs.Errors())) {
				break
			}
			for n := 1; ; n++ {
				f := newFaulty(t, k)
				before := f.disk.Calls()
				f.disk.FailNth(n, cause)
				err := k.do(f)
				calls := f.disk.Calls() - before
				f.disk.SetFault(nil)
				if n > calls {
					if err != nil {
						t.Fatalf("%s without a fault: %v", k.name, err)
					}
					f.end(t)
					break
				}
				faults++
				what := fmt.Sprintf("%s, %v at call %d of %d", k.name, cause, n, calls)
				if err != nil {
					surfaced++
					if text := err.Error(); !errors.Is(err, cause) && !strings.Contains(text, "short write") || len(text) < len(cause.Error())+5 {
						t.Errorf("%s: error does not name what was done: %v", what, err)
					}
				}
				if err := f.recovers(k); err != nil {
					t.Errorf("%s (%v): %v", what, err, err)
				}
				if t.Failed() {
					return
				}
			}
		}
	}
	t.Logf("%d faults, %d of them reported, the others harmless", faults, surfaced)
}

// recovers does the task again, now that the cause has ended, and checks that nothing is lost or left behind.
func (f *faulty) recovers(k task) error {
	if k.name != "close" {
		if err := k.do(f); err != nil {
			return fmt.Errorf("again: %w", err)
		}
	}
	if err := f.open(); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if err := f.put("after", nothing(1)); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	lost := f.disk.Crash(nil)
	if err := f.store.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	for _, disk := range []*crashfs.FS{f.disk, lost} {
		opts := f.opts
		opts.FS = disk
		s, err := cas.Open(ctx, "store", opts)
		if err != nil {
			return err
		}
		if err := errors.Join(sound(s, f.known, keys(f.held)), s.Close(), tidy(disk)); err != nil {
			return err
		}
	}
	return nil
}

func (f *faulty) end(t testing.TB) {
	if f.store != nil {
		closeStore(t, f.store)
	}
}

// TestSyncFailsOnce (C6): the put that saw it fails, the next one does not trust the pack, and everything acknowledged survives.
func TestSyncFailsOnce(t *testing.T) {
	states := 0
	for _, cause := range []string{"*.pack", "checkpoint-*", "*.pack.tmp"} {
		for _, k := range tasks {
			for n := 1; n <= 1+fewer(5); n++ {
				f := newFaulty(t, k)
				f.disk.SetFault(crashfs.OnNth("sync", cause, n, syscall.EIO))
				err := k.do(f)
				f.disk.SetFault(nil)
				at := f.disk.All()
				what := fmt.Sprintf("%s, sync %d of %s failed (%v)", k.name, n, cause, err)
				if n == 1 && cause == "*.pack" && (strings.HasPrefix(k.name, "put") || k.name == "hold" || k.name == "lease") && !errors.Is(err, syscall.EIO) {
					t.Errorf("%s: a failed sync was not reported", what)
				}
				killed := &faulty{disk: at, opts: f.opts, held: maps.Clone(f.held), known: maps.Clone(f.known)}
				killed.opts.FS = at
				if rerr := f.recovers(k); rerr != nil {
					t.Fatalf("%s: %v", what, rerr)
				}
				// Or the process was killed right after it, goes on, and the power fails then.
				if rerr := killed.recovers(task{name: "close"}); rerr != nil {
					t.Fatalf("%s, then killed: %v", what, rerr)
				}
				states += 4
			}
		}
	}
	t.Logf("%d states", states)
}
