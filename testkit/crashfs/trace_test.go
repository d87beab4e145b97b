package crashfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/testkit/crashfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStepsAreNamed(t *testing.T) {
	disk := crashfs.New()
	must(t, disk.Mkdir("d", 0o700))
	sub, err := disk.Sub("d")
	must(t, err)
	trace := disk.Record()
	f, err := sub.OpenFile("f", os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	writeAt(t, f, "x", 100, 512)
	must(t, f.Preallocate(4096), f.Preallocate(10), f.Truncate(600), f.Truncate(600), f.Sync())
	disk.SetFault(crashfs.SyncFailsOnce("d/f"))
	if f.Sync() == nil {
		t.Error("the sync claims success")
	}
	disk.SetFault(crashfs.OnNth("write", "f", 1, crashfs.ErrShortWrite))
	if _, err := f.Write([]byte("12345678")); err == nil {
		t.Error("the write claims success")
	}
	disk.SetFault(crashfs.Always("", "", syscall.EIO))
	if sub.Remove("f") == nil || sub.SyncDir(".") == nil {
		t.Error("a call claims success")
	}
	disk.SetFault(nil)
	if _, err := sub.Stat("f"); err != nil {
		t.Error(err)
	}
	must(t, f.Close(), sub.Rename("f", "g"), disk.Mkdir("d/e", 0o700), sub.SyncDir("."), sub.Remove("g"))
	disk.Flip("d/e", 0, 0)
	trace.Stop()
	must(t, disk.Mkdir("later", 0o700))
	var got []string
	for _, s := range trace.Steps() {
		got = append(got, s.String())
	}
	want := []string{"create d/f", "write d/f 512+100", "preallocate d/f to 4096", "truncate d/f to 600", "sync d/f", "sync d/f (failed)",
		"write d/f 0+4", "rename d/f to d/g", "mkdir d/e", "syncdir d", "remove d/g", "flip d/e"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if last := show(t, trace.At(trace.Len()), "."); last != "d/ d/e/" {
		t.Errorf("a stopped trace ends with %s", last)
	}
}

// A trace that begins in the middle knows what was unsynced, and files that were removed and are open.
func TestTraceBeginsAnywhere(t *testing.T) {
	disk, f := settled(t, 4)
	writeAt(t, f, "n", 4, 0)
	gone := create(t, disk, "gone", "x")
	must(t, disk.SyncDir("."), disk.Remove("gone"), disk.SyncDir("."))
	trace := disk.Record()
	writeAt(t, gone, "y", 10, 0)
	must(t, f.Sync())
	for i, want := range []struct{ all, synced string }{{"a=n4", "a=o4"}, {"a=n4", "a=o4"}, {"a=n4", "a=n4"}} {
		if all, synced := show(t, trace.At(i), "."), show(t, trace.At(i).Crash(nil), "."); all != want.all || synced != want.synced {
			t.Errorf("step %d: %s, synced %s, want %v", i, all, synced, want)
		}
	}
	for _, i := range []int{-1, 3} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("there is a step %d", i)
				}
			}()
			trace.At(i)
		}()
	}
}

// A disk of a trace is a disk of its own: neither other disks of the trace nor the recorded one change with it.
func TestDisksOfATraceAreApart(t *testing.T) {
	disk, f := settled(t, 512)
	trace := disk.Record()
	writeAt(t, f, "n", 600, 0)
	for bit := range uint(2) {
		at := trace.At(1)
		at.Flip("a", 0, bit)
		g, err := at.OpenFile("a", os.O_RDWR, 0)
		must(t, err)
		writeAt(t, g, "z", 4, 0)
		must(t, g.Truncate(8), g.Sync(), at.Rename("a", "b"), at.SyncDir("."))
		at.Flip("b", 0, 0)
	}
	if got := []string{show(t, disk, "."), show(t, trace.At(1), "."), show(t, trace.At(1).Crash(nil), ".")}; !slices.Equal(got, []string{"a=n600", "a=n600", "a=o512"}) {
		t.Errorf("%q", got)
	}
	if want, got := subsets(t, disk, 64), subsets(t, trace.At(1), 64); !slices.Equal(want, got) {
		t.Errorf("the disk has the states %q, its trace %q", want, got)
	}
}

// The battery that stores use: whatever is marked is there from that step on, in every state; the check sees a missing sync.
func TestMarksFindAMissingSync(t *testing.T) {
	for _, careful := range []bool{true, false} {
		disk := crashfs.New()
		trace := disk.Record()
		for i := range 4 {
			name := fmt.Sprint("f", i)
			publish := vfs.WriteFile
			if !careful && i == 2 {
				publish = vfs.PublishFile
			}
			must(t, publish(disk, name, bytes.Repeat([]byte{'x'}, 700), 0o600))
			trace.Mark(name)
		}
		missing, states := 0, 0
		for i := range trace.Len() + 1 {
			for s := range trace.At(i).Subsets(32) {
				states++
				for _, m := range trace.Marks() {
					if got, _ := read(t, s, m.Label); m.Step <= i && len(got) != 700 {
						missing++
					}
				}
			}
		}
		if careful == (missing > 0) {
			t.Errorf("careful %v: %d files missing in %d states", careful, missing, states)
		}
	}
}

// Writers, readers of the trace and crashes go on at once.
func TestTraceIsSafeForConcurrentUse(t *testing.T) {
	disk := crashfs.New()
	trace := disk.Record()
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			name := fmt.Sprint(i)
			for range 20 {
				if err := vfs.WriteFile(disk, name, []byte(name), 0o600); err != nil {
					t.Error(err)
				}
				trace.Mark(name)
				at := trace.Len()
				if got, err := vfs.ReadFile(trace.At(at).Crash(nil), name, -1); err != nil || string(got) != name {
					t.Errorf("acknowledged at step %d: %q, %v", at, got, err)
				}
			}
		})
	}
	group.Wait()
	for _, m := range trace.Marks() {
		if got, _ := read(t, trace.At(m.Step).Crash(nil), m.Label); got != m.Label {
			t.Errorf("mark %v: %q", m, got)
		}
	}
	if open := disk.OpenFiles(); len(open) > 0 {
		t.Errorf("left open: %v", open)
	}
}

// Walking a trace of many MiB costs its bytes once, not once a step.
func TestLongTraceIsLinear(t *testing.T) {
	const steps, size = 2000, 16 << 10 // 32 MiB; copying the file at every step would be 32 GiB
	disk := crashfs.New()
	trace := disk.Record()
	f := create(t, disk, "f", "")
	must(t, disk.SyncDir("."))
	data := bytes.Repeat([]byte{'x'}, size)
	for i := range int64(steps) {
		if _, err := f.WriteAt(data, i*size); err != nil {
			t.Fatal(err)
		}
		must(t, f.Sync())
	}
	for i := 2; i <= trace.Len(); i++ {
		info, err := trace.At(i).Crash(nil).Stat("f")
		if err != nil || info.Size() != int64((i-2)/2*size) {
			t.Fatalf("step %d: %v, %v", i, info, err)
		}
	}
}

func BenchmarkAppendAndSync(b *testing.B) {
	for _, record := range []bool{false, true} {
		b.Run(fmt.Sprintf("64MiB/recorded=%v", record), func(b *testing.B) {
			data := bytes.Repeat([]byte{'x'}, 4096)
			b.SetBytes(64 << 20)
			b.ReportAllocs()
			for b.Loop() {
				disk := crashfs.New()
				if record {
					disk.Record()
				}
				f := create(b, disk, "segment", "")
				for i := range int64(64 << 20 / 4096) {
					if _, err := f.WriteAt(data, i*4096); err != nil {
						b.Fatal(err)
					}
					must(b, f.Sync())
				}
				must(b, f.Close())
			}
		})
	}
}

// A crash state of a large file costs what is unsynced, not what is there.
func BenchmarkCrash(b *testing.B) {
	disk := crashfs.New()
	f := create(b, disk, "segment", "")
	must(b, f.Preallocate(64<<20), f.Sync(), disk.SyncDir("."))
	writeAt(b, f, "n", 64<<10, 1<<20)
	b.ReportAllocs()
	for b.Loop() {
		if disk.Crash(nil) == nil {
			b.Fatal(errors.New("no disk"))
		}
		for range disk.Subsets(4) {
			continue
		}
	}
}
