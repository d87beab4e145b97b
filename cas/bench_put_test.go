package cas_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	_ "modernc.org/sqlite"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/testkit/reftree"
)

// benchFolder makes a folder on a real disk: REPA_BENCH_DIR, or beside the package.
func benchFolder(b testing.TB) string {
	b.Helper()
	parent := os.Getenv("REPA_BENCH_DIR")
	if parent == "" {
		parent = "."
	}
	dir, err := os.MkdirTemp(parent, ".bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			b.Error(err)
		}
	})
	return dir
}

// putter stores 4 KiB durably; any number of callers.
type putter struct {
	name string
	put  func(data []byte) error
	done func() error
}

var benchSerial atomic.Uint64

// incompressible are n different blocks of 4 KiB.
func incompressible(n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		rng := rand.New(rand.NewPCG(benchSerial.Add(1), 1))
		out[i] = make([]byte, 4096)
		for j := 0; j < 4096; j += 8 {
			v := rng.Uint64()
			for k := range 8 {
				out[i][j+k] = byte(v >> (8 * k))
			}
		}
	}
	return out
}

func openOurs(b testing.TB, dir string) putter {
	s, err := cas.Open(ctx, filepath.Join(dir, "cas"), cas.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return putter{"ours", func(data []byte) error { _, err := s.Put(ctx, data); return err }, s.Close}
}

// openBound is what the disk allows: whoever waits is written with one write and one sync, by the goroutine that comes first.
func openBound(b testing.TB, dir string) putter {
	f, err := os.Create(filepath.Join(dir, "bound"))
	if err != nil {
		b.Fatal(err)
	}
	type waiting struct {
		data []byte
		done chan error
	}
	queue := make(chan waiting, 1024)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var buf []byte
		var at int64
		for first := range queue {
			group := []waiting{first}
			for more := true; more; {
				select {
				case w, ok := <-queue:
					if more = ok; ok {
						group = append(group, w)
					}
				default:
					more = false
				}
			}
			buf = buf[:0]
			for _, w := range group {
				buf = append(buf, w.data...)
			}
			_, err := f.WriteAt(buf, at)
			if err == nil {
				err = f.Sync()
			}
			at += int64(len(buf))
			for _, w := range group {
				w.done <- err
			}
		}
	}()
	return putter{"bound", func(data []byte) error {
		w := waiting{data, make(chan error, 1)}
		queue <- w
		return <-w.done
	}, func() error { close(queue); <-ended; return f.Close() }}
}

func openBolt(b testing.TB, dir string, callers int) putter {
	db, err := bbolt.Open(filepath.Join(dir, "bolt"), 0o600, nil)
	if err == nil {
		db.MaxBatchDelay = time.Millisecond
		err = db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("o")); return err })
	}
	if err != nil {
		b.Fatal(err)
	}
	return putter{"bbolt", func(data []byte) error {
		id := cas.Sum(data)
		put := func(tx *bbolt.Tx) error { return tx.Bucket([]byte("o")).Put(id[:], data) }
		if callers == 1 {
			return db.Update(put)
		}
		return db.Batch(put)
	}, db.Close}
}

func openSQLite(b testing.TB, dir string) putter {
	db, err := sql.Open("sqlite", filepath.Join(dir, "sqlite")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(60000)")
	if err == nil {
		db.SetMaxOpenConns(1) // one writer at a time is what it does best
		_, err = db.Exec("CREATE TABLE o (id BLOB PRIMARY KEY, data BLOB) WITHOUT ROWID")
	}
	if err != nil {
		b.Fatal(err)
	}
	return putter{"sqlite", func(data []byte) error {
		id := cas.Sum(data)
		_, err := db.ExecContext(context.Background(), "INSERT OR IGNORE INTO o VALUES (?, ?)", id[:], data)
		return err
	}, db.Close}
}

func openFiles(b testing.TB, dir string) putter {
	folder := filepath.Join(dir, "files")
	if err := os.Mkdir(folder, 0o700); err != nil {
		b.Fatal(err)
	}
	d, err := os.Open(folder)
	if err != nil {
		b.Fatal(err)
	}
	return putter{"files", func(data []byte) error {
		f, err := os.CreateTemp(folder, "t")
		if err != nil {
			return err
		}
		if _, err = f.Write(data); err == nil {
			err = f.Sync()
		}
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err == nil {
			err = os.Rename(f.Name(), filepath.Join(folder, cas.Sum(data).String()))
		}
		if err == nil {
			err = d.Sync()
		}
		return err
	}, d.Close}
}

// putRate stores all data with so many callers and returns puts a second.
func putRate(b testing.TB, p putter, callers int, data [][]byte) float64 {
	start := time.Now()
	var next atomic.Int64
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(data)); i = next.Add(1) - 1 {
				if err := p.put(data[i]); err != nil {
					b.Errorf("%s: %v", p.name, err)
					return
				}
			}
		})
	}
	running.Wait()
	return float64(len(data)) / time.Since(start).Seconds()
}

// prose are n different texts of 4 KiB.
func prose(n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		r := reftree.Text(benchSerial.Add(1), 4096)
		out[i] = make([]byte, 4096)
		if _, err := io.ReadFull(r, out[i]); err != nil {
			panic(err)
		}
	}
	return out
}

// BenchmarkPut stores different blocks of 4 KiB durably, we and the others in turn. An x metric is our speed divided by the other's, the
// median of the rounds.
func BenchmarkPut(b *testing.B) {
	for _, callers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("4KiB/callers=%d", callers), func(b *testing.B) {
			dir := benchFolder(b)
			compare(b, callers, incompressible, openOurs(b, dir), openBound(b, dir), openBolt(b, dir, callers), openSQLite(b, dir), openFiles(b, dir))
		})
	}
	for _, callers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("4KiB-text/callers=%d", callers), func(b *testing.B) {
			dir := benchFolder(b)
			compare(b, callers, prose, openOurs(b, dir), openBound(b, dir), openBolt(b, dir, callers))
		})
	}
}

// compare lets all put in turn, ours first, and reports their rates beside ours.
func compare(b *testing.B, callers int, blocks func(n int) [][]byte, all ...putter) {
	const rounds = 7
	count := map[int]int{1: 400, 16: 4000, 256: 16_000}[callers]
	few := map[int]int{1: 200, 16: 800, 256: 2000}[callers]
	rates := map[string][]float64{}
	for range rounds {
		for i, p := range all {
			n := count
			if i > 1 {
				n = few // they are slower
			}
			rates[p.name] = append(rates[p.name], putRate(b, p, callers, blocks(n)))
		}
	}
	for _, p := range all {
		if err := p.done(); err != nil {
			b.Error(err)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(rates["ours"]), "puts/s")
	for _, p := range all[1:] {
		ratios := make([]float64, rounds)
		for i := range ratios {
			ratios[i] = rates["ours"][i] / rates[p.name][i]
		}
		b.ReportMetric(median(ratios), "x-"+p.name)
	}
	b.Logf("puts/s, min median max: %s", spread(rates))
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

func spread(series map[string][]float64) (out string) {
	for _, name := range slices.Sorted(maps.Keys(series)) {
		v := series[name]
		out += fmt.Sprintf("%s %.4g %.4g %.4g; ", name, slices.Min(v), median(v), slices.Max(v))
	}
	return out
}
