package crashfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/testkit/crashfs"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// show lists the tree in one line; a run of the same byte is the byte and its count, with 0 for the zero byte.
func show(t testing.TB, fsys vfs.FS, dir string) string {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	must(t, err)
	var out []string
	for _, e := range entries {
		name := strings.TrimPrefix(dir+"/"+e.Name(), "./")
		if e.IsDir() {
			out = append(out, strings.TrimSpace(name+"/ "+show(t, fsys, name)))
			continue
		}
		data, err := vfs.ReadFile(fsys, name, -1)
		must(t, err)
		out = append(out, name+"="+runs(string(data)))
	}
	return strings.Join(out, " ")
}

func runs(data string) string {
	var out strings.Builder
	for len(data) > 0 {
		rest := strings.TrimLeft(data, data[:1])
		letter := data[:1]
		if letter == "\x00" {
			letter = "0"
		}
		fmt.Fprintf(&out, "%s%d", letter, len(data)-len(rest))
		data = rest
	}
	return out.String()
}

func subsets(t testing.TB, disk *crashfs.FS, limit int) []string {
	t.Helper()
	var out []string
	for s := range disk.Subsets(limit) {
		out = append(out, show(t, s, "."))
	}
	return out
}

// settled is a disk with the file "a" of so many bytes o, all durable.
func settled(t testing.TB, size int) (*crashfs.FS, vfs.File) {
	t.Helper()
	disk := crashfs.New()
	f := create(t, disk, "a", strings.Repeat("o", size))
	must(t, f.Sync(), disk.SyncDir("."))
	return disk, f
}

func writeAt(t testing.TB, f vfs.File, letter string, size int, off int64) {
	t.Helper()
	if _, err := f.WriteAt([]byte(strings.Repeat(letter, size)), off); err != nil {
		t.Fatal(err)
	}
}

// Each legal state comes once and no other.
func TestSubsetsAreAllLegalStates(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(t *testing.T, disk *crashfs.FS, f vfs.File)
		want []string
	}{
		{"nothing", func(*testing.T, *crashfs.FS, vfs.File) {}, []string{"a=o1024"}},
		{"a write torn between sectors", func(t *testing.T, _ *crashfs.FS, f vfs.File) { writeAt(t, f, "n", 1024, 0) },
			[]string{"a=o1024", "a=o512n512", "a=n512o512", "a=n1024"}},
		{"a sector written twice", func(t *testing.T, _ *crashfs.FS, f vfs.File) {
			writeAt(t, f, "x", 512, 0)
			writeAt(t, f, "y", 512, 0)
		}, []string{"a=o1024", "a=x512o512", "a=y512o512"}},
		{"the same bytes again", func(t *testing.T, _ *crashfs.FS, f vfs.File) { writeAt(t, f, "o", 1024, 0) }, []string{"a=o1024"}},
		{"an append", func(t *testing.T, _ *crashfs.FS, f vfs.File) { writeAt(t, f, "n", 600, 1024) },
			[]string{"a=o1024", "a=o10240512", "a=o1024n512", "a=o10240600", "a=o10240512n88", "a=o1024n512088", "a=o1024n600"}},
		{"a growth without bytes", func(t *testing.T, _ *crashfs.FS, f vfs.File) { must(t, f.Preallocate(2000)) },
			[]string{"a=o1024", "a=o10240976"}},
		{"a cut", func(t *testing.T, _ *crashfs.FS, f vfs.File) { must(t, f.Truncate(100)) },
			[]string{"a=o1024", "a=o1000412o512", "a=o5120512", "a=o1000924", "a=o100"}},
		{"a new name", func(t *testing.T, disk *crashfs.FS, _ vfs.File) { must(t, disk.Mkdir("d", 0o700)) },
			[]string{"a=o1024", "a=o1024 d/"}},
		{"a removal", func(t *testing.T, disk *crashfs.FS, _ vfs.File) { must(t, disk.Remove("a")) }, []string{"a=o1024", ""}},
		{"a rename", func(t *testing.T, disk *crashfs.FS, _ vfs.File) { must(t, disk.Rename("a", "b")) },
			[]string{"a=o1024", "a=o1024 b=o1024", "b=o1024", ""}},
		{"a new file with one sector", func(t *testing.T, disk *crashfs.FS, _ vfs.File) { create(t, disk, "b", "n") },
			[]string{"a=o1024", "a=o1024 b=", "a=o1024 b=01", "a=o1024 b=n1"}},
		{"lost by a failed sync, then synced", func(t *testing.T, disk *crashfs.FS, f vfs.File) {
			writeAt(t, f, "n", 512, 0)
			disk.FailNth(1, syscall.EIO)
			if err := f.Sync(); !errors.Is(err, syscall.EIO) {
				t.Fatal(err)
			}
			must(t, f.Sync())
		}, []string{"a=o1024", "a=n512o512"}},
		{"lost, written anew, synced", func(t *testing.T, disk *crashfs.FS, f vfs.File) {
			writeAt(t, f, "n", 512, 0)
			disk.FailNth(1, syscall.EIO)
			if err := f.Sync(); !errors.Is(err, syscall.EIO) {
				t.Fatal(err)
			}
			writeAt(t, f, "m", 512, 0)
			must(t, f.Sync())
		}, []string{"a=m512o512"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk, f := settled(t, 1024)
			c.do(t, disk, f)
			got := subsets(t, disk, 64)
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if again := subsets(t, disk, len(got)); len(again) != len(got) {
				t.Errorf("a limit of exactly %d states gives %d", len(got), len(again))
			}
		})
	}
}

func TestSubsetsSampleHoldsBothEnds(t *testing.T) {
	disk, f := settled(t, 8192)
	writeAt(t, f, "n", 8192, 0)
	got := subsets(t, disk, 10)
	if len(got) != 10 || got[0] != "a=o8192" || got[1] != "a=n8192" {
		t.Errorf("%q", got)
	}
	if again := subsets(t, disk, 10); !slices.Equal(got, again) {
		t.Error("two samples of one state differ")
	}
	slices.Sort(got)
	if len(slices.Compact(got)) < 8 {
		t.Errorf("the sample hardly varies: %q", got)
	}
	if got := subsets(t, disk, 0); len(got) != 0 {
		t.Errorf("limit 0 gives %q", got)
	}
	if got := subsets(t, disk, 1); len(got) != 1 || got[0] != "a=o8192" {
		t.Errorf("limit 1 gives %q", got)
	}
	for range disk.Subsets(10) {
		break // leaving early is allowed
	}
}

// A kill of the process loses nothing, but what was not synced stays at risk.
func TestAllIsAKillNotASync(t *testing.T) {
	disk, f := settled(t, 4)
	writeAt(t, f, "n", 4, 0)
	create(t, disk, "b", "x")
	if _, err := disk.Lock("lock"); err != nil {
		t.Fatal(err)
	}
	next := disk.All()
	if got := show(t, next, "."); got != "a=n4 b=x1 lock=" {
		t.Errorf("after a kill: %s", got)
	}
	if got := show(t, next.Crash(nil), "."); got != "a=o4" {
		t.Errorf("after a kill and a power loss: %s", got)
	}
	if l, err := next.Lock("lock"); err != nil {
		t.Error(err)
	} else {
		must(t, l.Close())
	}
	if open := next.OpenFiles(); len(open) != 0 {
		t.Errorf("open after a kill: %v", open)
	}
	writeAt(t, f, "z", 4, 0)
	if got := show(t, next, "."); got != "a=n4 b=x1 lock=" {
		t.Errorf("the old process writes on the new disk: %s", got)
	}
}

// A crash state that has both names of a renamed file has one file.
func TestBothNamesLeadToOneFile(t *testing.T) {
	disk, _ := settled(t, 4)
	must(t, disk.Rename("a", "b"))
	for s := range disk.Subsets(10) {
		if show(t, s, ".") != "a=o4 b=o4" {
			continue
		}
		f, err := s.OpenFile("a", os.O_RDWR, 0)
		must(t, err)
		writeAt(t, f, "n", 4, 0)
		if got := show(t, s, "."); got != "a=n4 b=n4" {
			t.Error(got)
		}
		s.SetSpace(1 << 20)
		free := s.Free()
		must(t, s.Remove("a"), f.Close())
		if s.Free() != free {
			t.Error("removing one of two names freed the bytes")
		}
		must(t, s.Remove("b"))
		if s.Free() == free {
			t.Error("removing both names freed nothing")
		}
		return
	}
	t.Error("no state has both names")
}

// A folder moved between folders is in one place at most, and in the new one for certain once that is synced.
func TestMovedFolderStaysATree(t *testing.T) {
	disk := crashfs.New()
	for _, d := range []string{"x", "y", "x/d"} {
		must(t, vfs.MkdirAll(disk, d, 0o700))
	}
	must(t, vfs.WriteFile(disk, "x/d/f", []byte("1"), 0o600))
	must(t, disk.Rename("x/d", "y/d"))
	got := subsets(t, disk, 10)
	for _, s := range got {
		if strings.Count(s, "f=11") > 1 {
			t.Errorf("twice in the tree: %s", s)
		}
	}
	if !slices.Contains(got, "x/ x/d/ x/d/f=11 y/") || !slices.Contains(got, "x/ y/ y/d/ y/d/f=11") {
		t.Errorf("%q", got)
	}
	must(t, disk.SyncDir("y"))
	if got := subsets(t, disk, 10); len(got) != 1 || got[0] != "x/ y/ y/d/ y/d/f=11" {
		t.Errorf("after the sync of the new place: %q", got)
	}
	must(t, disk.Rename("y/d", "d"), disk.Rename("x", "d/x"), disk.Rename("d", "y/d"))
	for seed := range uint64(100) { // whatever was chosen, the walk ends
		show(t, disk.Crash(rand.New(rand.NewPCG(seed, 3))), ".")
	}
}

func TestNamesFollowUnix(t *testing.T) {
	disk := crashfs.New()
	must(t, disk.Mkdir("d", 0o700), disk.Mkdir("d/full", 0o700), disk.Mkdir("empty", 0o700))
	f := create(t, disk, "d/full/f", "text")
	for _, c := range []struct {
		what string
		err  error
		want error
	}{
		{"remove a full folder", disk.Remove("d"), syscall.ENOTEMPTY},
		{"replace a full folder", disk.Rename("empty", "d"), syscall.ENOTEMPTY},
		{"move a folder into itself", disk.Rename("d", "d/full/d"), syscall.EINVAL},
		{"file over folder", disk.Rename("d/full/f", "empty"), syscall.EISDIR},
		{"folder over file", disk.Rename("empty", "d/full/f"), syscall.ENOTDIR},
		{"rename nothing", disk.Rename("none", "x"), fs.ErrNotExist},
		{"below a file", disk.Mkdir("d/full/f/x", 0o700), syscall.ENOTDIR},
		{"twice", disk.Mkdir("d", 0o700), fs.ErrExist},
		{"outside", disk.Mkdir("../x", 0o700), fs.ErrInvalid},
		{"onto itself", disk.Rename("empty", "empty"), nil},
		{"a folder over an empty one", disk.Rename("d/full", "empty"), nil},
	} {
		var named *fs.PathError
		if !errors.Is(c.err, c.want) || (c.want != nil && !errors.As(c.err, &named)) {
			t.Errorf("%s: %v, want %v", c.what, c.err, c.want)
		}
	}
	if _, err := disk.OpenFile("d", os.O_RDWR, 0); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("open a folder for writing: %v", err)
	}
	sub, err := disk.Sub("empty")
	must(t, err)
	must(t, f.Close(), sub.Remove("f"), disk.Remove("empty"))
	if err := sub.Mkdir("x", 0o700); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("make a folder in a removed one: %v", err)
	}
	must(t, sub.Close())
	if _, err := sub.Stat("."); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a closed folder answers: %v", err)
	}
}

func TestAccessModes(t *testing.T) {
	disk, _ := settled(t, 4)
	r, err := disk.OpenFile("a", os.O_RDONLY, 0)
	must(t, err)
	w, err := disk.OpenFile("a", os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	if _, err := r.Write([]byte("x")); !errors.Is(err, syscall.EBADF) {
		t.Errorf("write through a handle for reading: %v", err)
	}
	if err := r.Truncate(0); !errors.Is(err, syscall.EBADF) {
		t.Errorf("truncate through a handle for reading: %v", err)
	}
	if _, err := w.Read(make([]byte, 1)); !errors.Is(err, syscall.EBADF) {
		t.Errorf("read through a handle for writing: %v", err)
	}
	if _, err := w.WriteAt([]byte("x"), 0); err == nil {
		t.Error("WriteAt on a file for appending")
	}
	for range 2 {
		if _, err := w.Write([]byte("x")); err != nil {
			t.Error(err)
		}
	}
	if got := show(t, disk, "."); got != "a=o4x2" {
		t.Error(got)
	}
	must(t, r.Close())
	if err := r.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("second close: %v", err)
	}
}

// A file that is never synced stays small in memory, and its ends stay possible.
func TestManySmallUnsyncedWrites(t *testing.T) {
	disk, f := settled(t, 1)
	for i := range int64(20_000) {
		writeAt(t, f, "n", 30, 1+i*30)
	}
	seen := 0
	for s := range disk.Subsets(4) {
		if got := show(t, s, "."); (seen == 0 && got != "a=o1") || (seen == 1 && got != "a=o1n600000") {
			t.Errorf("state %d: %.80s", seen, got)
		}
		seen++
	}
	if seen != 4 {
		t.Errorf("%d states", seen)
	}
}

func TestFlipReachesEveryState(t *testing.T) {
	disk, f := settled(t, 4)
	writeAt(t, f, "n", 4, 0)
	disk.Flip("a", 1, 0) // "o" and "n" differ in this bit
	got := subsets(t, disk, 4)
	slices.Sort(got)
	if !slices.Equal(got, []string{"a=n1o1n2", "a=o1n1o2"}) {
		t.Errorf("%q", got)
	}
}
