package cas_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

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

// BenchmarkGet reads random 4 KiB objects from the machine's cache: ours verified, beside pread and BLAKE3 of as many other bytes, and
// beside bbolt, which verifies nothing. They take turns of 2,000 reads for each caller.
func BenchmarkGet(b *testing.B) {
	n := benchObjects(b)
	dir := benchFolder(b)
	s, ids := storeNumbered(b, filepath.Join(dir, "cas"), n, 4096)
	defer s.Close()
	f := fileNumbered(b, filepath.Join(dir, "bound"), n)
	defer f.Close()
	db := boltNumbered(b, filepath.Join(dir, "bolt"), ids)
	defer db.Close()
	getters := []getter{
		{"ours", func(i int, _ []byte) error { _, err := s.Get(ctx, ids[i], -1); return err }},
		{"bound", func(i int, buf []byte) error {
			_, err := f.ReadAt(buf, int64(i)*4096)
			cas.Sum(buf)
			return err
		}},
		{"bbolt", func(i int, buf []byte) error {
			return db.View(func(tx *bbolt.Tx) error {
				copy(buf, tx.Bucket([]byte("o")).Get(ids[i][:]))
				return nil
			})
		}},
	}
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprintf("4KiB/callers=%d", callers), func(b *testing.B) {
			const burst = 2000
			took := make([]time.Duration, len(getters))
			for b.Loop() {
				for i, g := range getters {
					start := time.Now()
					readBurst(b, g, callers, burst, n)
					took[i] += time.Since(start)
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(burst*callers*b.N)/took[0].Seconds(), "gets/s")
			for i, g := range getters[1:] {
				b.ReportMetric(took[i+1].Seconds()/took[0].Seconds(), "x-"+g.name)
			}
		})
	}
}

// getter reads object i of those that all have; it may use buf.
type getter struct {
	name string
	get  func(i int, buf []byte) error
}

func readBurst(b *testing.B, g getter, callers, burst, n int) {
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			rng := rand.New(rand.NewPCG(benchSerial.Add(1), 2))
			buf := make([]byte, 4096)
			for range burst {
				if err := g.get(rng.IntN(n), buf); err != nil {
					b.Errorf("%s: %v", g.name, err)
					return
				}
			}
		})
	}
	running.Wait()
}

func storeNumbered(b *testing.B, dir string, n, size int) (*cas.Store, []cas.ID) {
	s, err := cas.Open(ctx, dir, cas.Options{})
	if err != nil {
		b.Fatal(err)
	}
	ids := make([]cas.ID, n)
	batch := s.Batch()
	defer batch.Discard()
	for i := range ids {
		if ids[i], err = batch.Put(ctx, numbered(i, size)); err != nil {
			b.Fatal(err)
		}
	}
	if err := batch.Commit(ctx); err != nil {
		b.Fatal(err)
	}
	return s, ids
}

func fileNumbered(b *testing.B, name string, n int) *os.File {
	f, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	out := bufio.NewWriterSize(f, 1<<20)
	for i := range n {
		if _, err := out.Write(numbered(i, 4096)); err != nil {
			b.Fatal(err)
		}
	}
	if err := out.Flush(); err != nil {
		b.Fatal(err)
	}
	return f
}

// boltNumbered is filled in the order of ids, without syncs, which is how it is fast.
func boltNumbered(b *testing.B, name string, ids []cas.ID) *bbolt.DB {
	db, err := bbolt.Open(name, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true})
	if err != nil {
		b.Fatal(err)
	}
	order := make([]int, len(ids))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return bytes.Compare(ids[i][:], ids[j][:]) })
	for part := range slices.Chunk(order, 10_000) {
		err := db.Update(func(tx *bbolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists([]byte("o"))
			for _, i := range part {
				if err == nil {
					err = bucket.Put(ids[i][:], numbered(i, 4096))
				}
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return db
}
