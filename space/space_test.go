package space_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/repa-app/repa/space"
)

var ctx = context.Background()

func options() space.Options {
	var n atomic.Int64
	return space.Options{NewID: func() string { return fmt.Sprintf("id-%d", n.Add(1)) }, Owner: space.Owner{PID: os.Getpid()}}
}

func open(t testing.TB, dir string) *space.Space {
	t.Helper()
	s, err := space.Open(ctx, dir, options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	})
	return s
}

func put(t testing.TB, dir, name, text string) {
	t.Helper()
	full := filepath.Join(dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o700), os.WriteFile(full, []byte(text), 0o640)); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func code(err error) string {
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		return coded.Code()
	}
	return fmt.Sprint(err)
}

func TestIdentityStaysWhenTheFolderMoves(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not there", "notes")
	s := open(t, dir)
	id := s.ID()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	if s := open(t, moved); s.ID() != id || id == "" {
		t.Errorf("id %q became %q", id, s.ID())
	}
	info, err := os.Stat(filepath.Join(moved, ".repa"))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf(".repa: %v, %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(moved)
	if err != nil || len(entries) != 1 {
		t.Errorf("first contact made more than .repa: %v", entries)
	}
}

func TestOpenRefuses(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	dir := t.TempDir()
	put(t, dir, "file", "x")
	put(t, dir, "damaged/.repa/space.json", `{"format": "repa.space", "version": 1, "id": "no good"}`)
	put(t, dir, "newer/.repa/space.json", `{"format": "repa.space", "version": 2, "id": "x"}`)
	put(t, dir, "garbage/.repa/space.json", "\x00")
	put(t, dir, "blocked/.repa", "a file")
	link := filepath.Join(dir, "to-home")
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ dir, code, says string }{
		{"/", "invalid_path", "root"},
		{home, "invalid_path", "home folder"},
		{home + "/", "invalid_path", "home folder"},
		{link, "invalid_path", "home folder"},
		{"relative", "invalid_path", "absolute"},
		{filepath.Join(dir, "file"), "not_directory", "is a file"},
		{filepath.Join(dir, "file", "below"), "not_directory", ""},
		{filepath.Join(dir, "damaged"), "invalid_storage", "left as it is"},
		{filepath.Join(dir, "newer"), "invalid_storage", "newer version"},
		{filepath.Join(dir, "garbage"), "invalid_storage", "space.json"},
		{filepath.Join(dir, "blocked"), "invalid_storage", ".repa"},
	} {
		s, err := space.Open(ctx, tc.dir, options())
		if err == nil {
			s.Close()
		}
		if tc.dir == filepath.Join(dir, "file", "below") {
			if err == nil {
				t.Error("opened a space below a file")
			}
			continue
		}
		if code(err) != tc.code || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("open %s: %s (%v), want %s with %q", tc.dir, code(err), err, tc.code, tc.says)
		}
	}
	if got := get(t, dir, "newer/.repa/space.json"); !strings.Contains(got, `"version": 2`) {
		t.Errorf("a newer file was changed: %s", got)
	}
}

func TestUnreadableFolder(t *testing.T) {
	if os.Getuid() == 0 {
		// Root reads everything; another user does not.
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		runAs(t, dir)
		return
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := space.Open(ctx, dir, options()); code(err) != "permission_denied" {
		t.Error(err)
	}
}

func TestTheLockNamesItsHolderAndEndsWithIt(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	_, err := space.Open(ctx, dir, options())
	if code(err) != "space_in_use" || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("second open: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir)

	// A process that dies by SIGKILL frees the lock at once.
	killed := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^TestHoldLock$")
	child.Env = append(os.Environ(), "REPA_HOLD="+killed)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := space.Open(ctx, killed, options()); code(err) != "space_in_use" {
		t.Errorf("open beside a process: %v", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	open(t, killed)
}

// TestHoldLock is the child process of the test above.
func TestHoldLock(t *testing.T) {
	dir := os.Getenv("REPA_HOLD")
	if dir == "" {
		return
	}
	open(t, dir)
	fmt.Print(".")
	time.Sleep(time.Hour)
}

func TestSearchFindsWhatWasJustWritten(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(t, dir, "new.md", "line one\nthe answer is 量子纠缠\n")
	r, err := s.Search(ctx, "量子", 5)
	if err != nil || len(r.Matches) != 1 || r.Matches[0].Line != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := s.Search(ctx, " \n", 5); code(err) != "invalid_input" {
		t.Error(err)
	}
}
