package cas_test

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/repa-app/repa/cas"
)

// BenchmarkCollect collects half of many objects while eight callers go on putting, and compares their rate with that before.
func BenchmarkCollect(b *testing.B) {
	const objects, writers = 40_000, 8
	s, err := cas.Open(ctx, filepath.Join(benchFolder(b), "cas"), cas.Options{Grace: -1, SegmentSize: 16 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var alone, beside, longest, took time.Duration
	var puts, freed int64
	for range b.N {
		keep, drop := s.Batch(), s.Batch()
		for i := range objects {
			batch := keep
			if i%2 == 0 {
				batch = drop
			}
			if _, err := batch.Put(ctx, incompressible(1)[0]); err != nil {
				b.Fatal(err)
			}
		}
		if err := keep.CommitHeld(ctx, document("keep")); err != nil {
			b.Fatal(err)
		}
		if err := drop.Commit(ctx); err != nil {
			b.Fatal(err)
		}
		keep.Discard()
		drop.Discard()
		start := time.Now()
		const each = 1000
		putAll(b, s, writers, each, nil)
		alone += time.Since(start)
		done := make(chan struct{})
		go func() {
			defer close(done)
			start := time.Now()
			c, err := s.Collect(ctx)
			if err != nil {
				b.Error(err)
			}
			took += time.Since(start)
			freed += c.Bytes
		}()
		start = time.Now()
		n, max := putAll(b, s, writers, each, done)
		beside += time.Since(start)
		puts += n
		longest = max
		<-done
	}
	n := float64(b.N)
	before := writers * 1000 * n / alone.Seconds()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(took.Seconds()/n, "s-collect")
	b.ReportMetric(float64(freed)/n/(1<<20), "MiB-freed")
	b.ReportMetric(float64(puts)/beside.Seconds()/before, "x-puts")
	b.ReportMetric(float64(longest.Microseconds())/1000, "ms-longest-put")
}

// putAll lets callers put until each has put so many, or, when until is not nil, until it is closed. It returns the number and the longest.
func putAll(b *testing.B, s *cas.Store, callers, each int, until <-chan struct{}) (n int64, longest time.Duration) {
	var mu sync.Mutex
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-until:
					return
				default:
				}
				if until == nil && i == each {
					return
				}
				data := incompressible(1)[0]
				start := time.Now()
				if _, err := s.PutHeld(ctx, document("new"), data); err != nil {
					b.Error(err)
					return
				}
				d := time.Since(start)
				mu.Lock()
				n, longest = n+1, max(longest, d)
				mu.Unlock()
			}
		})
	}
	running.Wait()
	return n, longest
}
