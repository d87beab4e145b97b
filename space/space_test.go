package space_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/repa-app/repa/cas"
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

func revision(text string) *string {
	r := cas.Sum([]byte(text)).String()
	return &r
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

func TestReadWriteEdit(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	c, err := s.Write(ctx, "notes/新/a.md", "one\ntwo\n", nil)
	if err != nil || c.Before != nil || *c.After != *revision("one\ntwo\n") || c.Path != "notes/新/a.md" {
		t.Fatalf("%+v, %v", c, err)
	}
	d, err := s.Read(ctx, filepath.Join(dir, "notes/新/a.md"))
	if err != nil || d.Text != "one\ntwo\n" || d.Revision != *c.After || d.Path != "notes/新/a.md" {
		t.Fatalf("%+v, %v", d, err)
	}
	if _, err := s.Write(ctx, "notes/新/a.md", "lost", nil); code(err) != "revision_conflict" {
		t.Errorf("write without base: %v", err)
	}
	if _, err := s.Write(ctx, "notes/新/a.md", "lost", revision("older")); code(err) != "revision_conflict" {
		t.Errorf("write with an old base: %v", err)
	}
	if _, err := s.Write(ctx, "absent.md", "x", revision("x")); code(err) != "revision_conflict" {
		t.Errorf("write of a vanished file: %v", err)
	}
	if c, err = s.Write(ctx, "./notes/新/a.md", "one\n二\nthree\n", &d.Revision); err != nil || *c.Before != d.Revision {
		t.Fatalf("%+v, %v", c, err)
	}
	if !strings.Contains(c.Diff, "-two\n") || !strings.Contains(c.Diff, "+二\n") {
		t.Errorf("diff: %s", c.Diff)
	}
	if _, err = s.Edit(ctx, "notes/新/a.md", []space.Edit{{Old: "three", New: "3"}, {Old: "one\n", New: ""}}); err != nil {
		t.Fatal(err)
	}
	if got := get(t, dir, "notes/新/a.md"); got != "二\n3\n" {
		t.Errorf("file holds %q", got)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "notes/新"))
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestEditKeepsEveryOtherByte(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for _, tc := range []struct{ before, old, new, after string }{
		{"\xef\xbb\xbfone\r\ntwo\r\nthree", "one\ntwo", "1\n2", "\xef\xbb\xbf1\r\n2\r\nthree"},
		{"a\n\tb  \nno newline", "b  ", "c", "a\n\tc\nno newline"},
		{"“引号”与全角　空格\n", "与", "和", "“引号”和全角　空格\n"},
		{"mixed\r\nends\n", "ends", "x\ny", "mixed\r\nx\ny\n"},
	} {
		put(t, dir, "f", tc.before)
		if _, err := s.Edit(ctx, "f", []space.Edit{{Old: tc.old, New: tc.new}}); err != nil {
			t.Error(err)
		}
		if got := get(t, dir, "f"); got != tc.after {
			t.Errorf("%q became %q, want %q", tc.before, got, tc.after)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "f"))
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("permissions became %v", info.Mode())
	}
}

func TestEditRefuses(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	const text = "aaa\nbb\naaa\n"
	put(t, dir, "f", text)
	put(t, dir, "binary", "a\x00")
	for _, tc := range []struct {
		name  string
		edits []space.Edit
		code  string
		says  string
	}{
		{"f", nil, "invalid_input", "no edit"},
		{"f", []space.Edit{{"", "x"}}, "invalid_input", "empty"},
		{"f", []space.Edit{{"bb", "bb"}}, "invalid_input", "equals"},
		{"f", []space.Edit{{"zz", "x"}}, "ambiguous_match", "does not occur"},
		{"f", []space.Edit{{"aaa", "x"}}, "ambiguous_match", "lines 1, 3"},
		{"f", []space.Edit{{"aa\nbb", "x"}, {"b\naa", "y"}}, "invalid_input", "overlap"},
		{"f", []space.Edit{{"bb", "x"}, {"bb\n", "y"}}, "invalid_input", "overlap"},
		{"f", []space.Edit{{"bb", "x"}, {"none", "y"}}, "ambiguous_match", "edit 2"},
		{"f", []space.Edit{{"bb", "\xff"}}, "unsupported_format", "UTF-8"},
		{"binary", []space.Edit{{"a", "b"}}, "unsupported_format", "not changed"},
		{"none", []space.Edit{{"a", "b"}}, "not_found", "does not exist"},
	} {
		_, err := s.Edit(ctx, tc.name, tc.edits)
		if code(err) != tc.code || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("edit %v: %s: %v; want %s with %q", tc.edits, code(err), err, tc.code, tc.says)
		}
	}
	if got := get(t, dir, "f"); got != text {
		t.Errorf("a refused edit changed the file to %q", got)
	}
}

// An edit of a unique place gives what strings.Replace gives.
func TestEditEqualsReplace(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	rapid.Check(t, func(rt *rapid.T) {
		before := rapid.StringMatching(`[ab复\n]{1,12}`).Draw(rt, "before")
		old := rapid.StringMatching(`[ab复\n]{1,3}`).Draw(rt, "old")
		put(t, dir, "f", before)
		_, err := s.Edit(ctx, "f", []space.Edit{{Old: old, New: "新"}})
		unique := strings.Contains(before, old) && strings.Index(before, old) == strings.LastIndex(before, old)
		want := before
		if unique {
			want = strings.Replace(before, old, "新", 1)
		}
		if (err == nil) != unique || get(t, dir, "f") != want {
			rt.Fatalf("%q in %q gave %q, %v", old, before, get(t, dir, "f"), err)
		}
	})
}

func TestPathsStayInside(t *testing.T) {
	outside := t.TempDir()
	put(t, outside, "secret", "secret")
	dir := t.TempDir()
	s := open(t, dir)
	put(t, dir, "plain", "x")
	for name, target := range map[string]string{"out": outside, "meta": filepath.Join(dir, ".repa"), "deep": ".repa/sessions",
		"self": ".", "file": filepath.Join(outside, "secret")} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{
		"", ".", "..", "/", "../x", "a/../../x", "/etc/passwd", filepath.Join(outside, "secret"), "\x00", "a\x00b",
		".repa", ".repa/space.json", ".REPA/space.json", "./.repa/x", "a/../.repa/x", ".Repa", ".repa.", ".repa ", "．repa/x",
		`..\x`, `.repa\x`, "out/secret", "out/new", "meta/space.json", "deep/x", "self/.repa/x", "self/plain", "file", "plain/x",
		filepath.Join(dir, ".repa/space.json"),
	}
	for _, name := range names {
		if d, err := s.Read(ctx, name); err == nil {
			t.Errorf("read %q: %q", name, d.Text)
		}
		if _, err := s.Write(ctx, name, "x", nil); err == nil {
			t.Errorf("wrote %q", name)
		}
		if _, err := s.Edit(ctx, name, []space.Edit{{Old: "s", New: "x"}}); err == nil {
			t.Errorf("edited %q", name)
		}
	}
	if got := get(t, outside, "secret"); got != "secret" {
		t.Errorf("outside file holds %q", got)
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside folder holds %v", entries)
	}
}

// A folder is swapped for a link to .repa again and again while the agent writes into it: nothing arrives there.
func TestSwappedLinksDoNotReachRepa(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		door := filepath.Join(dir, "door")
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(filepath.Join(dir, "real"), door)
			_ = os.Rename(door, filepath.Join(dir, "real"))
			_ = os.Symlink(".repa", door)
			_ = os.Remove(door)
		}
	})
	wrote := 0
	for i := range 600 {
		if _, err := s.Write(ctx, fmt.Sprintf("door/planted-%d", i), "x", nil); err == nil {
			wrote++
		}
	}
	close(stop)
	swapper.Wait()
	planted, err := filepath.Glob(filepath.Join(dir, ".repa", "planted*"))
	if err != nil || len(planted) > 0 {
		t.Errorf("%d files arrived in .repa", len(planted))
	}
	t.Logf("%d of 600 writes hit a moment when the folder was there", wrote)
}

func TestReadRefusesWhatIsNoText(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(t, dir, "latin1", "caf\xe9")
	put(t, dir, "big", strings.Repeat("x", 16<<20+1))
	for name, want := range map[string]string{"latin1": "unsupported_format", "big": "content_limit", "none": "not_found"} {
		if _, err := s.Read(ctx, name); code(err) != want {
			t.Errorf("read %s: %v, want %s", name, err, want)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(ctx, "folder"); code(err) != "invalid_path" {
		t.Errorf("read a folder: %v", err)
	}
}

func TestSearchFindsWhatWasJustWritten(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if _, err := s.Write(ctx, "new.md", "line one\nthe answer is 量子纠缠\n", nil); err != nil {
		t.Fatal(err)
	}
	r, err := s.Search(ctx, "量子", 5)
	if err != nil || len(r.Matches) != 1 || r.Matches[0].Line != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := s.Search(ctx, " \n", 5); code(err) != "invalid_input" {
		t.Error(err)
	}
}

func FuzzPaths(f *testing.F) {
	for _, seed := range []string{"a", "../a", ".repa/x", ".repa\x16x", "a\x1b[2J", "a/./b", `a\..\b`, "/x", "\u202e", "a//b", strings.Repeat("a/", 300)} {
		f.Add(seed)
	}
	dir := f.TempDir()
	s := open(f, dir)
	f.Fuzz(func(t *testing.T, name string) {
		c, err := s.Write(ctx, name, "x", nil)
		if err != nil {
			if code(err) == fmt.Sprint(err) {
				t.Fatalf("error without a code for %q: %v", name, err)
			}
			return
		}
		full := filepath.Join(dir, filepath.FromSlash(c.Path))
		rel, err := filepath.Rel(dir, full)
		if err != nil || !filepath.IsLocal(rel) || rel == ".repa" || strings.HasPrefix(rel, ".repa/") || strings.ContainsAny(rel, "\x16\x1b") {
			t.Fatalf("%q was written to %s", name, full)
		}
		if err := os.Remove(full); err != nil {
			t.Fatal(err)
		}
	})
}
