package content_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/space/content"
	"github.com/repa-app/repa/space/text"
)

// deskIn is a new space in a folder of the real disk.
func deskIn(t testing.TB, dir string) *desk {
	t.Helper()
	disk, err := vfs.OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { disk.Close() })
	return openDesk(t, disk, dir)
}

func link(t testing.TB, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func TestPathsStayInside(t *testing.T) {
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	d := deskIn(t, dir)
	d.outside(t, "plain", "x")
	for name, target := range map[string]string{"out": outside, "meta": filepath.Join(dir, ".repa"), "deep": ".repa/journal", "up": "..",
		"file": secret, "loop": "loop", "far": "../../../../../../../../" + secret} {
		link(t, target, filepath.Join(dir, name))
	}
	names := []string{
		"", ".", "..", "/", "../x", "a/../../x", "/etc/passwd", secret, "\x00", "a\x00b", ".repa", ".repa/space.json", ".REPA/space.json", "./.repa/x",
		"a/../.repa/x", ".Repa", ".repa.", ".repa ", "．repa/x", `..\x`, `.repa\x`, "out/secret", "out/new", "meta/space.json", "deep/x", "file", "plain/x",
		"up/x", "loop", "loop/x", "far", filepath.Join(dir, ".repa/space.json"), ".repa-x.tmp",
	}
	for i, name := range names {
		target := content.At(name)
		if r, err := d.ReadText(t.Context(), target); err == nil {
			t.Errorf("read %q: %q", name, r.Text)
		}
		if _, err := d.Write(t.Context(), learner, content.Write{ID: fmt.Sprint("w-", i), Target: target, Text: "x", Base: none}); err == nil {
			t.Errorf("wrote %q", name)
		}
		if _, _, err := d.Edit(t.Context(), learner, content.Edits{ID: fmt.Sprint("e-", i), Target: target, Edits: []text.Edit{{Old: "s", New: "x"}}}); err == nil {
			t.Errorf("edited %q", name)
		}
		if _, err := d.Remove(t.Context(), learner, content.Remove{ID: fmt.Sprint("d-", i), Target: target, Base: revision("secret")}); err == nil {
			t.Errorf("removed %q", name)
		}
	}
	if data, err := os.ReadFile(secret); err != nil || string(data) != "secret" {
		t.Errorf("the file outside holds %q %v", data, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("the folder outside holds %v %v", entries, err)
	}
}

// A link that stays inside is another name of the real file, which alone is changed.
func TestLinksInside(t *testing.T) {
	dir := t.TempDir()
	d := deskIn(t, dir)
	d.outside(t, "real/a.md", "one\n")
	link(t, "real", filepath.Join(dir, "alias"))
	link(t, filepath.Join(dir, "real", "a.md"), filepath.Join(dir, "b.md"))
	for i, name := range []string{"alias/a.md", "b.md"} {
		doc, err := d.ReadText(t.Context(), content.At(name))
		if err != nil || doc.Path != "real/a.md" {
			t.Errorf("%s is %s: %v", name, doc.Path, err)
		}
		w := content.Write{ID: fmt.Sprint("w", i), Target: content.At(name), Text: fmt.Sprint(i, "\n"), Base: content.Base{Revision: doc.Revision}}
		if _, err := d.Write(t.Context(), learner, w); err != nil {
			t.Error(err)
		}
		if d.on(t, "real/a.md") != fmt.Sprint(i, "\n") {
			t.Errorf("through %s the file has %q", name, d.on(t, "real/a.md"))
		}
	}
	if info, err := os.Lstat(filepath.Join(dir, "b.md")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v %v", info.Mode(), err)
	}
}

// A folder is swapped for a link to .repa again and again while the agent writes into it: nothing arrives there.
func TestSwappedLinksDoNotReachRepa(t *testing.T) {
	dir := t.TempDir()
	d := deskIn(t, dir)
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	rounds := 300
	if os.Getenv("REPA_TEST") == "long" {
		rounds = 100_000
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
	for i := range rounds {
		if _, err := d.Write(t.Context(), agent, content.Write{ID: fmt.Sprint("w", i), Target: content.At(fmt.Sprintf("door/planted-%d", i)), Text: "x", Base: none}); err == nil {
			wrote++
		}
	}
	close(stop)
	swapper.Wait()
	planted, err := filepath.Glob(filepath.Join(dir, ".repa", "planted*"))
	if err != nil || len(planted) > 0 {
		t.Errorf("%d files arrived in .repa", len(planted))
	}
	t.Logf("%d of %d writes hit a moment when the folder was there", wrote, rounds)
}

func FuzzPaths(f *testing.F) {
	for _, seed := range []string{"a", "../a", ".repa/x", ".repa\x16x", "a\x1b[2J", "a/./b", `a\..\b`, "/x", "\u202e", "a//b", strings.Repeat("a/", 300)} {
		f.Add(seed)
	}
	dir := f.TempDir()
	d := deskIn(f, dir)
	n := 0
	f.Fuzz(func(t *testing.T, name string) {
		n++
		r, err := d.Write(t.Context(), learner, content.Write{ID: fmt.Sprint("w", n), Target: content.At(name), Text: "x", Base: none})
		if err != nil {
			if strings.HasPrefix(code(err), "uncoded") {
				t.Fatalf("error without a code for %q: %v", name, err)
			}
			return
		}
		for _, c := range r.Changes {
			full := filepath.Join(dir, filepath.FromSlash(c.Path))
			rel, err := filepath.Rel(dir, full)
			if err != nil || !filepath.IsLocal(rel) || rel == ".repa" || strings.HasPrefix(rel, ".repa/") || strings.ContainsAny(rel, "\x16\x1b") {
				t.Fatalf("%q was written to %s", name, full)
			}
			if err := os.RemoveAll(full); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
	})
}
