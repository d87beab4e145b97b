package cas_test

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/repa-app/repa/cas"
)

// BenchmarkCollect collects as fast as it can, and at a rate that leaves the disk to others.
func BenchmarkCollect(b *testing.B) {
	b.Run("unbounded", func(b *testing.B) { collectBeside(b, 0) })
	b.Run("rate=32MiB", func(b *testing.B) { collectBeside(b, 32<<20) })
}

// collectBeside collects every other of many objects while eight callers go on putting, and compares their rate with what it was just
// before: the median of five rounds. Of the puts that a collection ran beside, and of those before, it reports the slowest hundredth and
// the longest.
func collectBeside(b *testing.B, rate int64) {
	const rounds, objects = 5, 40_000
	s, err := cas.Open(ctx, filepath.Join(benchFolder(b), "cas"), cas.Options{Grace: -1, SegmentSize: 16 << 20, Rate: rate})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var alone, beside putting
	series := map[string][]float64{}
	for range rounds {
		putForCollection(b, s, objects)
		syncAll(b)
		ended := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(ended) })
		before := putUntil(b, s, ended)

		done := make(chan struct{})
		var collected cas.Collected
		var took time.Duration
		go func() {
			defer close(done)
			start := time.Now()
			var err error
			if collected, err = s.Collect(ctx); err != nil {
				b.Error(err)
			}
			took = time.Since(start)
		}()
		during := putUntil(b, s, done)
		<-done
		series["before"] = append(series["before"], before.rate())
		series["during"] = append(series["during"], during.rate())
		series["seconds"] = append(series["seconds"], took.Seconds())
		series["MiB freed"] = append(series["MiB freed"], float64(collected.Bytes)/(1<<20))
		alone.each, beside.each = append(alone.each, before.each...), append(beside.each, during.each...)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(series["during"]), "puts/s")
	b.ReportMetric(ratio(series["during"], series["before"]), "x-puts")
	b.ReportMetric(median(series["seconds"]), "s-collect")
	b.ReportMetric(median(series["MiB freed"]), "MiB-freed")
	b.ReportMetric(alone.slowest(0.99), "ms-p99-before")
	b.ReportMetric(beside.slowest(0.99), "ms-p99")
	b.ReportMetric(alone.slowest(1), "ms-max-before")
	b.ReportMetric(beside.slowest(1), "ms-max")
	b.Logf("min median max: %s", spread(series))
}

// putForCollection puts objects of which one owner holds every other, so that each pack is half dead.
func putForCollection(b *testing.B, s *cas.Store, objects int) {
	keep, drop := s.Batch(), s.Batch()
	defer keep.Discard()
	defer drop.Discard()
	for i, data := range incompressible(objects) {
		batch := keep
		if i%2 == 0 {
			batch = drop
		}
		if _, err := batch.Put(ctx, data); err != nil {
			b.Fatal(err)
		}
	}
	if err := keep.CommitHeld(ctx, document("keep")); err != nil {
		b.Fatal(err)
	}
	if err := drop.Commit(ctx); err != nil {
		b.Fatal(err)
	}
}

// putting is how long puts took, each and all together.
type putting struct {
	each []time.Duration
	took time.Duration
}

func (p *putting) rate() float64 { return float64(len(p.each)) / p.took.Seconds() }

// slowest is the milliseconds that so great a part of the puts took at most.
func (p *putting) slowest(part float64) float64 {
	slices.Sort(p.each)
	return p.each[min(len(p.each)-1, int(part*float64(len(p.each))))].Seconds() * 1000
}

// putUntil lets eight callers put objects of 4 KiB and hold them until a channel is closed.
func putUntil(b *testing.B, s *cas.Store, ended <-chan struct{}) (out putting) {
	var mu sync.Mutex
	var running sync.WaitGroup
	began := time.Now()
	for range 8 {
		running.Go(func() {
			var each []time.Duration
			for {
				select {
				case <-ended:
					mu.Lock()
					out.each = append(out.each, each...)
					mu.Unlock()
					return
				default:
				}
				data := incompressible(1)[0]
				start := time.Now()
				if _, err := s.PutHeld(ctx, document("new"), data); err != nil {
					b.Error(err)
					return
				}
				each = append(each, time.Since(start))
			}
		})
	}
	running.Wait()
	out.took = time.Since(began)
	return out
}
