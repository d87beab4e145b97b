package cas_test

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
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

// BenchmarkIngest takes the reference tree in, durably and compressed, beside what the machine allows and what others do with it, each
// once: a peer takes up to half a minute at full scale.
func BenchmarkIngest(b *testing.B) {
	dir := benchFolder(b)
	tree := filepath.Join(dir, "tree")
	if err := reftree.Write(tree, 1, benchScale()); err != nil {
		b.Fatal(err)
	}
	var names []string
	err := filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	bound := timed(b, func() error { return boundIngest(names, filepath.Join(dir, "bound")) })
	var ours, again, verify, restore time.Duration
	var stored int64
	for range b.N {
		folder := filepath.Join(dir, "cas")
		s, err := cas.Open(ctx, folder, cas.Options{})
		if err != nil {
			b.Fatal(err)
		}
		ids := map[string]cas.ID{}
		take := func() error { return ingest(s, tree, names, ids) }
		ours += timed(b, take)
		again += timed(b, take)
		verify += timed(b, func() error {
			v, err := s.Verify(ctx, nil)
			if err == nil && !v.Sound() {
				err = fmt.Errorf("%+v", v)
			}
			return err
		})
		restore += timed(b, func() error { return restoreAll(s, ids, filepath.Join(dir, "restored")) })
		stored = s.Stats().Stored
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		for _, d := range []string{folder, filepath.Join(dir, "restored")} {
			if err := os.RemoveAll(d); err != nil {
				b.Fatal(err)
			}
		}
	}
	n := time.Duration(b.N)
	ours, again, verify, restore = ours/n, again/n, verify/n, restore/n
	copied := timed(b, func() error {
		return exec.Command("sh", "-c", fmt.Sprintf("cp -r '%s' '%s/copied' && sync", tree, dir)).Run()
	})
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ours.Seconds(), "s-ingest")
	b.ReportMetric(bound.Seconds()/ours.Seconds(), "x-bound")
	b.ReportMetric(again.Seconds(), "s-again")
	b.ReportMetric(verify.Seconds(), "s-verify")
	b.ReportMetric(restore.Seconds(), "s-restore")
	b.ReportMetric(copied.Seconds()/restore.Seconds(), "x-cp")
	b.ReportMetric(float64(stored)/(1<<20), "MiB-stored")
	gitIngest(b, dir, names, ours)
	resticIngest(b, dir, tree, ours, stored)
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

func restoreAll(s *cas.Store, ids map[string]cas.ID, to string) error {
	for name, id := range ids {
		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		o, err := s.Open(ctx, id)
		if err == nil {
			_, err = o.WriteTo(f)
			o.Close()
		}
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
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

func gitIngest(b *testing.B, dir string, names []string, ours time.Duration) {
	if _, err := exec.LookPath("git"); err != nil {
		b.Log("git is not installed")
		return
	}
	repo := filepath.Join(dir, "git")
	if out, err := exec.Command("git", "init", "-q", repo).CombinedOutput(); err != nil {
		b.Fatalf("git init: %v %s", err, out)
	}
	cmd := exec.Command("git", "-C", repo, "-c", "core.fsync=loose-object", "-c", "core.fsyncMethod=batch", "hash-object", "-w", "--stdin-paths")
	absolute := make([]string, len(names))
	for i, n := range names {
		absolute[i], _ = filepath.Abs(n)
	}
	cmd.Stdin = strings.NewReader(strings.Join(absolute, "\n") + "\n")
	took := timed(b, cmd.Run)
	b.ReportMetric(took.Seconds()/ours.Seconds(), "x-git")
}

func resticIngest(b *testing.B, dir, tree string, ours time.Duration, stored int64) {
	if _, err := exec.LookPath("restic"); err != nil {
		b.Log("restic is not installed")
		return
	}
	repo := filepath.Join(dir, "restic")
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
	took := timed(b, func() error { return run("backup", tree) })
	var size int64
	err := filepath.WalkDir(repo, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			info, ierr := d.Info()
			if ierr != nil {
				return ierr
			}
			size += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(took.Seconds()/ours.Seconds(), "x-restic")
	b.ReportMetric(float64(size)/float64(stored), "x-restic-size")
}
