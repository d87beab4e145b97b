package content_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/space/content"
)

func (d *desk) observe(t testing.TB, paths ...string) content.Observed {
	t.Helper()
	o, err := d.Observe(t.Context(), 1<<20, paths...)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestObserve(t *testing.T) {
	d := newDesk(t)
	ctx := t.Context()
	d.outside(t, "new.md", "made by another program\n")
	d.outside(t, "picture.png", "\x89PNG\x00")
	if o := d.observe(t, "new.md", "picture.png", "none.md", ".repa/x", "../x"); !cmp.Equal(o.Changed, []string{"new.md", "picture.png"}) {
		t.Errorf("changed %v", o.Changed)
	}
	if o := d.observe(t, "new.md", "picture.png"); len(o.Changed) != 0 {
		t.Errorf("seen a second time: %v", o.Changed)
	}
	if got := d.told(t, content.At("new.md")); !cmp.Equal(got, []string{"outside observed made by another program new.md"}) {
		t.Errorf("%v", got)
	}
	if got := d.told(t, content.At("picture.png")); !cmp.Equal(got, []string{"outside observed - picture.png"}) {
		t.Errorf("bytes of a picture that nobody asked for: %v", got)
	}
	// What Repa does itself is no news.
	d.save(t, learner, "w1", "new.md", "mine\n")
	if o := d.observe(t, "new.md"); len(o.Changed) != 0 {
		t.Errorf("an own change was observed: %v", o.Changed)
	}
	// An outside change can be undone like any other.
	d.outside(t, "new.md", "theirs\n")
	d.observe(t, "new.md")
	list, _, err := d.Operations(content.Filter{Path: "new.md", Limit: 1})
	if err != nil || list[0].By.Actor != content.Outside {
		t.Fatalf("%+v %v", list, err)
	}
	if err := d.undo(t, list[0].ID, "u1"); err != nil || d.on(t, "new.md") != "mine\n" {
		t.Errorf("undone: %v %q", err, d.on(t, "new.md"))
	}
	// Reading for somebody notes a change too.
	d.outside(t, "new.md", "again\n")
	if _, err := d.ReadText(ctx, content.At("new.md")); err != nil {
		t.Fatal(err)
	}
	if got := d.told(t, content.At("new.md")); got[0] != "outside observed again new.md" {
		t.Errorf("read: %v", got)
	}
	d.reopen(t)
	if o := d.observe(t, "new.md"); len(o.Changed) != 0 {
		t.Errorf("after it was opened again: %v", o.Changed)
	}
}

func TestRenamesOutsideAreFollowed(t *testing.T) {
	d := newDesk(t)
	ctx := t.Context()
	d.save(t, learner, "w1", "a.md", "unique text\n")
	d.save(t, learner, "w2", "b.md", "twice\n")
	for _, r := range []deed{register("r1", "a.md", "A"), register("r2", "b.md", "B")} {
		if err := r.do(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.root.Rename("a.md", "renamed.md"); err != nil {
		t.Fatal(err)
	}
	if err := d.root.Remove("b.md"); err != nil {
		t.Fatal(err)
	}
	d.outside(t, "c1.md", "twice\n")
	d.outside(t, "c2.md", "twice\n")
	o := d.observe(t, "a.md", "renamed.md", "b.md", "c1.md", "c2.md")
	if len(o.Relinked) != 1 {
		t.Fatalf("relinked %+v", o.Relinked)
	}
	if i, err := d.Get(ctx, content.Target{ID: "A"}); err != nil || i.Location.Path != "renamed.md" || i.Status != content.Available {
		t.Errorf("A: %+v %v", i, err)
	}
	if got := d.told(t, content.Target{ID: "A"}); !cmp.Equal(got, []string{"outside observed unique text renamed.md", "learner content.write unique text a.md"}) {
		t.Errorf("history of A: %v", got)
	}
	if i, err := d.Get(ctx, content.Target{ID: "B"}); err != nil || i.Status != content.Missing {
		t.Errorf("B, of which two copies were made: %+v %v", i, err)
	}
	report, err := d.Report(ctx)
	if err != nil || len(report.Missing) != 1 || !cmp.Equal(report.Missing[0].Proposals, []string{"c1.md", "c2.md"}) {
		t.Errorf("missing: %+v %v", report.Missing, err)
	}
}

func TestReport(t *testing.T) {
	d := newDesk(t)
	for _, name := range []string{"a.md", "a.sync-conflict-20261201-101112-ABCDEFG.md", "b (Anna's conflicted copy 2026-12-01).md", "b.md", "Ä.md", "ä.md", "c (1).md"} {
		d.outside(t, name, name)
	}
	d.observe(t, "a.md")
	r, err := d.Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.ConflictCopies) != 2 || r.ConflictCopies[0].Of != "a.md" || r.ConflictCopies[1].Of != "b.md" {
		t.Errorf("conflict copies %+v", r.ConflictCopies)
	}
	if len(r.Twins) != 1 || !cmp.Equal(r.Twins[0], [2]string{"Ä.md", "ä.md"}) {
		t.Errorf("twins %v", r.Twins)
	}
	if len(r.Outside) != 1 || r.Outside[0].Path != "a.md" || *r.Outside[0].Revision != revision("a.md") {
		t.Errorf("outside %+v", r.Outside)
	}
}
