package content_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/space/catalog"
	"github.com/repa-app/repa/space/content"
)

var update = flag.Bool("update", false, "make a new space of format 1, and write down what is read from it")

// The space in testdata/space-1 was written by format 1 of the journal's records. Every later version reads the same from it.
func TestGoldenSpace(t *testing.T) {
	golden := filepath.Join("testdata", "space-1")
	if *update {
		makeGolden(t, golden)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(golden)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "repa"), filepath.Join(dir, ".repa")); err != nil {
		t.Fatal(err)
	}
	d := deskIn(t, dir)
	got := d.story(t)
	name := golden + ".golden"
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s", cmp.Diff(string(want), got))
	}
	if err := d.undo(t, "edit", "undo-it"); err != nil {
		t.Errorf("an operation of the golden space cannot be undone: %v", err)
	}
}

// makeGolden makes a space in which everything has happened once.
func makeGolden(t *testing.T, golden string) {
	t.Helper()
	dir := t.TempDir()
	d := deskIn(t, dir)
	ctx := t.Context()
	d.outside(t, "notes/primes.md", "# Primes\n\nA prime has two divisors.\n")
	d.save(t, learner, "edit", "notes/primes.md", "# Primes\n\nA prime has exactly two divisors.\n")
	d.save(t, agent, "new", "notes/素数.md", "素数\n")
	for _, step := range []deed{register("reg", "notes/primes.md", "primes"), moveTo("move", "notes/primes.md", "maths/primes.md"), removeAt("gone", "notes/素数.md")} {
		if err := step.do(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	d.outside(t, "maths/primes.md", "# Primes\n\nA prime has exactly two divisors.\nTheirs.\n")
	d.observe(t, "maths/primes.md")
	d.save(t, learner, "short", "tmp.md", "x\n")
	if _, err := d.Prune(ctx, "short"); err != nil {
		t.Fatal(err)
	}
	origin := &catalog.Origin{Kind: catalog.URL, URL: "https://example.org", RetrievedAt: 7}
	if _, err := d.Associate(ctx, learner, content.Associate{ID: "web", Location: catalog.Here("tmp.md"), Role: catalog.Material, Item: "web", Origin: origin}); err != nil {
		t.Fatal(err)
	}
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(golden); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(golden, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(golden, ".repa"), filepath.Join(golden, "repa")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(golden, "repa", "tmp")); err != nil {
		t.Fatal(err)
	}
	again, err := vfs.OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { again.Close() })
	d.disk = again
	d.reopen(t)
}

// story is what a space says of itself.
func (d *desk) story(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	list, _, err := d.Operations(content.Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list {
		fmt.Fprintf(&out, "%s %s %s %s %s\n", o.ID, o.Status, o.By.Actor, o.Method, strings.Join(o.Paths, " "))
	}
	for _, target := range []content.Target{{ID: "primes"}, content.At("notes/素数.md"), {ID: "web"}} {
		fmt.Fprintf(&out, "\n%s\n", target)
		for _, r := range d.told(t, target) {
			fmt.Fprintf(&out, "  %s\n", strings.ReplaceAll(r, "\n", "|"))
		}
	}
	for _, id := range []string{"primes", "web"} {
		i, err := d.Get(t.Context(), content.Target{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "\n%s at %s, %s %s, %s, revision %s\n", i.ID, i.Location.Path, i.Role, i.MediaType, i.Status, *i.Revision)
	}
	_, pruned, err := d.Operation("short")
	fmt.Fprintf(&out, "\nshort pruned %v %v\n", pruned, err)
	return out.String()
}
