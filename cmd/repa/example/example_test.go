package example_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/cmd/repa/example"
	"github.com/repa-app/repa/testkit/crashfs"
)

// tree is everything below a folder: the text of each file, "/" for each folder.
func tree(t testing.TB, fsys vfs.FS, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return out
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if !e.IsDir() {
			data, err := vfs.ReadFile(fsys, name, -1)
			if err != nil {
				t.Fatal(err)
			}
			out[name] = string(data)
			continue
		}
		out[name] = "/"
		for k, v := range tree(t, fsys, name) {
			out[k] = v
		}
	}
	return out
}

// sample is what Unpack writes on a disk without faults.
func sample(t testing.TB) map[string]string {
	t.Helper()
	disk := crashfs.New()
	if err := example.Unpack(disk); err != nil {
		t.Fatal(err)
	}
	return tree(t, disk, ".")
}

func TestUnpack(t *testing.T) {
	got := sample(t)
	for _, name := range []string{"README.md", "goal.md", "memory/forgetting.md", "memory/spacing.md", "memory/forgetting-curve.svg",
		"practice/retrieval.md", "practice/interleaving.md", "记忆/间隔复习.md", "记忆/提取练习.md", "学习/目标与反馈.md"} {
		if got["example/"+name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
	if len(got) != 10+5 {
		t.Errorf("%d files and folders", len(got))
	}
}

func TestUnpackChangesNothing(t *testing.T) {
	for name, make := range map[string]func(vfs.FS) error{
		"an empty folder": func(d vfs.FS) error { return d.Mkdir("example", 0o700) },
		"a folder of the learner": func(d vfs.FS) error {
			return errors.Join(d.Mkdir("example", 0o700), vfs.WriteFile(d, "example/goal.md", []byte("mine"), 0o600))
		},
		"a file":             func(d vfs.FS) error { return vfs.WriteFile(d, "example", []byte("mine"), 0o600) },
		"the unpacked space": example.Unpack,
		"an edited one": func(d vfs.FS) error {
			return errors.Join(example.Unpack(d), vfs.WriteFile(d, "example/goal.md", []byte("mine"), 0o600), d.Remove("example/README.md"))
		},
	} {
		disk := crashfs.New()
		if err := make(disk); err != nil {
			t.Fatal(err)
		}
		before := tree(t, disk, ".")
		if err := example.Unpack(disk); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(before, tree(t, disk, ".")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// After a failure or a crash at any disk call the folder is there whole or not at all, and the next call completes it.
func TestUnpackIsAllOrNothing(t *testing.T) {
	want := sample(t)
	whole := func(disk *crashfs.FS, when string) {
		t.Helper()
		if got := under(tree(t, disk, ".")); len(got) > 0 {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s: %s", when, diff)
			}
		}
	}
	for n := 1; ; n++ {
		disk := crashfs.New()
		before := disk.Calls()
		disk.FailNth(n, errors.New("no space left on device"))
		err := example.Unpack(disk)
		if err == nil && disk.Calls()-before < n {
			if n < 40 {
				t.Errorf("only %d disk calls", n)
			}
			break
		}
		disk.SetFault(nil)
		whole(disk, "after a failure")
		for seed := range uint64(3) {
			crashed := disk.Crash(rand.New(rand.NewPCG(seed, uint64(n))))
			whole(crashed, "after a crash")
			if err := example.Unpack(crashed); err != nil {
				t.Fatalf("again after call %d failed: %v", n, err)
			}
			if diff := cmp.Diff(want, under(tree(t, crashed.Crash(nil), "."))); diff != "" {
				t.Fatalf("again after call %d failed: %s", n, diff)
			}
		}
	}
}

// under leaves out the temporary folders.
func under(all map[string]string) map[string]string {
	out := map[string]string{}
	for name, text := range all {
		if name == "example" || strings.HasPrefix(name, "example/") {
			out[name] = text
		}
	}
	return out
}

func TestUnpackIsDurable(t *testing.T) {
	disk := crashfs.New()
	if err := example.Unpack(disk); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(t), tree(t, disk.Crash(nil), ".")); diff != "" {
		t.Error(diff)
	}
}

func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	fsys, err := vfs.OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	old, young := filepath.Join(dir, "example.tmpOLD"), filepath.Join(dir, "example.tmpYOUNG")
	past := time.Now().Add(-2 * time.Hour)
	if err := errors.Join(os.MkdirAll(filepath.Join(old, "memory"), 0o700), os.WriteFile(filepath.Join(old, "memory", "x.md"), nil, 0o600),
		os.Mkdir(young, 0o700), os.WriteFile(filepath.Join(dir, "example.tmp.txt"), []byte("mine"), 0o600), os.Chtimes(old, past, past)); err != nil {
		t.Fatal(err)
	}
	if err := example.Unpack(fsys); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old leftover: %v", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("what another process may be writing: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "example.tmp.txt")); err != nil {
		t.Errorf("a file of that name: %v", err)
	}
}

func TestUnpackConcurrently(t *testing.T) {
	fsys, err := vfs.OS(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := example.Unpack(fsys); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if diff := cmp.Diff(sample(t), tree(t, fsys, ".")); diff != "" {
		t.Error(diff)
	}
}

// The notes are what they say: links lead to files, the drawing is valid and has a title, the Chinese ones are in Chinese with
// its own punctuation, and each is short.
func TestNotes(t *testing.T) {
	all := sample(t)
	for name, text := range all {
		switch path.Ext(name) {
		case ".svg":
			checkDrawing(t, name, text)
		case ".md":
			if !strings.HasPrefix(text, "# ") || !strings.HasSuffix(text, "\n") || len(text) > 4<<10 {
				t.Errorf("%s: begins %.20q, %d bytes", name, text, len(text))
			}
			for _, part := range strings.Split(text, "](")[1:] {
				target, _, _ := strings.Cut(part, ")")
				if all[path.Join(path.Dir(name), target)] == "" {
					t.Errorf("%s links to %s, which is not there", name, target)
				}
			}
			if strings.ContainsFunc(path.Dir(name), func(r rune) bool { return unicode.Is(unicode.Han, r) }) && strings.ContainsAny(text, ",;?!:") {
				t.Errorf("%s has half-width punctuation", name)
			}
		}
	}
}

func checkDrawing(t *testing.T, name, text string) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader([]byte(text)))
	titled := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "title" {
			titled = true
		}
	}
	if !titled || len(text) > 4<<10 {
		t.Errorf("%s: titled %v, %d bytes", name, titled, len(text))
	}
}
