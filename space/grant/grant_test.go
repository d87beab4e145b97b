package grant_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/space/grant"
)

func TestGrants(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config", "repa")
	g := grant.New(config)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	book, other := filepath.Join(dir, "sub", "book.pdf"), filepath.Join(dir, "sub", "other.pdf")
	if err := errors.Join(os.Mkdir(filepath.Dir(book), 0o700), os.WriteFile(book, []byte("book"), 0o600), os.WriteFile(other, []byte("other"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Open("s1", book); !errors.Is(err, grant.ErrNone) {
		t.Errorf("without a grant: %v", err)
	}
	for range 2 {
		if err := g.Allow("s1", book); err != nil {
			t.Fatal(err)
		}
	}
	again := grant.New(config)
	f, err := again.Open("s1", book)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 4)
	if _, err := f.Read(data); err != nil || string(data) != "book" {
		t.Errorf("%q %v", data, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ space, file string }{{"s2", book}, {"s1", other}, {"s1", filepath.Dir(book)}} {
		if _, err := g.Open(c.space, c.file); !errors.Is(err, grant.ErrNone) {
			t.Errorf("%v: %v", c, err)
		}
	}
	for name, want := range map[string]error{filepath.Dir(book): grant.ErrMoved, filepath.Join(dir, "none"): fs.ErrNotExist} {
		if err := g.Allow("s1", name); !errors.Is(err, want) {
			t.Errorf("grant of %s: %v", name, err)
		}
	}
	// A grant ends while the path leads elsewhere, and holds again afterwards.
	if err := errors.Join(os.Rename(filepath.Dir(book), filepath.Join(dir, "real")), os.Symlink("real", filepath.Dir(book))); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Open("s1", book); !errors.Is(err, grant.ErrMoved) {
		t.Errorf("through a link: %v", err)
	}
	if err := errors.Join(os.Remove(filepath.Dir(book)), os.Rename(filepath.Join(dir, "real"), filepath.Dir(book))); err != nil {
		t.Fatal(err)
	}
	f, err = g.Open("s1", book)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedGrantsAreLeft(t *testing.T) {
	config := t.TempDir()
	g := grant.New(config)
	folder, err := vfs.OS(config)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	for _, bad := range []string{"{", `{"format":"other","version":1}`, `{"format":"repa.grants","version":2}`} {
		if err := vfs.WriteFile(folder, "grants.json", []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := g.Allow("s", os.Args[0]); err == nil {
			t.Errorf("%s was replaced", bad)
		}
		if _, err := g.Open("s", os.Args[0]); err == nil || errors.Is(err, grant.ErrNone) {
			t.Errorf("%s: %v", bad, err)
		}
		if data, err := vfs.ReadFile(folder, "grants.json", -1); err != nil || string(data) != bad {
			t.Errorf("the file is %q %v", data, err)
		}
	}
}
