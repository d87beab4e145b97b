package search_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/space/search"
	"github.com/repa-app/repa/testkit/crashfs"
)

var ctx = context.Background()

func folder(t testing.TB, files map[string]string) vfs.FS {
	t.Helper()
	disk := crashfs.New()
	for name, text := range files {
		if err := vfs.MkdirAll(disk, filepath.ToSlash(filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := vfs.WriteFile(disk, name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return disk
}

var library = map[string]string{
	"memory/spacing.md": "# Spacing\n\nSpaced practice spreads study over days.\nForgetting a little makes the next recall worth more.\n",
	"memory/testing.md": "# Retrieval practice\n\nRecalling from memory strengthens it more than reading again.\n",
	"记忆/间隔.md":          "# 间隔练习\n\n把复习分散到几天,比一次学完记得更久。\n遗忘曲线说明,间隔越长,提取越难。\n",
	"记忆/提取.md":          "# 提取练习\n\n合上书回忆,比再读一遍更有效。\n",
	"bio/cells.md":      "# Cells\n\nMitochondria make ATP.\r\nThe membrane is a bilayer.\r\n",
	"wide.md":           "ＡＴＰ is written in full-width letters here.\n",
}

func TestFinds(t *testing.T) {
	disk := folder(t, library)
	for _, tc := range []struct{ query, path, text string }{
		{"Why does spacing practice help?", "memory/spacing.md", "Spaced practice"},
		{"mitochondria", "bio/cells.md", "Mitochondria make ATP."},
		{"What is a BILAYER?", "bio/cells.md", "The membrane is a bilayer."},
		{"recalling from memory", "memory/testing.md", "Recalling from memory"},
		{"为什么间隔练习有用?", "记忆/间隔.md", "间隔"},
		{"遗忘曲线", "记忆/间隔.md", "遗忘曲线"},
		{"怎么用回忆来学习", "记忆/提取.md", "回忆"},
		{"full width atp", "wide.md", "ＡＴＰ"},
		{"the membrane is a", "bio/cells.md", "The membrane is a bilayer."},
		{"is the", "", ""}, // only function words: whatever is found, it must not fail
	} {
		r, err := search.Files(ctx, disk, tc.query, 5)
		if err != nil {
			t.Fatal(err)
		}
		if tc.path == "" {
			continue
		}
		if len(r.Matches) == 0 || r.Matches[0].Path != tc.path || !strings.Contains(r.Matches[0].Text, tc.text) {
			t.Errorf("%q found %+v, want %q in %s first", tc.query, r.Matches, tc.text, tc.path)
		}
	}
}

func TestLineNumbersAreThoseOfTheFile(t *testing.T) {
	r, err := search.Files(ctx, folder(t, library), "bilayer", 1)
	if err != nil || len(r.Matches) != 1 || r.Matches[0].Line != 4 || r.Matches[0].Text != "The membrane is a bilayer." {
		t.Errorf("%+v, %v", r, err)
	}
}

// Every line that holds a rare word is found at its own number, whatever stands around it.
func TestFindsAnyPlantedLine(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		word := rapid.SampledFrom([]string{"zyxwv", "量子", "ひらがな", "코끼리", "Ünïcode"}).Draw(rt, "word")
		lines := rapid.SliceOfN(rapid.StringMatching(`[a-m ,.#\-一二三]{0,30}`), 1, 20).Draw(rt, "lines")
		at := rapid.IntRange(0, len(lines)-1).Draw(rt, "at")
		lines[at] += " " + word + " "
		ending := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(rt, "ending")
		disk := folder(t, map[string]string{"a/b.txt": strings.Join(lines, ending), "c.txt": "nothing here"})
		r, err := search.Files(ctx, disk, word, 10)
		if err != nil || len(r.Matches) != 1 || r.Matches[0].Line != at+1 || r.Matches[0].Text != lines[at] {
			rt.Fatalf("%q: %+v, %v; want line %d", word, r.Matches, err, at+1)
		}
	})
}

func TestPassesOver(t *testing.T) {
	disk := folder(t, map[string]string{
		"a.md": "needle", ".git/b.md": "needle", ".repa/c.md": "needle", "node_modules/d.md": "needle",
		"binary": "needle\x00", "latin1": "needle \xe9", "big": "needle " + strings.Repeat("x", 4<<20),
	})
	r, err := search.Files(ctx, disk, "needle", 10)
	if err != nil || len(r.Matches) != 1 || r.Matches[0].Path != "a.md" || r.Files != 1 || r.Skipped != 3 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestSymbolicLinksAreNotFollowed(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(outside, "secret.md"), []byte("needle"), 0o600),
		os.Symlink(outside, filepath.Join(dir, "out")), os.Symlink(dir, filepath.Join(dir, "loop")),
		os.Symlink(filepath.Join(outside, "secret.md"), filepath.Join(dir, "file.md"))); err != nil {
		t.Fatal(err)
	}
	fsys, err := vfs.OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	if r, err := search.Files(ctx, fsys, "needle", 10); err != nil || len(r.Matches) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestLimitAndOneFileCannotHideOthers(t *testing.T) {
	files := map[string]string{"long.md": strings.Repeat("needle\n", 1000)}
	for i := range 5 {
		files[fmt.Sprintf("n%d.md", i)] = "a needle\n"
	}
	r, err := search.Files(ctx, folder(t, files), "needle", 13)
	if err != nil || len(r.Matches) != 13 || r.More {
		t.Errorf("%d matches, more %v, %v", len(r.Matches), r.More, err)
	}
	r, err = search.Files(ctx, folder(t, files), "needle", 3)
	if err != nil || len(r.Matches) != 3 || !r.More {
		t.Errorf("%d matches, more %v, %v", len(r.Matches), r.More, err)
	}
}

func TestEndsWithItsContext(t *testing.T) {
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := search.Files(done, folder(t, library), "memory", 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestUnreadableFilesAreCounted(t *testing.T) {
	disk := crashfs.New()
	if err := errors.Join(vfs.WriteFile(disk, "a.md", []byte("needle"), 0o600), vfs.WriteFile(disk, "b.md", []byte("needle"), 0o600)); err != nil {
		t.Fatal(err)
	}
	disk.SetFault(func(c crashfs.Call) error {
		if c.Path == "a.md" {
			return errors.New("input/output error")
		}
		return nil
	})
	r, err := search.Files(ctx, disk, "needle", 10)
	if err != nil || len(r.Matches) != 1 || r.Skipped != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func FuzzFiles(f *testing.F) {
	f.Add("spaced practice", "practice\n练习")
	f.Add("练", "一个字\r\n练")
	f.Add("\xff", "\xff\xfe")
	f.Fuzz(func(t *testing.T, query, text string) {
		r, err := search.Files(ctx, folder(t, map[string]string{"f": text}), query, 10)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n")
		for _, m := range r.Matches {
			if got := strings.TrimRight(lines[m.Line-1], "\r\n"); got != m.Text {
				t.Fatalf("line %d is %q, not %q", m.Line, got, m.Text)
			}
		}
	})
}

func BenchmarkFiles(b *testing.B) {
	files := map[string]string{}
	for i := range 1000 {
		files[fmt.Sprintf("notes/%d.md", i)] = strings.Repeat("Spaced practice spreads study over days. 把复习分散到几天。\n", 60)
	}
	dir := b.TempDir()
	for name, text := range files {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err != nil {
			b.Fatal(err)
		}
	}
	fsys, err := vfs.OS(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer fsys.Close()
	for b.Loop() {
		if _, err := search.Files(ctx, fsys, "why does spaced practice help 复习", 20); err != nil {
			b.Fatal(err)
		}
	}
}
