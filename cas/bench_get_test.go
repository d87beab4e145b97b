package cas_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/repa-app/repa/cas"
)

// benchObjects is how many objects the benchmarks of reads and of opening work with: REPA_BENCH_OBJECTS, or 100,000.
func benchObjects(b *testing.B) int {
	n, err := strconv.Atoi(os.Getenv("REPA_BENCH_OBJECTS"))
	if err != nil {
		return 100_000
	}
	return n
}

// numbered is a block that only its number says: incompressible and cheap to make.
func numbered(n int, size int) []byte {
	out := make([]byte, size)
	rng := rand.NewPCG(uint64(n), 99)
	for i := 0; i+8 <= size; i += 8 {
		binary.LittleEndian.PutUint64(out[i:], rng.Uint64())
	}
	return out
}

// BenchmarkGet reads random 4 KiB objects, verified, from the machine's cache. The bound is pread and BLAKE3 of the same bytes.
func BenchmarkGet(b *testing.B) {
	n := benchObjects(b)
	s, err := cas.Open(ctx, filepath.Join(benchFolder(b), "cas"), cas.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	ids := make([]cas.ID, n)
	batch := s.Batch()
	for i := range ids {
		if ids[i], err = batch.Put(ctx, numbered(i, 4096)); err != nil {
			b.Fatal(err)
		}
	}
	if err := batch.Commit(ctx); err != nil {
		b.Fatal(err)
	}
	batch.Discard()
	f, err := os.Create(filepath.Join(benchFolder(b), "bound"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	out := bufio.NewWriterSize(f, 1<<20)
	for i := range n { // as much as ours, so that the cache helps both alike
		if _, err := out.Write(numbered(i, 4096)); err != nil {
			b.Fatal(err)
		}
	}
	if err := out.Flush(); err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	buf := make([]byte, 4096)
	var ours, bound time.Duration
	for b.Loop() {
		const burst = 2000
		start := time.Now()
		for range burst {
			if _, err := s.Get(ctx, ids[rng.IntN(n)], -1); err != nil {
				b.Fatal(err)
			}
		}
		middle := time.Now()
		for range burst {
			if _, err := f.ReadAt(buf, int64(rng.IntN(n))*4096); err != nil {
				b.Fatal(err)
			}
			cas.Sum(buf)
		}
		ours, bound = ours+middle.Sub(start), bound+time.Since(middle)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(2000*float64(b.N)/ours.Seconds(), "gets/s")
	b.ReportMetric(bound.Seconds()/ours.Seconds(), "x-bound")
}

// BenchmarkOpen opens a store with many objects, ten held by each owner, after it was closed, and after a crash that left a tail.
func BenchmarkOpen(b *testing.B) {
	n := benchObjects(b)
	dir := filepath.Join(benchFolder(b), "cas")
	s, err := cas.Open(ctx, dir, cas.Options{})
	if err != nil {
		b.Fatal(err)
	}
	const size = 48 // small: the index is what counts
	var ids []cas.ID
	batch := s.Batch()
	for i := range n {
		id, err := batch.Put(ctx, numbered(i, size))
		if err != nil {
			b.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := batch.Commit(ctx); err != nil {
		b.Fatal(err)
	}
	batch.Discard()
	for from := 0; from < n; from += 10 {
		if err := s.Hold(ctx, document(fmt.Sprintf("%020d", from)), ids[from:min(n, from+10)]...); err != nil {
			b.Fatal(err)
		}
		if from == 2000 && n > 100_000 {
			break // one by one takes minutes; the rest is held by few
		}
	}
	for from := 2010; n > 100_000 && from < n; from += 100_000 {
		if err := s.Hold(ctx, document(fmt.Sprintf("%020d", from)), ids[from:min(n, from+100_000)]...); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	var opened time.Duration
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		start := time.Now()
		s, err := cas.Open(ctx, dir, cas.Options{})
		opened += time.Since(start)
		if err != nil {
			b.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(opened.Seconds()*1000/float64(b.N), "ms/open")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "B/object")
}
