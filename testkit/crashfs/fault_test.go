package crashfs_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/testkit/crashfs"
)

// While one file's sync hangs, everything else goes on, also on the same file; the sync takes effect when it goes on.
func TestStalledSyncHoldsNothingElse(t *testing.T) {
	disk, f := settled(t, 4)
	g := create(t, disk, "g", "text")
	writeAt(t, f, "n", 4, 0)
	fault, entered, release := crashfs.Stall("sync", "a")
	disk.SetFault(fault)
	done := make(chan error, 1)
	go func() { done <- f.Sync() }()
	if c := <-entered; c.Op != "sync" || c.Path != "a" {
		t.Errorf("%+v waits", c)
	}
	if got, _ := read(t, disk, "g"); got != "text" {
		t.Errorf("read %q", got)
	}
	must(t, g.Sync(), disk.SyncDir("."))
	if got := show(t, disk.Crash(nil), "."); got != "a=o4 g=t1e1x1t1" {
		t.Errorf("during the stall: %s", got)
	}
	select {
	case err := <-done:
		t.Fatalf("the sync came back: %v", err)
	default:
	}
	release()
	release() // again is harmless
	must(t, <-done, f.Sync())
	if got := show(t, disk.Crash(nil), "."); got != "a=n4 g=t1e1x1t1" {
		t.Errorf("after the stall: %s", got)
	}
}

func TestFaultsChooseTheirCalls(t *testing.T) {
	disk := crashfs.New()
	must(t, vfs.MkdirAll(disk, "d/e", 0o700), vfs.WriteFile(disk, "d/a.log", nil, 0o600), vfs.WriteFile(disk, "d/e/b.log", nil, 0o600))
	stat := func(names ...string) (out string) {
		for _, name := range names {
			if _, err := disk.Stat(name); err == nil {
				out += "+"
			} else {
				out += "-"
			}
		}
		return out
	}
	all := []string{"d/a.log", "d/e/b.log", "d/a.log", "d/e", "d/e/b.log"}
	eio, eacces := error(syscall.EIO), error(syscall.EACCES)
	for _, c := range []struct {
		name  string
		fault crashfs.Fault
		want  string
	}{
		{"none", nil, "+++++"},
		{"by last element", crashfs.Always("stat", "*.log", eio), "---+-"},
		{"by whole path", crashfs.Always("stat", "d/*", eio), "-+--+"},
		{"by op", crashfs.Always("sync", "", eio), "+++++"},
		{"every call", crashfs.Always("", "", eio), "-----"},
		{"second of a kind", crashfs.OnNth("stat", "*.log", 2, eio), "+-+++"},
		{"one or the other", crashfs.First(crashfs.OnNth("", "a.log", 2, eio), crashfs.Always("", "e", eacces)), "++--+"},
	} {
		disk.SetFault(c.fault)
		if got := stat(all...); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a malformed pattern is accepted")
		}
	}()
	disk.SetFault(crashfs.Always("", "[", eio))
	stat("d")
}

// Every error of the battery comes out of every call with operation and path, changes nothing, and the retry succeeds.
func TestEveryErrorAtEveryCall(t *testing.T) {
	type call struct {
		op string
		do func(disk *crashfs.FS, f vfs.File) error
	}
	opening := func(flag int) func(*crashfs.FS, vfs.File) error {
		return func(disk *crashfs.FS, _ vfs.File) error {
			f, err := disk.OpenFile("a", flag, 0o600)
			if err != nil {
				return err
			}
			return f.Close()
		}
	}
	calls := []call{
		{"open", opening(os.O_RDONLY)}, {"create", opening(os.O_RDWR | os.O_CREATE)},
		{"open", func(d *crashfs.FS, _ vfs.File) error { _, err := d.Sub("."); return err }},
		{"mkdir", func(d *crashfs.FS, _ vfs.File) error { return d.Mkdir("d", 0o700) }},
		{"rename", func(d *crashfs.FS, _ vfs.File) error { return d.Rename("a", "b") }},
		{"remove", func(d *crashfs.FS, _ vfs.File) error { return d.Remove("a") }},
		{"stat", func(d *crashfs.FS, _ vfs.File) error { _, err := d.Lstat("a"); return err }},
		{"readdir", func(d *crashfs.FS, _ vfs.File) error { _, err := d.ReadDir("."); return err }},
		{"syncdir", func(d *crashfs.FS, _ vfs.File) error { return d.SyncDir(".") }},
		{"lock", func(d *crashfs.FS, _ vfs.File) error { _, err := d.Lock("a"); return err }},
		{"read", func(_ *crashfs.FS, f vfs.File) error { _, err := f.ReadAt(make([]byte, 1), 0); return err }},
		{"write", func(_ *crashfs.FS, f vfs.File) error { _, err := f.WriteAt([]byte("nn"), 0); return err }},
		{"sync", func(_ *crashfs.FS, f vfs.File) error { return f.Sync() }},
		{"truncate", func(_ *crashfs.FS, f vfs.File) error { return f.Truncate(1) }},
		{"preallocate", func(_ *crashfs.FS, f vfs.File) error { return f.Preallocate(10) }},
		{"stat", func(_ *crashfs.FS, f vfs.File) error { _, err := f.Stat(); return err }},
	}
	if len(crashfs.Errors()) != 7 {
		t.Errorf("%d errors", len(crashfs.Errors()))
	}
	for _, want := range crashfs.Errors() {
		for _, c := range calls {
			disk, f := settled(t, 4)
			disk.SetFault(crashfs.OnNth(c.op, "", 1, want))
			err := c.do(disk, f)
			if c.op == "write" && errors.Is(want, crashfs.ErrShortWrite) {
				if got, _ := read(t, disk, "a"); !errors.Is(err, io.ErrShortWrite) || got != "nooo" {
					t.Errorf("short write: %v, %q", err, got)
				}
				continue
			}
			var named *fs.PathError
			if !errors.Is(err, want) || !errors.As(err, &named) || named.Op != c.op || named.Path == "" {
				t.Errorf("%s with %v: %v", c.op, want, err)
			}
			if got := show(t, disk, "."); got != "a=o4" {
				t.Errorf("%s with %v left %s", c.op, want, got)
			}
			if open := disk.OpenFiles(); len(open) != 1 {
				t.Errorf("%s with %v left open %v", c.op, want, open)
			}
			must(t, c.do(disk, f))
		}
	}
	disk, f := settled(t, 4)
	disk.FailNth(1, syscall.EIO)
	if err := f.Close(); !errors.Is(err, syscall.EIO) || len(disk.OpenFiles()) != 0 {
		t.Errorf("a close that fails closes: %v, open %v", err, disk.OpenFiles())
	}
}

// fsyncgate: the second sync claims success, the bytes are readable, and gone after a crash; only writing them anew helps.
func TestSyncFailsOnce(t *testing.T) {
	disk, f := settled(t, 4)
	other := create(t, disk, "other", "x")
	disk.SetFault(crashfs.SyncFailsOnce("a*"))
	trace := disk.Record()
	writeAt(t, f, "n", 4, 0)
	must(t, other.Sync())
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("first sync: %v", err)
	}
	must(t, f.Sync())
	lost := trace.Len()
	writeAt(t, f, "n", 4, 0)
	must(t, f.Sync())
	for i, want := range map[int]string{lost: "a=o4", trace.Len(): "a=n4"} {
		if got := show(t, trace.At(i).Crash(nil), "."); got != want {
			t.Errorf("step %d: %s, want %s", i, got, want)
		}
		if got := show(t, trace.At(i), "."); !strings.HasPrefix(got, "a=n4") {
			t.Errorf("step %d reads %s", i, got)
		}
	}
}

func TestOpenFiles(t *testing.T) {
	disk, f := settled(t, 4)
	must(t, disk.Mkdir("d", 0o700))
	sub, err := disk.Sub("d")
	must(t, err)
	g, err := sub.OpenFile("g", os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	l, err := disk.Lock("lock")
	must(t, err)
	if _, err := disk.Lock("lock"); !errors.Is(err, vfs.ErrLocked) {
		t.Error(err)
	}
	if got := disk.OpenFiles(); !slices.Equal(got, []string{"a", "d/", "d/g", "lock"}) {
		t.Errorf("%q", got)
	}
	must(t, f.Close(), g.Close(), l.Close(), l.Close(), sub.Close(), sub.Close(), disk.Close())
	if got := disk.OpenFiles(); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// A fault is asked by many goroutines at once and may use the disk.
func TestFaultMayUseTheDisk(t *testing.T) {
	disk, f := settled(t, 4)
	disk.SetFault(func(c crashfs.Call) error {
		if c.Op == "sync" {
			disk.Crash(nil)
			_, err := disk.Stat("a")
			return err
		}
		return nil
	})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { must(t, f.Sync()) })
	}
	group.Wait()
}
