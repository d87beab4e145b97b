package cas_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/testkit/crashfs"
)

// reference is what a store must do (C12): objects stay while somebody holds or reads them and for a minute after.
type reference struct {
	state
	since  map[cas.ID]time.Duration // last put, asked for, released
	leases map[cas.Owner]time.Duration
	ended  map[cas.Owner]bool
	now    time.Duration
}

func (m *reference) touch(ids ...cas.ID) {
	for _, id := range ids {
		m.since[id] = m.now
	}
}

// expire ends the leases whose time has come.
func (m *reference) expire() {
	for o, deadline := range m.leases {
		if deadline <= m.now {
			m.drop(o)
			delete(m.leases, o)
			m.ended[o] = true
		}
	}
}

// drop ends all holds of an owner.
func (m *reference) drop(o cas.Owner) {
	for id := range m.held[o] {
		m.touch(id)
	}
	delete(m.held, o)
}

// required are the objects that must be there: held, or put or released within the grace. After a crash nobody knows of the grace.
func (m *reference) required() map[cas.ID]bool {
	out := map[cas.ID]bool{}
	for _, ids := range m.held {
		maps.Copy(out, ids)
	}
	for id, at := range m.since {
		if m.objects[id] && m.now-at < time.Minute {
			out[id] = true
		}
	}
	return out
}

func TestStoreAgainstReference(t *testing.T) {
	var operations, crashes atomic.Int64
	bytesOf := map[cas.ID][]byte{}
	var ids []cas.ID
	for i := range 12 {
		data := content(uint64(i), 100+i*i*150)
		if i == 11 {
			data = content(11, 1<<20+100_000)
		}
		bytesOf[cas.Sum(data)], ids = data, append(ids, cas.Sum(data))
	}
	rapid.Check(t, func(t *rapid.T) {
		clock := &atomicClock{}
		disk := crashfs.New()
		opts := cas.Options{FS: disk, SegmentSize: 5000, Checkpoint: 4000, Grace: time.Minute, Elapsed: clock.now}
		s, err := cas.Open(ctx, "store", opts)
		ok(t, err)
		defer func() { s.Close() }()
		m := &reference{newState(), map[cas.ID]time.Duration{}, map[cas.Owner]time.Duration{}, map[cas.Owner]bool{}, 0}
		owner := rapid.SampledFrom([]cas.Owner{ownerA, ownerB, document("c")})
		object := rapid.SampledFrom(ids)
		reading := map[cas.ID]*cas.Object{}
		stop := func() {
			for id, o := range reading {
				ok(t, o.Close())
				m.touch(id)
				delete(reading, id)
			}
		}
		defer stop()
		leases := 0
		known := func(t *rapid.T) (out []cas.ID) {
			for id := range m.required() {
				out = append(out, id)
			}
			slices.SortFunc(out, func(a, b cas.ID) int { return bytes.Compare(a[:], b[:]) })
			return out[:min(len(out), rapid.IntRange(0, 4).Draw(t, "some"))]
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				id := object.Draw(t, "object")
				_, err := s.Put(ctx, bytesOf[id])
				ok(t, err)
				m.objects[id] = true
				m.touch(id)
			},
			"put held": func(t *rapid.T) {
				id, o := object.Draw(t, "object"), owner.Draw(t, "owner")
				_, err := s.PutHeld(ctx, o, bytesOf[id])
				ok(t, err)
				m.objects[id] = true
				m.touch(id)
				m.hold(o, id)
			},
			"hold": func(t *rapid.T) {
				if o, some := owner.Draw(t, "owner"), known(t); len(some) > 0 {
					ok(t, s.Hold(ctx, o, some...))
					m.hold(o, some...)
				}
			},
			"replace": func(t *rapid.T) {
				o, some := owner.Draw(t, "owner"), known(t)
				ok(t, s.Replace(ctx, o, some...))
				m.drop(o)
				if len(some) > 0 {
					m.hold(o, some...)
				}
			},
			"release": func(t *rapid.T) {
				o := owner.Draw(t, "owner")
				ok(t, s.Release(ctx, o))
				m.drop(o)
			},
			"lease": func(t *rapid.T) {
				if some := known(t); len(some) > 0 {
					leases++
					o := cas.Owner{Kind: cas.OwnerLease, ID: fmt.Sprint(leases)}
					ok(t, s.Lease(ctx, o, 90*time.Second, some...))
					m.hold(o, some...)
					m.leases[o] = m.now + 90*time.Second
				}
			},
			"time passes": func(t *rapid.T) {
				by := time.Duration(rapid.IntRange(1, 50).Draw(t, "seconds")) * time.Second
				m.now += by
				clock.add(by)
			},
			"read": func(t *rapid.T) {
				for id := range m.required() {
					if reading[id] == nil {
						o, err := s.Open(ctx, id)
						ok(t, err)
						reading[id] = o
						m.touch(id)
						break
					}
				}
			},
			"stop reading": func(*rapid.T) { stop() },
			"collect": func(t *rapid.T) {
				_, err := s.Collect(ctx)
				ok(t, err)
			},
			"crash": func(t *rapid.T) {
				crashes.Add(1)
				stop()
				rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "crash"), 1))
				lost := disk.All()
				if rng.IntN(2) == 0 {
					lost = disk.Crash(rng)
				}
				ok(t, s.Close())
				disk, opts.FS = lost, lost
				s, err = cas.Open(ctx, "store", opts)
				ok(t, err)
				// The leases run on from what their last record says; the grace begins again for those asked for.
				clear(m.since)
				for o := range m.leases {
					left, there := s.Remains(o)
					if !there {
						t.Fatalf("%s is gone", o)
					}
					m.leases[o] = m.now + left
				}
			},
			"": func(t *rapid.T) {
				operations.Add(1)
				m.settle(t, s)
				there := map[cas.ID]bool{} // looked at without asking for it, so that its grace may pass
				for info := range s.All() {
					there[info.ID] = true
				}
				for id := range m.required() {
					if !there[id] {
						t.Fatalf("required %s is not there", id)
					}
				}
				for o, ids := range m.held {
					id := slices.MinFunc(slices.Collect(maps.Keys(ids)), func(a, b cas.ID) int { return bytes.Compare(a[:], b[:]) })
					data, err := s.Get(ctx, id, -1)
					if err != nil || !bytes.Equal(data, bytesOf[id]) {
						t.Fatalf("%s, held by %s: %d bytes, %v", id, o, len(data), err)
					}
					m.touch(id)
				}
				for id, o := range reading {
					if _, err := o.Seek(0, io.SeekStart); err != nil {
						t.Fatal(err)
					}
					if data, err := io.ReadAll(o); err != nil || !bytes.Equal(data, bytesOf[id]) {
						t.Fatalf("read %s: %d bytes, %v", id, len(data), err)
					}
				}
			},
		})
		stop()
		m.now += 2 * time.Minute
		clock.add(2 * time.Minute)
		m.settle(t, s)
		m.now += 2 * time.Minute
		clock.add(2 * time.Minute)
		for range 2 {
			_, err := s.Collect(ctx)
			ok(t, err)
		}
		m.collect()
		got := map[cas.ID]bool{}
		for info := range s.All() {
			if bytesOf[info.ID] != nil {
				got[info.ID] = true
			}
		}
		if !maps.Equal(got, m.objects) {
			t.Fatalf("%d objects after two collections, want %d", len(got), len(m.objects))
		}
		if st := s.Stats(); st.Dead > st.Stored/2+5000 {
			t.Fatalf("%d bytes dead, %d live", st.Dead, st.Stored)
		}
		ok(t, sound(s, bytesOf, m.objects))
	})
	t.Logf("%d operations, %d crashes", operations.Load(), crashes.Load())
}

// settle ends what has expired, in the store as in the model, and compares the holds.
func (m *reference) settle(t *rapid.T, s *cas.Store) {
	m.expire()
	for o := range m.ended {
		ok(t, s.EndLease(ctx, o)) // its own timer may not have come yet: it runs by the machine's clock
	}
	if got, want := holdsOf(s), m.holds(); got != want {
		t.Fatalf("holds %q, want %q", got, want)
	}
}

func ok(t interface {
	Helper()
	Fatal(...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// atomicClock goes when it is told, whoever looks at it.
type atomicClock struct{ at atomic.Int64 }

func (c *atomicClock) now() time.Duration   { return time.Duration(c.at.Load()) }
func (c *atomicClock) add(by time.Duration) { c.at.Add(int64(by)) }

// TestCollectBesideEverything (C12): writers, readers and collections at once; what is held is there, and right.
func TestCollectBesideEverything(t *testing.T) {
	start := seed(t)
	clock := &atomicClock{}
	s := open(t, cas.Options{FS: crashfs.New(), SegmentSize: 100_000, Checkpoint: 50_000, Grace: time.Second, Elapsed: clock.now})
	var all sync.WaitGroup
	var done atomic.Bool
	var reads, collections atomic.Int64
	rounds := scale(fewer(150), 5000)
	for worker := range uint64(4) {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(start, worker))
			o := document(fmt.Sprint(worker))
			held := map[cas.ID][]byte{}
			for range rounds {
				// The same contents for all, so that objects come, are shared, and go while others put them again.
				data := content(rng.Uint64N(20), 100+rng.IntN(3)*8000)
				if rng.IntN(30) == 0 {
					data = content(rng.Uint64N(3), 1<<20+100)
				}
				ids, err := s.PutHeld(ctx, o, data)
				if err != nil {
					t.Error(err)
					return
				}
				held[ids[0]] = data
				for id, want := range held {
					if got, err := s.Get(ctx, id, -1); err != nil || !bytes.Equal(got, want) {
						t.Errorf("%s of %s: %d bytes, %v", id, o, len(got), err)
						return
					}
					reads.Add(1)
					if rng.IntN(3) == 0 {
						if err := s.Release(ctx, o, id); err != nil {
							t.Error(err)
						}
						delete(held, id)
					}
				}
				clock.add(time.Second)
			}
			if err := s.Release(ctx, o); err != nil {
				t.Error(err)
			}
		})
	}
	var collector sync.WaitGroup
	collector.Go(func() {
		for !done.Load() {
			if _, err := s.Collect(ctx); err != nil {
				t.Error(err)
				return
			}
			collections.Add(1)
		}
	})
	all.Wait()
	done.Store(true)
	collector.Wait()
	clock.add(time.Minute)
	for range 2 {
		must[cas.Collected](t)(s.Collect(ctx))
	}
	if st := s.Stats(); st.Objects != 0 || st.Stored != 0 || st.Dead > 5000 {
		t.Errorf("%+v", st)
	}
	closeStore(t, s)
	t.Logf("%d puts, %d reads, %d collections", 4*rounds, reads.Load(), collections.Load())
}
