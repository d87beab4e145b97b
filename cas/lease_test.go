package cas_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/testkit/crashfs"
)

func lease(id string) cas.Owner { return cas.Owner{Kind: cas.OwnerLease, ID: id} }

// A lease ends when its time has come, and not before, by the clock of the bubble.
func TestLeaseRunsOut(t *testing.T) {
	small := []byte("leased") // too short for compression, whose encoder would stay in the bubble
	synctest.Test(t, func(t *testing.T) {
		opts := cas.Options{FS: crashfs.New(), Grace: -1}
		s := open(t, opts)
		id := must[cas.ID](t)(s.Put(ctx, small))
		ok(t, s.Lease(ctx, ownerL, time.Minute, id))
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if left, there := s.Remains(ownerL); !there || left != time.Second || len(s.Held(ownerL)) != 1 {
			t.Errorf("%s remain, %t", left, there)
		}
		must[cas.Collected](t)(s.Collect(ctx))
		wantBytes(t, s, id, small)
		time.Sleep(time.Second)
		synctest.Wait()
		if _, there := s.Remains(ownerL); there || len(s.Held(ownerL)) != 0 {
			t.Error("it has not ended")
		}
		other := must[cas.ID](t)(s.Put(ctx, small))
		ok(t, s.Lease(ctx, lease("long"), math.MaxInt64, other))
		time.Sleep(1000 * time.Hour)
		synctest.Wait()
		if left, there := s.Remains(lease("long")); !there || left < 1000*time.Hour {
			t.Errorf("the longest lease: %s, %t", left, there)
		}
		ok(t, s.EndLease(ctx, lease("long")))
		must[cas.Collected](t)(s.Collect(ctx))
		if s.Has(id) {
			t.Error("it is not collected")
		}
		if err := s.Lease(ctx, ownerL, time.Minute); !errors.Is(err, cas.ErrLeaseEnded) {
			t.Errorf("used again after it ran out: %v", err)
		}
		closeStore(t, s)
		s = open(t, opts)
		if err := s.Renew(ctx, ownerL, time.Minute); !errors.Is(err, cas.ErrLeaseEnded) {
			t.Errorf("renewed after a restart: %v", err)
		}
		closeStore(t, s)
	})
}

// What remains runs on after a restart; the time between does not count. Renewing and ending work across it.
func TestLeaseAcrossRestarts(t *testing.T) {
	clock := &atomicClock{}
	disk := crashfs.New()
	opts := cas.Options{FS: disk, Grace: -1, Elapsed: clock.now}
	s := open(t, opts)
	id := must[cas.ID](t)(s.Put(ctx, dataX))
	for _, o := range []string{"a", "b", "ended", "empty"} {
		ok(t, s.Lease(ctx, lease(o), time.Hour, id))
	}
	ok(t, s.EndLease(ctx, lease("ended")))
	ok(t, s.EndLease(ctx, lease("ended")))
	ok(t, s.Lease(ctx, lease("empty"), time.Hour))
	clock.add(20 * time.Minute)
	closeStore(t, s)
	clock.add(24 * time.Hour)
	s = open(t, opts)
	for _, o := range []string{"a", "b", "empty"} {
		if left, there := s.Remains(lease(o)); !there || left != 40*time.Minute {
			t.Errorf("%s: %s, %t", o, left, there)
		}
	}
	ok(t, s.Renew(ctx, lease("b"), 2*time.Hour))
	if err := s.Renew(ctx, lease("never"), time.Hour); !errors.Is(err, cas.ErrNotFound) {
		t.Errorf("renewed what never was: %v", err)
	}
	for _, err := range []error{s.Lease(ctx, lease("ended"), time.Hour, id), s.Renew(ctx, lease("ended"), time.Hour)} {
		if !errors.Is(err, cas.ErrLeaseEnded) {
			t.Errorf("ended: %v", err)
		}
	}
	for _, err := range []error{s.Lease(ctx, ownerA, time.Hour, id), s.Lease(ctx, lease("x"), 0, id), s.Renew(ctx, lease("x"), -1)} {
		if err == nil {
			t.Error("taken")
		}
	}
	clock.add(41 * time.Minute)
	killed := disk.All()
	closeStore(t, s)
	// Killed: the lease that was renewed starts from its record, the others from the checkpoint.
	opts.FS = killed
	s = open(t, opts)
	if left, there := s.Remains(lease("b")); !there || left != 2*time.Hour {
		t.Errorf("%s, %t", left, there)
	}
	closeStore(t, s)
}

// Names of leases that have ended are remembered, thousands of them, not all for ever.
func TestEndedLeasesAreBounded(t *testing.T) {
	opts := cas.Options{FS: crashfs.New(), Elapsed: (&manual{}).now}
	s := open(t, opts)
	const many = 5000
	for i := range many {
		ok(t, s.EndLease(ctx, lease(fmt.Sprint(i))))
	}
	for range 2 {
		if err := s.Lease(ctx, lease(fmt.Sprint(many-4000)), time.Hour); !errors.Is(err, cas.ErrLeaseEnded) {
			t.Errorf("of the last 4,000: %v", err)
		}
		closeStore(t, s)
		s = open(t, opts)
	}
	if err := s.Lease(ctx, lease("0"), time.Hour); err != nil {
		t.Errorf("of 5,000 ago: %v", err)
	}
	closeStore(t, s)
}
