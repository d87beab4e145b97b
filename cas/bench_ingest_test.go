package cas_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/cas/internal/squeeze"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/testkit/reftree"
)

// benchScale is the scale of the reference tree: REPA_BENCH_SCALE, or a tenth.
func benchScale() float64 {
	if scale, err := strconv.ParseFloat(os.Getenv("REPA_BENCH_SCALE"), 64); err == nil {
		return scale
	}
	return 0.1
}

// BenchmarkIngest takes folders in, durably and compressed: the reference tree, its notes alone, and one large file. Ours and what the
// machine allows take turns; other programs come once, because they take up to half a minute.
func BenchmarkIngest(b *testing.B) {
	scale := benchScale()
	b.Run("tree", func(b *testing.B) {
		dir := benchFolder(b)
		if err := reftree.Write(filepath.Join(dir, "tree"), 1, scale); err != nil {
			b.Fatal(err)
		}
		tree := compareIngest(b, dir)
		gitIngest(b, tree)
		resticIngest(b, tree)
	})
	b.Run("notes", func(b *testing.B) {
		dir := benchFolder(b)
		if err := reftree.Write(dir, 1, scale); err != nil {
			b.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "notes"), filepath.Join(dir, "tree")); err != nil {
			b.Fatal(err)
		}
		compareIngest(b, dir)
	})
	b.Run("file", func(b *testing.B) {
		dir := benchFolder(b)
		size := int64(512 * scale * (1 << 20))
		if err := writeFile(filepath.Join(dir, "tree", "large"), newHalf(size)); err != nil {
			b.Fatal(err)
		}
		compareIngest(b, dir)
	})
}

// ingested says how long ours took and how much it stored.
type ingested struct {
	dir    string
	took   time.Duration
	stored int64
}

// compareIngest works with the files below dir/tree.
func compareIngest(b *testing.B, dir string) ingested {
	const rounds = 5
	tree := filepath.Join(dir, "tree")
	names, err := filesBelow(tree)
	if err != nil {
		b.Fatal(err)
	}
	times := map[string][]float64{}
	phase := func(name string, f func() error) {
		syncAll(b) // nobody pays for what was written before
		times[name] = append(times[name], timed(b, f).Seconds())
	}
	var stored int64
	for range rounds {
		phase("bound", func() error { return boundIngest(names, filepath.Join(dir, "bound")) })
		s, err := cas.Open(ctx, filepath.Join(dir, "cas"), cas.Options{})
		if err != nil {
			b.Fatal(err)
		}
		ids := map[string]cas.ID{}
		take := func() error { return ingest(s, tree, names, ids) }
		phase("ingest", take)
		phase("again", take)
		phase("verify", func() error {
			v, err := s.Verify(ctx, nil)
			if err == nil && !v.Sound() {
				err = fmt.Errorf("%+v", v)
			}
			return err
		})
		phase("cp", func() error {
			return exec.Command("sh", "-c", `cp -r "$0" "$1" && sync`, tree, filepath.Join(dir, "copied")).Run()
		})
		phase("restore", func() error { return restoreAll(s, tree, names, ids, filepath.Join(dir, "restored")) })
		stored = s.Stats().Stored
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		for _, name := range []string{"bound", "cas", "copied", "restored"} {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				b.Fatal(err)
			}
		}
	}
	_, after := inProcess(b, "ingest", dir)
	b.ReportMetric(0, "ns/op")
	for _, name := range []string{"ingest", "again", "verify", "restore"} {
		b.ReportMetric(median(times[name]), "s-"+name)
	}
	b.ReportMetric(ratio(times["bound"], times["ingest"]), "x-bound")
	b.ReportMetric(ratio(times["cp"], times["restore"]), "x-cp")
	b.ReportMetric(float64(stored)/(1<<20), "MiB-stored")
	b.ReportMetric(float64(after.peak)/(1<<20), "MiB-peak")
	b.Logf("%d files; seconds, min median max: %s", len(names), spread(times))
	return ingested{dir, time.Duration(median(times["ingest"]) * float64(time.Second)), stored}
}

// ratio is the median of what each of a is to the one of b of the same round.
func ratio(a, b []float64) float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return median(out)
}

func syncAll(b testing.TB) {
	if err := exec.Command("sync").Run(); err != nil {
		b.Fatal(err)
	}
}

func writeFile(name string, r io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

func timed(b *testing.B, f func() error) time.Duration {
	b.Helper()
	start := time.Now()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

func ingest(s *cas.Store, tree string, names []string, ids map[string]cas.ID) error {
	fsys, err := vfs.OS(tree)
	if err != nil {
		return err
	}
	defer fsys.Close()
	batch := s.Batch()
	defer batch.Discard()
	for _, name := range names {
		rel, err := filepath.Rel(tree, name)
		if err != nil {
			return err
		}
		if ids[rel], err = batch.Import(ctx, fsys, filepath.ToSlash(rel)); err != nil {
			return err
		}
	}
	return batch.CommitHeld(ctx, document("tree"))
}

// restoreAll writes all files anew and syncs them, one after the other as cp does.
func restoreAll(s *cas.Store, tree string, names []string, ids map[string]cas.ID, to string) error {
	for _, name := range names {
		rel, err := filepath.Rel(tree, name)
		if err != nil {
			return err
		}
		o, err := s.Open(ctx, ids[rel])
		if err != nil {
			return err
		}
		if err := errors.Join(writeFile(filepath.Join(to, rel), o), o.Close()); err != nil {
			return err
		}
	}
	return exec.Command("sync").Run()
}

// boundIngest reads, hashes and compresses on all cores into one file and syncs it.
func boundIngest(names []string, to string) error {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	work := make(chan string)
	var workers sync.WaitGroup
	var mu sync.Mutex
	var at int64
	errs := make(chan error, runtime.GOMAXPROCS(0))
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			buf, packed := make([]byte, 1<<20), []byte(nil)
			for name := range work {
				f, err := os.Open(name)
				for err == nil {
					var n int
					n, err = io.ReadFull(f, buf)
					if n == 0 {
						break
					}
					cas.Sum(buf[:n])
					body, ok := squeeze.Encode(packed[:0], buf[:n])
					if packed = body; !ok {
						body = buf[:n]
					}
					mu.Lock()
					from := at
					at += int64(len(body))
					mu.Unlock()
					if _, werr := out.WriteAt(body, from); werr != nil {
						errs <- werr
						return
					}
				}
				f.Close()
			}
		})
	}
	for _, name := range names {
		select {
		case work <- name:
		case err := <-errs:
			return err
		}
	}
	close(work)
	workers.Wait()
	return out.Sync()
}

func gitIngest(b *testing.B, ours ingested) {
	if _, err := exec.LookPath("git"); err != nil {
		b.Log("git is not installed")
		return
	}
	repo := filepath.Join(ours.dir, "git")
	if out, err := exec.Command("git", "init", "-q", repo).CombinedOutput(); err != nil {
		b.Fatalf("git init: %v %s", err, out)
	}
	syncAll(b)
	gitDir, err := filepath.Abs(filepath.Join(repo, ".git"))
	if err != nil {
		b.Fatal(err)
	}
	took := timed(b, exec.Command("git", "-C", filepath.Join(ours.dir, "tree"), "--git-dir", gitDir, "--work-tree", ".",
		"-c", "core.fsync=committed", "-c", "core.fsyncMethod=batch", "add", "-A").Run)
	b.ReportMetric(took.Seconds()/ours.took.Seconds(), "x-git")
}

func resticIngest(b *testing.B, ours ingested) {
	if _, err := exec.LookPath("restic"); err != nil {
		b.Log("restic is not installed")
		return
	}
	repo := filepath.Join(ours.dir, "restic")
	run := func(args ...string) error {
		cmd := exec.Command("restic", append([]string{"-q", "--no-cache", "-r", repo}, args...)...)
		cmd.Env = append(os.Environ(), "RESTIC_PASSWORD=x")
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("restic %v: %w: %s", args, err, out)
		}
		return err
	}
	if err := run("init"); err != nil {
		b.Fatal(err)
	}
	syncAll(b)
	took := timed(b, func() error { return run("backup", filepath.Join(ours.dir, "tree")) })
	files, err := filesBelow(repo)
	if err != nil {
		b.Fatal(err)
	}
	var size int64
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			b.Fatal(err)
		}
		size += info.Size()
	}
	b.ReportMetric(took.Seconds()/ours.took.Seconds(), "x-restic")
	b.ReportMetric(float64(size)/float64(ours.stored), "x-restic-size")
}
