package watch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/repa-app/repa/space/watch"
)

// watched is a folder with a watcher on it.
type watched struct {
	dir     string
	tree    *watch.Tree
	space   *watch.Space
	reports chan watch.Report
}

func follow(t *testing.T, opts watch.Options, prepare func(dir string)) *watched {
	t.Helper()
	dir := t.TempDir()
	if prepare != nil {
		prepare(dir)
	}
	v := &watched{dir: dir, tree: watch.NewTree(root(t, dir)), reports: make(chan watch.Report, 10_000)}
	w := watch.New(opts)
	v.space = w.Follow(dir, v.tree, func(_ context.Context, r watch.Report) { v.reports <- r })
	t.Cleanup(func() { must(t, w.Close()) })
	if first := v.next(t); !first.First {
		t.Fatalf("the first report is %+v", first)
	}
	return v
}

func (v *watched) next(t *testing.T) watch.Report {
	t.Helper()
	select {
	case r := <-v.reports:
		return r
	case <-t.Context().Done():
		t.Fatal("no report came")
		return watch.Report{}
	}
}

// until waits for reports until all these paths were in one.
func (v *watched) until(t *testing.T, paths ...string) {
	t.Helper()
	want := map[string]bool{}
	for _, p := range paths {
		want[p] = true
	}
	for len(want) > 0 {
		for _, p := range v.next(t).Changed {
			delete(want, p)
		}
	}
}

func TestNotices(t *testing.T) {
	v := follow(t, watch.Options{}, func(dir string) { put(t, dir, "f/a.md", "x", old) })
	if notices, why := v.space.Mode(); !notices {
		t.Skip("this system gives no notices: " + why)
	}
	put(t, v.dir, "f/a.md", "changed", old)
	v.until(t, "f/a.md")
	put(t, v.dir, "new/deep/b.md", "made in a folder that is new", time.Now())
	v.until(t, "new/deep/b.md")
	put(t, v.dir, "new/deep/c.md", "made in a folder that was new before", time.Now())
	v.until(t, "new/deep/c.md")
	// An editor that saves atomically.
	put(t, v.dir, "f/.a.md.swp", "saved", time.Now())
	must(t, os.Rename(filepath.Join(v.dir, "f/.a.md.swp"), filepath.Join(v.dir, "f/a.md")))
	v.until(t, "f/a.md")
	must(t, os.Rename(filepath.Join(v.dir, "f/a.md"), filepath.Join(v.dir, "f/A.md")))
	v.until(t, "f/a.md", "f/A.md")
	// A folder that is deleted and made again.
	must(t, os.RemoveAll(filepath.Join(v.dir, "new")))
	v.until(t, "new/deep/b.md")
	put(t, v.dir, "new/deep/b.md", "again", time.Now())
	v.until(t, "new/deep/b.md")
	put(t, v.dir, "new/deep/d.md", "and once more", time.Now())
	v.until(t, "new/deep/d.md")
}

// A storm of renames leaves the table as the disk is, whatever notices were lost.
func TestStormConverges(t *testing.T) {
	v := follow(t, watch.Options{Gather: time.Millisecond}, nil)
	for i := range 300 {
		name := fmt.Sprintf("d%d", i%7)
		put(t, v.dir, name+"/f.md", fmt.Sprint(i), time.Now())
		_ = os.Rename(filepath.Join(v.dir, name), filepath.Join(v.dir, fmt.Sprintf("d%d", (i*3)%7))) // refused when there is one
		if i%50 == 49 {
			must(t, os.RemoveAll(filepath.Join(v.dir, "d1")))
		}
	}
	put(t, v.dir, "end.md", "the last", time.Now())
	v.until(t, "end.md")
	v.space.Rescan()
	put(t, v.dir, "marker.md", "", time.Now())
	v.until(t, "marker.md")
	fresh := watch.NewTree(root(t, v.dir))
	scan(t, fresh)
	for v.tree.Files() != fresh.Files() {
		v.space.Rescan()
		v.next(t)
	}
}

// Sync returns when what happened before it is reported.
func TestSync(t *testing.T) {
	v := follow(t, watch.Options{}, nil)
	for i := range 20 {
		name := fmt.Sprintf("n%d.md", i)
		put(t, v.dir, name, "x", old)
		must(t, v.space.Sync(t.Context()))
		found := false
		for len(v.reports) > 0 {
			for _, p := range (<-v.reports).Changed {
				found = found || p == name
			}
		}
		if !found {
			t.Fatalf("%s was not reported", name)
		}
	}
	v.space.Close()
	if err := v.space.Sync(t.Context()); !errors.Is(err, watch.ErrClosed) {
		t.Errorf("after it was closed: %v", err)
	}
}

// Where notices do not reach, scans find the same.
func TestScansInstead(t *testing.T) {
	v := follow(t, watch.Options{MaxFolders: 1, Interval: 5 * time.Millisecond, Gather: time.Millisecond}, func(dir string) { put(t, dir, "f/g/a.md", "x", old) })
	if notices, why := v.space.Mode(); notices || why == "" {
		t.Fatalf("with one folder too many: notices %v, %q", notices, why)
	}
	put(t, v.dir, "f/g/a.md", "changed", old)
	v.until(t, "f/g/a.md")
	put(t, v.dir, "f/new/b.md", "new", old)
	v.until(t, "f/new/b.md")
	must(t, os.RemoveAll(filepath.Join(v.dir, "f")))
	v.until(t, "f/g/a.md", "f/new/b.md")
}

func TestManySpaces(t *testing.T) {
	w := watch.New(watch.Options{})
	reports := make(chan string, 1000)
	var dirs []string
	var spaces []*watch.Space
	for i := range 3 {
		dir := t.TempDir()
		dirs = append(dirs, dir)
		spaces = append(spaces, w.Follow(dir, watch.NewTree(root(t, dir)), func(_ context.Context, r watch.Report) {
			for _, p := range r.Changed {
				reports <- fmt.Sprint(i, " ", p)
			}
			if r.First {
				reports <- fmt.Sprint(i, " first")
			}
		}))
	}
	wait := func(want string) {
		t.Helper()
		for {
			select {
			case got := <-reports:
				if got == want {
					return
				}
			case <-t.Context().Done():
				t.Fatalf("%s was not reported", want)
			}
		}
	}
	for range 3 {
		<-reports // each is scanned once
	}
	put(t, dirs[1], "b.md", "x", old)
	wait("1 b.md")
	spaces[1].Close()
	put(t, dirs[1], "silent.md", "x", old)
	put(t, dirs[2], "c.md", "x", old)
	wait("2 c.md")
	must(t, w.Close())
	for len(reports) > 0 {
		if got := <-reports; got == "1 silent.md" {
			t.Error("a closed space was reported")
		}
	}
}
