package content_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/space/content"
)

// told is a history in short: newest first, "actor cause text path".
func (d *desk) told(t testing.TB, target content.Target) (out []string) {
	t.Helper()
	cursor := ""
	for {
		h, err := d.History(t.Context(), target, 2, cursor)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range h.Revisions {
			text := "-"
			if r.Revision != nil {
				text = strings.TrimSpace(d.bytes(t, *r.Revision))
			}
			out = append(out, fmt.Sprintf("%s %s %s %s", r.By.Actor, r.Cause, text, r.Path))
		}
		if cursor = h.Cursor; cursor == "" {
			return out
		}
	}
}

func (d *desk) bytes(t testing.TB, revision string) string {
	t.Helper()
	id, err := cas.ParseID(revision)
	if err != nil {
		t.Fatal(err)
	}
	data, err := d.store.Get(context.Background(), id, -1)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestHistoryFollowsTheDocument(t *testing.T) {
	d := newDesk(t)
	ctx := t.Context()
	d.outside(t, "a.md", "found\n")
	d.save(t, learner, "w1", "a.md", "one\n")
	d.save(t, agent, "w2", "a.md", "two\n")
	d.outside(t, "a.md", "edited\n")
	if _, err := d.Observe(ctx, 1<<20, "a.md"); err != nil {
		t.Fatal(err)
	}
	if err := register("r", "a.md", "A").do(ctx, d); err != nil {
		t.Fatal(err)
	}
	if err := moveTo("m", "a.md", "f/b.md").do(ctx, d); err != nil {
		t.Fatal(err)
	}
	d.outside(t, "f/b.md", "again\n")
	d.save(t, learner, "w3", "f/b.md", "three\n")
	want := []string{
		"learner content.write three f/b.md",
		"outside observed again f/b.md",
		"learner content.move edited f/b.md",
		"outside observed edited a.md",
		"agent content.write two a.md",
		"learner content.write one a.md",
		"outside observed found a.md",
	}
	for _, target := range []content.Target{{ID: "A"}, content.At("f/b.md")} {
		if got := d.told(t, target); !cmp.Equal(got, want) {
			t.Errorf("history of %s: %s", target, cmp.Diff(want, got))
		}
	}
	if err := removeAt("d", "f/b.md").do(ctx, d); err != nil {
		t.Fatal(err)
	}
	if got := d.told(t, content.At("f/b.md")); len(got) != 8 || got[0] != "learner content.remove - f/b.md" {
		t.Errorf("removed: %v", got)
	}
	_, err := d.History(ctx, content.At("never.md"), 0, "")
	wantCode(t, err, "not_found")
	c, err := d.Compare(ctx, content.At("f/b.md"), revision("one\n"), revision("three\n"))
	if err != nil || !strings.Contains(c.Unified, "-one\n") || !strings.Contains(c.Unified, "+three\n") {
		t.Errorf("compared: %+v %v", c, err)
	}
	c, err = d.Compare(ctx, content.At("f/b.md"), "", "")
	if err != nil || c.To != nil || c.From == nil || *c.From != revision("three\n") {
		t.Errorf("with what is there now: %+v %v", c, err)
	}
}

func TestCompareWithTheOneBefore(t *testing.T) {
	d := newDesk(t)
	for i, text := range []string{"1\n", "2\n", "3\n"} {
		d.save(t, learner, fmt.Sprint("w", i), "a.md", text)
	}
	for to, from := range map[string]string{"": "2\n", "3\n": "2\n", "2\n": "1\n", "1\n": ""} {
		want, given := "", to
		if from != "" {
			want = revision(from)
		}
		if to != "" {
			given = revision(to)
		}
		c, err := d.Compare(t.Context(), content.At("a.md"), "", given)
		if err != nil || (c.From == nil) != (want == "") || c.From != nil && *c.From != want {
			t.Errorf("before %q: %v %v, want %q", to, c.From, err, from)
		}
	}
	d.outside(t, "a.md", "not noted yet\n")
	if c, err := d.Compare(t.Context(), content.At("a.md"), "", ""); err != nil || c.From == nil || *c.From != revision("3\n") {
		t.Errorf("before what is there now: %+v %v", c, err)
	}
}

func TestOperationsAreListed(t *testing.T) {
	d := newDesk(t)
	for i := range 5 {
		by := learner
		if i%2 == 1 {
			by = agent
		}
		d.save(t, by, fmt.Sprint("w", i), fmt.Sprintf("n%d.md", i%2), fmt.Sprint(i, "\n"))
	}
	ids := func(f content.Filter) (out []string) {
		t.Helper()
		for {
			list, cursor, err := d.Operations(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range list {
				out = append(out, o.ID)
			}
			if f.Cursor = cursor; cursor == "" {
				return out
			}
		}
	}
	for name, c := range map[string]struct {
		f    content.Filter
		want []string
	}{
		"all":     {content.Filter{Limit: 2}, []string{"w4", "w3", "w2", "w1", "w0"}},
		"path":    {content.Filter{Path: "n0.md", Limit: 1}, []string{"w4", "w2", "w0"}},
		"run":     {content.Filter{Run: "run-1"}, []string{"w3", "w1"}},
		"session": {content.Filter{Session: "session-1"}, []string{"w3", "w1"}},
		"other":   {content.Filter{Session: "session-2"}, nil},
	} {
		if got := ids(c.f); !cmp.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	o, _, err := d.Operation("w2")
	if err != nil {
		t.Fatal(err)
	}
	if got := ids(content.Filter{After: o.Time}); !cmp.Equal(got, []string{"w4", "w3"}) {
		t.Errorf("after w2: %v", got)
	}
	if got := ids(content.Filter{Before: o.Time}); !cmp.Equal(got, []string{"w1", "w0"}) {
		t.Errorf("before w2: %v", got)
	}
	if _, _, err := d.Operations(content.Filter{Cursor: "x"}); code(err) != "invalid_cursor" {
		t.Errorf("a cursor of nothing: %v", err)
	}
}

func TestPrune(t *testing.T) {
	d := newDesk(t)
	ctx := t.Context()
	big := strings.Repeat("0123456789", 1000)
	for i := range 4 {
		d.save(t, learner, fmt.Sprint("w", i), "a.md", fmt.Sprint(i, big, "\n"))
	}
	o, _, err := d.Operation("w2")
	if err != nil {
		t.Fatal(err)
	}
	ids, bytes, err := d.Prunable(o.Time, 0, nil)
	if err != nil || !cmp.Equal(ids, []string{"w0", "w1"}) || bytes == 0 {
		t.Errorf("older than w2: %v %d %v", ids, bytes, err)
	}
	if ids, _, err := d.Prunable(0, 25_000, nil); err != nil || !cmp.Equal(ids, []string{"w0", "w1", "w2"}) {
		t.Errorf("all but 25 kB: %v %v", ids, err)
	}
	none := content.At("b.md")
	if ids, _, err := d.Prunable(0, 0, &none); err != nil || len(ids) != 0 {
		t.Errorf("of another file: %v %v", ids, err)
	}
	pruned, err := d.Prune(ctx, "w0", "w1", "never", "w0")
	if err != nil || !cmp.Equal(pruned, []string{"w0", "w1"}) {
		t.Errorf("pruned %v %v", pruned, err)
	}
	check := func() {
		t.Helper()
		if _, gone, err := d.Operation("w0"); !gone || err != nil {
			t.Errorf("w0: %v %v", gone, err)
		}
		_, err := d.Write(ctx, learner, content.Write{ID: "w0", Target: content.At("a.md"), Text: fmt.Sprint(0, big, "\n"), Base: content.Base{Absent: true}})
		wantCode(t, err, "history_pruned")
		wantCode(t, d.undo(t, "w1", "u"), "history_pruned")
		if owners := d.store.Held(cas.Owner{Kind: cas.OwnerOperation, ID: "w0"}); len(owners) != 0 {
			t.Errorf("w0 holds %v", owners)
		}
		if got := d.told(t, content.At("a.md")); len(got) != 3 { // w3, w2, and what w2 found
			t.Errorf("%d revisions", len(got))
		}
	}
	check()
	d.reopen(t)
	check()
	if err := d.undo(t, "w3", "u3"); err != nil {
		t.Errorf("what is left can be undone: %v", err)
	}
}
