package watch_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/space/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// old is a time that no scan takes for its own.
var old = time.Now().Add(-time.Hour)

func root(t testing.TB, dir string) vfs.FS {
	t.Helper()
	fsys, err := vfs.OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fsys.Close() })
	return fsys
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// put writes a file with a time of its own.
func put(t testing.TB, dir, name, text string, at time.Time) {
	t.Helper()
	full := filepath.Join(dir, filepath.FromSlash(name))
	must(t, os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(text), 0o644), os.Chtimes(full, at, at))
}

func scan(t testing.TB, tree *watch.Tree) []string {
	t.Helper()
	found, err := tree.Scan(t.Context(), nil)
	must(t, err)
	return found.Changed
}

func TestScanFindsWhatChanged(t *testing.T) {
	dir := t.TempDir()
	tree := watch.NewTree(root(t, dir))
	put(t, dir, "a.md", "one", old)
	put(t, dir, "f/b.md", "two", old)
	put(t, dir, ".git/config", "x", old)
	put(t, dir, ".repa/journal/1", "x", old)
	put(t, dir, "f/node_modules/m.js", "x", old)
	if tree.Known() {
		t.Error("a new tree is known")
	}
	if got := scan(t, tree); !cmp.Equal(got, []string{"a.md", "f", "f/b.md"}) {
		t.Errorf("first scan %v", got)
	}
	if !tree.Known() || tree.Files() != 2 {
		t.Errorf("known %v, %d files", tree.Known(), tree.Files())
	}
	for _, step := range []struct {
		what string
		do   func()
		want []string
	}{
		{"nothing", func() {}, nil},
		{"another size", func() { put(t, dir, "a.md", "longer", old) }, []string{"a.md"}},
		{"another time", func() { put(t, dir, "a.md", "longes", old.Add(time.Second)) }, []string{"a.md"}},
		{"replaced by a file of the same size and time", func() {
			put(t, dir, "new", "longer", old.Add(time.Second))
			must(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "a.md")))
		}, []string{"a.md"}},
		{"renamed", func() { must(t, os.Rename(filepath.Join(dir, "a.md"), filepath.Join(dir, "A.md"))) }, []string{"A.md", "a.md"}},
		{"a folder renamed", func() { must(t, os.Rename(filepath.Join(dir, "f"), filepath.Join(dir, "g"))) }, []string{"f", "f/b.md", "g", "g/b.md"}},
		{"a file becomes a folder", func() {
			must(t, os.Remove(filepath.Join(dir, "A.md")))
			put(t, dir, "A.md/x", "", old)
		}, []string{"A.md", "A.md/x"}},
		{"all gone", func() { must(t, os.RemoveAll(filepath.Join(dir, "g")), os.RemoveAll(filepath.Join(dir, "A.md"))) }, []string{"A.md", "A.md/x", "g", "g/b.md"}},
	} {
		step.do()
		if got := scan(t, tree); !slices.Equal(got, step.want) {
			t.Errorf("%s: %v, want %v", step.what, got, step.want)
		}
	}
	if tree.Files() != 0 {
		t.Errorf("%d files are left", tree.Files())
	}
}

// A file that was written within the grain of its time before a scan may have been written again after it.
func TestFreshFilesAreReportedAgain(t *testing.T) {
	dir := t.TempDir()
	tree := watch.NewTree(root(t, dir))
	put(t, dir, "fresh.md", "x", time.Now())
	put(t, dir, "old.md", "x", old)
	scan(t, tree)
	found, err := tree.Scan(t.Context(), nil)
	must(t, err)
	if len(found.Changed) != 0 || !cmp.Equal(found.Fresh, []string{"fresh.md"}) {
		t.Errorf("second scan %+v", found)
	}
}

// A tree that looks where something happened is the one that scans everything.
func TestLookIsScan(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "space")
		must(t, err)
		fsys, err := vfs.OS(dir)
		must(t, err)
		defer fsys.Close()
		looking := watch.NewTree(fsys)
		_, err = looking.Scan(t.Context(), nil)
		must(t, err)
		names := rapid.SampledFrom([]string{"a", "b", "d/a", "d/e/a", "d/e", "d", "f/g/h"})
		for i := range rapid.IntRange(1, 12).Draw(rt, "steps") {
			name := names.Draw(rt, "name")
			full := filepath.Join(dir, filepath.FromSlash(name))
			switch rapid.IntRange(0, 2).Draw(rt, "what") {
			case 0:
				if os.MkdirAll(filepath.Dir(full), 0o755) == nil {
					_ = os.WriteFile(full, fmt.Append(nil, "step ", i), 0o644) // refused over a folder
				}
			case 1:
				_ = os.RemoveAll(full) // refused below a file
			case 2:
				to := names.Draw(rt, "to")
				_ = os.Rename(full, filepath.Join(dir, filepath.FromSlash(to))) // refused in many ways
				_, err := looking.Look(t.Context(), to, nil)
				must(t, err)
			}
			_, err := looking.Look(t.Context(), name, nil)
			must(t, err)
		}
		scanned := watch.NewTree(fsys)
		_, err = scanned.Scan(t.Context(), nil)
		must(t, err)
		if looking.Files() != scanned.Files() || !slices.Equal(looking.Folders(), scanned.Folders()) {
			rt.Fatalf("looked: %d files in %v; scanned: %d files in %v", looking.Files(), looking.Folders(), scanned.Files(), scanned.Folders())
		}
		left, err := looking.Scan(t.Context(), nil)
		must(t, err)
		fresh, err := scanned.Scan(t.Context(), nil)
		must(t, err)
		if len(left.Changed)+len(fresh.Changed) > 0 || !slices.Equal(left.Fresh, fresh.Fresh) {
			rt.Fatalf("a scan after looking still finds %+v, want %+v", left, fresh)
		}
	})
}

func TestSavedTable(t *testing.T) {
	dir := t.TempDir()
	fsys := root(t, dir)
	tree := watch.NewTree(fsys)
	put(t, dir, "f/b.md", "two", old)
	put(t, dir, "中文.md", "三", old)
	scan(t, tree)
	store := root(t, t.TempDir())
	must(t, tree.Save(store, "seen"))
	put(t, dir, "f/b.md", "changed meanwhile", old)
	loaded := watch.NewTree(fsys)
	must(t, loaded.Load(store, "seen"))
	if !loaded.Known() || loaded.Files() != 2 {
		t.Errorf("loaded: known %v, %d files", loaded.Known(), loaded.Files())
	}
	if got := scan(t, loaded); !cmp.Equal(got, []string{"f/b.md"}) {
		t.Errorf("changed while it was closed: %v", got)
	}
	data, err := vfs.ReadFile(store, "seen", -1)
	must(t, err)
	for i := range data {
		bad := slices.Clone(data)
		bad[i] ^= 1
		if err := watch.NewTree(fsys).Decode(bad); !errors.Is(err, watch.ErrDamaged) {
			t.Fatalf("byte %d flipped: %v", i, err)
		}
		if err := watch.NewTree(fsys).Decode(data[:i]); !errors.Is(err, watch.ErrDamaged) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	if err := watch.NewTree(fsys).Load(store, "none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no table: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	dir := f.TempDir()
	fsys, err := vfs.OS(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { fsys.Close() })
	put(f, dir, "f/b.md", "two", old)
	tree := watch.NewTree(fsys)
	if _, err := tree.Scan(f.Context(), nil); err != nil {
		f.Fatal(err)
	}
	if err := tree.Save(fsys, "seen"); err != nil {
		f.Fatal(err)
	}
	data, err := vfs.ReadFile(fsys, "seen", -1)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("repaseen\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tree := watch.NewTree(fsys)
		if err := tree.Decode(data); err != nil {
			if tree.Known() || tree.Files() > 0 {
				t.Error("a damaged table left something")
			}
			return
		}
		if _, err := tree.Scan(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
}
