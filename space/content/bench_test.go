package content_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/space/content"
	"github.com/repa-app/repa/space/watch"
)

// benchDir is a folder on a real disk: REPA_BENCH_DIR, or beside the package.
func benchDir(b *testing.B) string {
	b.Helper()
	parent := os.Getenv("REPA_BENCH_DIR")
	if parent == "" {
		parent = "."
	}
	dir, err := os.MkdirTemp(parent, ".bench-")
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
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

// repository is a git repository that syncs what it commits; it is nil without git.
func repository(b *testing.B, dir string) func(args ...string) {
	if _, err := exec.LookPath("git"); err != nil {
		b.Log("git is not installed")
		return nil
	}
	git := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "core.fsync=committed", "-c", "gc.auto=0"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	git("init", "-q")
	return git
}

// rounds measures ours and another way in turn and reports both and the other's time in ours.
func rounds(b *testing.B, ours func(i int), other string, theirs func(i int)) {
	var took [2]time.Duration
	i := 0
	for b.Loop() {
		start := time.Now()
		ours(i)
		took[0] += time.Since(start)
		if theirs != nil {
			start = time.Now()
			theirs(i)
			took[1] += time.Since(start)
		}
		i++
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(took[0].Seconds()*1000/float64(i), "ms")
	if theirs != nil {
		b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "x-"+other)
	}
}

// saver saves files and knows their last text.
type saver struct {
	*desk
	last map[string]string
}

func (s *saver) write(b *testing.B, name, text string) {
	b.Helper()
	base := none
	if old, ok := s.last[name]; ok {
		base = at(old)
	}
	if _, err := s.Write(b.Context(), learner, content.Write{ID: minted(), Target: content.At(name), Text: text, Base: base}); err != nil {
		b.Fatal(err)
	}
	s.last[name] = text
}

// BenchmarkSave is saving one note of 8 KiB durably with its history, beside writing it and git add and git commit, and beside what the disk allows for
// two waits: writing a file and syncing it, then renaming it and syncing the folder.
func BenchmarkSave(b *testing.B) {
	dir := benchDir(b)
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "ours"), 0o700), os.Mkdir(filepath.Join(dir, "git"), 0o700), os.Mkdir(filepath.Join(dir, "bound"), 0o700)); err != nil {
		b.Fatal(err)
	}
	s := &saver{deskIn(b, filepath.Join(dir, "ours")), map[string]string{}}
	note := strings.Repeat("a line of a note about prime numbers\n", 220)
	text := func(i int) string { return fmt.Sprintf("%s%d\n", note, i) }
	b.Run("git", func(b *testing.B) {
		git := repository(b, filepath.Join(dir, "git"))
		var theirs func(i int)
		if git != nil {
			theirs = func(i int) {
				if err := os.WriteFile(filepath.Join(dir, "git", "note.md"), []byte(text(i)), 0o600); err != nil {
					b.Fatal(err)
				}
				git("add", "note.md")
				git("commit", "-q", "-m", "save")
			}
		}
		rounds(b, func(i int) { s.write(b, "note.md", text(i)) }, "git", theirs)
	})
	b.Run("two waits", func(b *testing.B) {
		disk, err := vfs.OS(filepath.Join(dir, "bound"))
		if err != nil {
			b.Fatal(err)
		}
		defer disk.Close()
		rounds(b, func(i int) { s.write(b, "other.md", text(i)) }, "bound", func(i int) {
			if err := vfs.WriteFile(disk, "note.md", []byte(text(i)), 0o600); err != nil {
				b.Fatal(err)
			}
		})
	})
}

// BenchmarkPatch changes 100 files at once, beside writing them and git add and git commit.
func BenchmarkPatch(b *testing.B) {
	dir := benchDir(b)
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "ours"), 0o700), os.Mkdir(filepath.Join(dir, "git"), 0o700)); err != nil {
		b.Fatal(err)
	}
	d := deskIn(b, filepath.Join(dir, "ours"))
	git := repository(b, filepath.Join(dir, "git"))
	text := func(i int) string { return fmt.Sprintf("first\n%d\nlast\n", i) }
	var add strings.Builder
	for n := range 100 {
		fmt.Fprintf(&add, "*** Add File: n%d.md\n+first\n+0\n+last\n", n)
	}
	if _, _, err := d.ApplyPatch(b.Context(), agent, content.Patch{ID: minted(), Text: body(add.String())}); err != nil {
		b.Fatal(err)
	}
	var theirs func(i int)
	if git != nil {
		theirs = func(i int) {
			for n := range 100 {
				if err := os.WriteFile(filepath.Join(dir, "git", fmt.Sprintf("n%d.md", n)), []byte(text(i+1)), 0o600); err != nil {
					b.Fatal(err)
				}
			}
			git("add", ".")
			git("commit", "-q", "-m", "patch")
		}
	}
	rounds(b, func(i int) {
		var p strings.Builder
		for n := range 100 {
			fmt.Fprintf(&p, "*** Update File: n%d.md\n@@\n first\n-%d\n+%d\n", n, i, i+1)
		}
		if _, _, err := d.ApplyPatch(b.Context(), agent, content.Patch{ID: minted(), Text: body(p.String())}); err != nil {
			b.Fatal(err)
		}
	}, "git", theirs)
}

// manyFiles makes 100,000 notes in 1,000 folders.
func manyFiles(b *testing.B, dir string) {
	b.Helper()
	for i := range 1000 {
		folder := filepath.Join(dir, fmt.Sprintf("d%03d", i))
		if err := os.Mkdir(folder, 0o700); err != nil {
			b.Fatal(err)
		}
		for j := range 100 {
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("n%02d.md", j)), fmt.Appendf(nil, "note %d of %d\n", j, i), 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	old := time.Now().Add(-time.Hour)
	for i := range 1000 {
		for j := range 100 {
			if err := os.Chtimes(filepath.Join(dir, fmt.Sprintf("d%03d", i), fmt.Sprintf("n%02d.md", j)), old, old); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkManyFiles is a space of 100,000 files: opening and listing it, comparing it with the disk for the first time and again, beside git status, after
// 1,000 edits by another program, and what it takes of memory.
func BenchmarkManyFiles(b *testing.B) {
	dir := benchDir(b)
	ours := filepath.Join(dir, "ours")
	if err := os.Mkdir(ours, 0o700); err != nil {
		b.Fatal(err)
	}
	manyFiles(b, ours)
	b.Run("open and list", func(b *testing.B) {
		disk, err := vfs.OS(ours)
		if err != nil {
			b.Fatal(err)
		}
		defer disk.Close()
		rounds(b, func(int) {
			d, err := openOn(b.Context(), disk, ours)
			if err != nil {
				b.Fatal(err)
			}
			if list, err := d.List(b.Context(), "."); err != nil || len(list) != 1000 {
				b.Fatal(len(list), err)
			}
			if err := d.close(); err != nil {
				b.Fatal(err)
			}
		}, "", nil)
	})
	d := deskIn(b, ours)
	scan := func(b *testing.B, tree *watch.Tree) []string {
		found, err := tree.Scan(b.Context(), nil)
		if err != nil {
			b.Fatal(err)
		}
		return found.Changed
	}
	b.Run("compare first", func(b *testing.B) {
		rounds(b, func(int) { scan(b, watch.NewTree(d.root)) }, "", nil)
	})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	tree := watch.NewTree(d.root)
	scan(b, tree)
	runtime.GC()
	runtime.ReadMemStats(&after)
	git := repository(b, ours)
	if git != nil {
		if err := os.WriteFile(filepath.Join(ours, ".git", "info", "exclude"), []byte(".repa\n"), 0o600); err != nil {
			b.Fatal(err)
		}
		git("add", ".")
		git("commit", "-q", "-m", "all")
		git("status", "--porcelain")
	}
	b.Run("compare again", func(b *testing.B) {
		var theirs func(int)
		if git != nil {
			theirs = func(int) { git("status", "--porcelain") }
		}
		rounds(b, func(int) { scan(b, tree) }, "git-status", theirs)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/100_000, "B/file")
	})
	b.Run("1000 edits outside", func(b *testing.B) {
		edit := func(i int) {
			for n := range 1000 {
				if err := os.WriteFile(filepath.Join(ours, fmt.Sprintf("d%03d", n), "n00.md"), fmt.Appendf(nil, "edit %d of %d\n", i, n), 0o600); err != nil {
					b.Fatal(err)
				}
			}
		}
		var took, theirs time.Duration
		i := 0
		for b.Loop() {
			edit(i)
			start := time.Now()
			changed := scan(b, tree)
			for n := 0; n < len(changed); n += 64 {
				if _, err := d.Observe(b.Context(), 4<<20, changed[n:min(len(changed), n+64)]...); err != nil {
					b.Fatal(err)
				}
			}
			took += time.Since(start)
			if git != nil {
				start = time.Now()
				git("add", ".")
				git("commit", "-q", "-m", "edits")
				theirs += time.Since(start)
			}
			i++
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(took.Seconds()*1000/float64(i), "ms")
		b.ReportMetric(theirs.Seconds()/took.Seconds(), "x-git")
	})
}

// BenchmarkHistory is the history of one document among 100,000 operations, and opening a space that has so many, with a checkpoint.
func BenchmarkHistory(b *testing.B) {
	dir := benchDir(b)
	s := &saver{deskIn(b, dir), map[string]string{}}
	const operations, documents = 100_000, 1000
	start := time.Now()
	for i := range operations {
		s.write(b, fmt.Sprintf("n%d.md", i%documents), fmt.Sprint(i, "\n"))
	}
	b.Logf("%.0f saves a second", operations/time.Since(start).Seconds())
	b.Run("of one document", func(b *testing.B) {
		rounds(b, func(i int) {
			if h, err := s.History(b.Context(), content.At(fmt.Sprintf("n%d.md", i%documents)), 1000, ""); err != nil || len(h.Revisions) != operations/documents {
				b.Fatal(len(h.Revisions), err)
			}
		}, "", nil)
	})
	if err := s.close(); err != nil {
		b.Fatal(err)
	}
	section, err := s.Checkpoint()
	if err != nil {
		b.Fatal(err)
	}
	end := s.journal.End()
	b.Run("open", func(b *testing.B) {
		rounds(b, func(int) {
			d, err := openFrom(b.Context(), s.disk, dir, section, end)
			if err != nil {
				b.Fatal(err)
			}
			if err := d.close(); err != nil {
				b.Fatal(err)
			}
		}, "", nil)
	})
	b.Run("open without checkpoint", func(b *testing.B) {
		rounds(b, func(int) {
			d, err := openOn(b.Context(), s.disk, dir)
			if err != nil {
				b.Fatal(err)
			}
			if err := d.close(); err != nil {
				b.Fatal(err)
			}
		}, "", nil)
	})
	again, err := openFrom(b.Context(), s.disk, dir, section, end)
	if err != nil {
		b.Fatal(err)
	}
	*s.desk = *again // closed at the end
}
