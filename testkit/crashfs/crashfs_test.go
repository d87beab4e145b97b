package crashfs_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/testkit/crashfs"
)

func create(t testing.TB, fsys vfs.FS, name, text string) vfs.File {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return f
}

func read(t *testing.T, fsys vfs.FS, name string) (string, bool) {
	t.Helper()
	data, err := vfs.ReadFile(fsys, name, -1)
	if errors.Is(err, os.ErrNotExist) {
		return "", false
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data), true
}

func TestCrashKeepsOnlyWhatWasSynced(t *testing.T) {
	disk := crashfs.New()
	f := create(t, disk, "a", "old")
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if _, there := read(t, disk.Crash(nil), "a"); there {
		t.Error("a name that was never synced survived")
	}
	if err := disk.SyncDir("."); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("new"), 0); err != nil {
		t.Fatal(err)
	}
	if got, _ := read(t, disk.Crash(nil), "a"); got != "old" {
		t.Errorf("after the crash: %q, want the synced bytes", got)
	}
	if got, _ := read(t, disk, "a"); got != "new" {
		t.Errorf("without a crash: %q", got)
	}
}

func TestCrashTearsBySector(t *testing.T) {
	disk := crashfs.New()
	f := create(t, disk, "a", strings.Repeat("o", 2048))
	if err := errors.Join(f.Sync(), disk.SyncDir(".")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(strings.Repeat("n", 2048)), 0); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for seed := range uint64(200) {
		got, _ := read(t, disk.Crash(rand.New(rand.NewPCG(seed, 1))), "a")
		for at := 0; at < len(got); at += 512 {
			if s := got[at : at+512]; strings.Trim(s, s[:1]) != "" {
				t.Fatalf("a sector is torn inside: %q", s)
			}
		}
		seen[got] = true
	}
	if len(seen) != 16 {
		t.Errorf("%d different outcomes of 4 sectors, want 16", len(seen))
	}
}

func TestFailedSyncForgetsDirtyBytes(t *testing.T) {
	disk := crashfs.New()
	f := create(t, disk, "a", "old")
	if err := errors.Join(f.Sync(), disk.SyncDir(".")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("new"), 0); err != nil {
		t.Fatal(err)
	}
	disk.FailNth(1, io.ErrUnexpectedEOF)
	if err := f.Sync(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("sync: %v", err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if got, _ := read(t, disk.Crash(nil), "a"); got != "old" {
		t.Errorf("%q: a second sync made lost bytes durable", got)
	}
}

func TestShortWrite(t *testing.T) {
	disk := crashfs.New()
	f := create(t, disk, "a", "")
	disk.FailNth(1, crashfs.ErrShortWrite)
	if n, err := f.WriteAt([]byte("1234"), 0); n != 2 || !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("wrote %d, %v", n, err)
	}
	if got, _ := read(t, disk, "a"); got != "12" {
		t.Errorf("file holds %q", got)
	}
}

func TestLockIsExclusiveAndEndsWithACrash(t *testing.T) {
	disk := crashfs.New()
	l, err := disk.Lock("lock")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := disk.Lock("lock"); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("second lock: %v", err)
	}
	if _, err := disk.Crash(nil).Lock("lock"); err != nil {
		t.Errorf("lock after a crash: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := disk.Lock("lock"); err != nil {
		t.Errorf("lock after release: %v", err)
	}
}
