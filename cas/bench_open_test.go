package cas_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/repa-app/repa/cas"
)

// BenchmarkOpen opens a store with many objects, ten held by each owner: after it was closed, and after a crash that left a log of 64 MiB
// that no checkpoint covers.
func BenchmarkOpen(b *testing.B) {
	n := benchObjects(b)
	dir := benchFolder(b)
	folder := filepath.Join(dir, "cas")
	s, ids := storeNumbered(b, folder, n, 48) // small: the index is what counts
	holdByTens(b, s, ids)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("closed", func(b *testing.B) {
		took, heap := time.Duration(0), int64(0)
		for b.Loop() {
			d, size := openOnce(b, folder)
			took, heap = took+d, size
		}
		before, after := inProcess(b, "open", dir)
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(took.Seconds()*1000/float64(b.N), "ms/open")
		b.ReportMetric(float64(heap)/float64(n), "heap-B/object")
		b.ReportMetric(float64(after.resident-before.resident)/float64(n), "B/object")
	})
	for _, each := range []int{1, 64 << 20 / 4096} { // with a sync for few, and with as few syncs as there can be
		b.Run(fmt.Sprintf("killed/batch=%d", each), func(b *testing.B) {
			killed := filepath.Join(dir, fmt.Sprint("killed-", each))
			kill(b, folder, killed, each)
			took := time.Duration(0)
			for i := 0; b.Loop(); i++ {
				folder := fmt.Sprint(killed, "-", i)
				if err := os.CopyFS(folder, os.DirFS(killed)); err != nil {
					b.Fatal(err)
				}
				syncAll(b) // what a crash leaves is on the disk
				d, _ := openOnce(b, folder)
				took += d
				if err := os.RemoveAll(folder); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(took.Seconds()*1000/float64(b.N), "ms/open")
		})
	}
}

// kill puts 64 MiB in batches of so many objects of 4 KiB, and copies the folder as it is before the store is closed.
func kill(b *testing.B, folder, to string, each int) {
	s, err := cas.Open(ctx, folder, cas.Options{Checkpoint: 1 << 40})
	if err != nil {
		b.Fatal(err)
	}
	var next atomic.Int64
	var running sync.WaitGroup
	blocks := slices.Collect(slices.Chunk(incompressible(64<<20/4096), each))
	for range min(16, len(blocks)) {
		running.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(blocks)); i = next.Add(1) - 1 {
				batch := s.Batch()
				for _, data := range blocks[i] {
					if _, err := batch.Put(ctx, data); err != nil {
						b.Error(err)
					}
				}
				if err := batch.Commit(ctx); err != nil {
					b.Error(err)
				}
				batch.Discard()
			}
		})
	}
	running.Wait()
	if err := os.CopyFS(to, os.DirFS(folder)); err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// openOnce opens a store and returns how long that took and what it added to the heap.
func openOnce(b *testing.B, folder string) (time.Duration, int64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	s, err := cas.Open(ctx, folder, cas.Options{})
	took := time.Since(start)
	if err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return took, int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// holdByTens lets owners hold ten objects each; many at once, for they share syncs.
func holdByTens(b *testing.B, s *cas.Store, ids []cas.ID) {
	var next atomic.Int64
	var running sync.WaitGroup
	for range 256 {
		running.Go(func() {
			for from := int(next.Add(10) - 10); from < len(ids); from = int(next.Add(10) - 10) {
				if err := s.Hold(ctx, document(fmt.Sprintf("%020d", from)), ids[from:min(len(ids), from+10)]...); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
}
