package vfs_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/testkit/crashfs"
)

// conform is what every FS must do.
func conform(t *testing.T, fsys vfs.FS) {
	t.Helper()
	if err := vfs.MkdirAll(fsys, "a/b", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := vfs.MkdirAll(fsys, "a/b", 0o700); err != nil {
		t.Errorf("making a folder that is there: %v", err)
	}
	for i, text := range []string{"first", "第二", "3"} {
		write := vfs.WriteFile
		if i == 1 {
			write = vfs.PublishFile
		}
		if err := write(fsys, "a/b/f", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := vfs.ReadFile(fsys, "a/b/f", 100); err != nil || string(got) != text {
			t.Errorf("read %q, %v; want %q", got, err, text)
		}
	}
	if _, err := vfs.ReadFile(fsys, "a/b/f", 0); !errors.Is(err, vfs.ErrTooLarge) {
		t.Errorf("limit: %v", err)
	}
	if _, err := vfs.ReadFile(fsys, "a/none", -1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
	if err := vfs.MkdirAll(fsys, "a/b/f/g", 0o700); err == nil {
		t.Error("made a folder below a file")
	}
	if entries, err := fsys.ReadDir("a/b"); err != nil || len(entries) != 1 {
		t.Errorf("a temporary file was left: %v, %v", entries, err)
	}
	f, err := fsys.OpenFile("a/b/f", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Preallocate(100); err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(); err != nil || info.Size() != 100 {
		t.Errorf("preallocated: %v, %v", info, err)
	}
	if err := errors.Join(f.Truncate(2), f.Sync(), f.Close(), fsys.SyncDir("a/b")); err != nil {
		t.Error(err)
	}
	sub, err := fsys.Sub("a/b")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := vfs.ReadFile(sub, "f", -1); err != nil || len(got) != 2 {
		t.Errorf("through Sub: %q, %v", got, err)
	}
	if err := sub.Close(); err != nil {
		t.Error(err)
	}
	l, err := fsys.Lock("a/lock")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fsys.Lock("a/lock"); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("second lock: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(fsys.Rename("a/b/f", "a/g"), fsys.Remove("a/b")); err != nil {
		t.Error(err)
	}
	if _, err := fsys.Stat("a/g"); err != nil {
		t.Error(err)
	}
}

func TestOSConforms(t *testing.T) {
	fsys, err := vfs.OS(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	conform(t, fsys)
}

func TestCrashFSConforms(t *testing.T) { conform(t, crashfs.New()) }

func TestOSStaysInside(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	fsys, err := vfs.OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	for _, name := range []string{"link/secret", "../secret", filepath.Join(outside, "secret"), "link/../../secret"} {
		if _, err := vfs.ReadFile(fsys, name, -1); err == nil {
			t.Errorf("read %s", name)
		}
		if err := vfs.WriteFile(fsys, name, nil, 0o600); err == nil {
			t.Errorf("wrote %s", name)
		}
		if l, err := fsys.Lock(name); err == nil {
			l.Close()
			t.Errorf("locked %s", name)
		}
	}
}

// Every call of WriteFile fails once: the old file stays whole and no temporary file is left when it can be removed.
func TestWriteFileFaults(t *testing.T) {
	for n := 1; ; n++ {
		disk := crashfs.New()
		if err := vfs.WriteFile(disk, "f", []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		before := disk.Calls()
		disk.FailNth(n, io.ErrUnexpectedEOF)
		err := vfs.WriteFile(disk, "f", []byte("new"), 0o600)
		calls := disk.Calls() - before
		disk.SetFault(nil)
		if got, rerr := vfs.ReadFile(disk, "f", -1); rerr != nil || (string(got) != "old" && string(got) != "new") {
			t.Fatalf("call %d failed: file holds %q, %v", n, got, rerr)
		}
		if entries, _ := disk.ReadDir("."); len(entries) != 1 {
			t.Errorf("call %d failed: left %v", n, entries)
		}
		if n > calls {
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d calls failed in turn", calls)
			return
		}
		if err == nil {
			t.Errorf("call %d failed, but WriteFile reports success", n)
		}
	}
}

func TestRenameTo(t *testing.T) {
	dir := t.TempDir()
	root, err := vfs.OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, d := range []string{"a", "b"} {
		if err := root.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	a, err := root.Sub("a")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := root.Sub("b")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := errors.Join(vfs.WriteFile(a, "f", []byte("new"), 0o600), vfs.WriteFile(b, "g", []byte("old"), 0o600), a.RenameTo("f", b, "g")); err != nil {
		t.Fatal(err)
	}
	if data, err := vfs.ReadFile(root, "b/g", 10); err != nil || string(data) != "new" {
		t.Errorf("b/g: %q %v", data, err)
	}
	if err := a.RenameTo("f", b, "g"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is gone: %v", err)
	}
	for _, name := range []string{"../x", "x/y", "..", ""} {
		if err := b.RenameTo("g", a, name); err == nil {
			t.Errorf("renamed to %q", name)
		}
	}
}

func TestFree(t *testing.T) {
	root, err := vfs.OS(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	disk, ok := vfs.FS(root).(interface{ Free() (int64, error) })
	if !ok {
		t.Skip("this system does not tell")
	}
	if n, err := disk.Free(); err != nil || n <= 0 {
		t.Errorf("%d bytes free: %v", n, err)
	}
}
