package content_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/space/catalog"
	"github.com/repa-app/repa/space/content"
	"github.com/repa-app/repa/testkit/crashfs"
)

func (d *desk) undo(t testing.TB, of, id string) error {
	t.Helper()
	_, err := d.Undo(t.Context(), learner, of, id)
	return err
}

func TestUndoAndRedo(t *testing.T) {
	d := newDesk(t)
	d.outside(t, "a.md", "one\ntwo\nthree\nfour\n")
	d.save(t, agent, "op-1", "a.md", "one\nTWO\nthree\nfour\n")
	d.outside(t, "a.md", "one\nTWO\nthree\nfour\nfive\n")
	if err := d.undo(t, "op-1", "u-1"); err != nil {
		t.Fatal(err)
	}
	if got := d.on(t, "a.md"); got != "one\ntwo\nthree\nfour\nfive\n" {
		t.Errorf("undone, with what came later: %q", got)
	}
	wantCode(t, d.undo(t, "op-1", "u-2"), "revision_conflict")
	if err := d.undo(t, "u-1", "u-3"); err != nil {
		t.Fatal(err)
	}
	if got := d.on(t, "a.md"); got != "one\nTWO\nthree\nfour\nfive\n" {
		t.Errorf("done again: %q", got)
	}
	if err := d.undo(t, "op-1", "u-4"); err != nil {
		t.Errorf("undone after it was done again: %v", err)
	}
	d.save(t, learner, "op-2", "a.md", "one\nzwei\nthree\nfour\nfive\n")
	d.save(t, learner, "op-3", "a.md", "one\ndos\nthree\nfour\nfive\n")
	before := d.on(t, "a.md")
	wantCode(t, d.undo(t, "op-2", "u-5"), "revision_conflict")
	if d.on(t, "a.md") != before {
		t.Error("a refused undo changed the file")
	}
	wantCode(t, d.undo(t, "never", "u-6"), "not_found")
	o, _, err := d.Operation("op-1")
	if err != nil || o.UndoneBy != "u-4" {
		t.Errorf("op-1 was undone by %q %v", o.UndoneBy, err)
	}
}

func TestUndoOfStructure(t *testing.T) {
	d := newDesk(t)
	ctx := t.Context()
	d.save(t, learner, "w1", "f/a.md", "a\n")
	d.save(t, learner, "w2", "f/b.md", "b\n")
	if _, err := d.Associate(ctx, learner, content.Associate{ID: "r1", Location: catalog.Here("f/a.md"), Role: catalog.Document, Item: "A"}); err != nil {
		t.Fatal(err)
	}
	if err := moveTo("m1", "f", "g").do(ctx, d); err != nil {
		t.Fatal(err)
	}
	if i, err := d.Get(ctx, content.Target{ID: "A"}); err != nil || i.Location.Path != "g/a.md" || i.Status != content.Available {
		t.Errorf("after the move: %+v %v", i, err)
	}
	d.outside(t, "g/a.md", "a\nmore\n")
	d.outside(t, "g/later.md", "x\n")
	if err := d.undo(t, "m1", "u1"); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"f/": "", "f/a.md": "a\nmore\n", "f/b.md": "b\n", "g/": "", "g/later.md": "x\n"}
	if got := tree(t, d.root, "."); !cmp.Equal(got, want) {
		t.Errorf("the move is undone with what came later: %s", cmp.Diff(want, got))
	}
	if i, err := d.Get(ctx, content.Target{ID: "A"}); err != nil || i.Location.Path != "f/a.md" {
		t.Errorf("after the undo: %+v %v", i, err)
	}
	// A registration that is undone leaves a tombstone, and its id is not used again.
	if err := d.undo(t, "r1", "u2"); err != nil {
		t.Fatal(err)
	}
	if i, err := d.Get(ctx, content.Target{ID: "A"}); err != nil || i.Status != content.Missing {
		t.Errorf("a registration that was undone: %+v %v", i, err)
	}
	// Its place belongs to another now, so doing it again is refused.
	if _, err := d.Associate(ctx, learner, content.Associate{ID: "r2", Location: catalog.Here("f/a.md"), Role: catalog.Document, Item: "B"}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, d.undo(t, "u2", "u3"), "revision_conflict")
}

func TestUndoFollowsTheFile(t *testing.T) {
	d := newDesk(t)
	d.save(t, learner, "w1", "a.md", "one\ntwo\n")
	d.save(t, agent, "w2", "a.md", "one\nTWO\n")
	for _, step := range []deed{moveTo("m1", "a.md", "f/b.md"), moveTo("m2", "f", "g")} {
		if err := step.do(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	d.save(t, learner, "w3", "a.md", "another file\n")
	if err := d.undo(t, "w2", "u1"); err != nil || d.on(t, "g/b.md") != "one\ntwo\n" || d.on(t, "a.md") != "another file\n" {
		t.Errorf("%v: %v", err, tree(t, d.root, "."))
	}
}

func TestUndoOfARun(t *testing.T) {
	d := newDesk(t)
	ctx := t.Context()
	d.save(t, learner, "w0", "a.md", "1\n2\n3\n4\n5\n")
	for i := range 3 {
		d.save(t, agent, fmt.Sprint("a", i), fmt.Sprintf("n%d.md", i), "new\n")
	}
	d.save(t, agent, "a3", "a.md", "one\n2\n3\n4\n5\n")
	d.save(t, agent, "a4", "a.md", "one\n2\n3\n4\nfive\n")
	d.save(t, learner, "w1", "n1.md", "mine\n")
	r, err := d.UndoRun(ctx, learner, "run-1", "u")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a4", "a3", "a2", "a0"}; !cmp.Equal(r.Operations, want) {
		t.Errorf("undone %v, want %v", r.Operations, want)
	}
	if len(r.Conflicts) != 1 || r.Conflicts[0].Operation != "a1" || !cmp.Equal(r.Conflicts[0].Paths, []string{"n1.md"}) {
		t.Errorf("conflicts %+v", r.Conflicts)
	}
	if got, want := tree(t, d.root, "."), map[string]string{"a.md": "1\n2\n3\n4\n5\n", "n1.md": "mine\n"}; !cmp.Equal(got, want) {
		t.Errorf("%s", cmp.Diff(want, got))
	}
	again, err := d.UndoRun(ctx, learner, "run-1", "u")
	if err != nil || !again.Result.Repeated || !cmp.Equal(again.Operations, r.Operations) {
		t.Errorf("repeated: %+v %v", again, err)
	}
	if none, err := d.UndoRun(ctx, learner, "run-1", "u2"); err != nil || len(none.Operations) != 0 || len(none.Conflicts) != 1 {
		t.Errorf("what is left: %+v %v", none, err)
	}
	if _, _, err := d.Operation("u2"); code(err) != "not_found" {
		t.Errorf("an undo of nothing left a record: %v", err)
	}
	if err := d.undo(t, "u", "redo"); err != nil || d.on(t, "a.md") != "one\n2\n3\n4\nfive\n" || d.on(t, "n0.md") != "new\n" {
		t.Errorf("done again: %v %q", err, d.on(t, "a.md"))
	}
	_, err = d.UndoRun(ctx, learner, "no-run", "u9")
	wantCode(t, err, "not_found")
}

func TestRestore(t *testing.T) {
	d := newDesk(t)
	ctx := t.Context()
	d.save(t, learner, "w1", "a.md", "one\n")
	d.save(t, learner, "w2", "a.md", "two\n")
	if err := register("r", "a.md", "A").do(ctx, d); err != nil {
		t.Fatal(err)
	}
	if err := removeAt("d", "a.md").do(ctx, d); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Restore(ctx, learner, content.Bring{ID: "b1", Target: content.Target{ID: "A"}}); err != nil || d.on(t, "a.md") != "two\n" {
		t.Errorf("restored: %v %q", err, d.on(t, "a.md"))
	}
	if i, err := d.Get(ctx, content.At("a.md")); err != nil || i.ID != "A" || i.Status != content.Available {
		t.Errorf("the item: %+v %v", i, err)
	}
	if _, err := d.Restore(ctx, learner, content.Bring{ID: "b2", Target: content.At("a.md"), Revision: revision("one\n")}); err != nil || d.on(t, "a.md") != "one\n" {
		t.Errorf("an earlier revision: %v %q", err, d.on(t, "a.md"))
	}
	_, err := d.Restore(ctx, learner, content.Bring{ID: "b3", Target: content.At("a.md"), Revision: revision("never\n")})
	wantCode(t, err, "not_found")
	_, err = d.Restore(ctx, learner, content.Bring{ID: "b4", Target: content.At("none.md")})
	wantCode(t, err, "not_found")
}

// A place is restored although a patch that would have registered it was taken back.
func TestRestoreWhereAPatchFailed(t *testing.T) {
	disk := crashfs.New()
	d := openDesk(t, disk, "/space")
	d.save(t, learner, "w1", "a.md", "one\n")
	if err := removeAt("d1", "a.md").do(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	disk.SetFault(func(c crashfs.Call) error {
		if c.Op == "rename" {
			return syscall.EIO
		}
		return nil
	})
	p := content.Patch{ID: "p1", Text: body("*** Add File: a.md\n+two\n"), Registrations: []content.Registration{{Path: "a.md", Role: catalog.Document, Item: "A"}}}
	wantCode(t, d.patch(t, p), "storage")
	disk.SetFault(nil)
	if o, _, err := d.Operation("p1"); err != nil || o.Status != content.RolledBack {
		t.Fatalf("%+v %v", o, err)
	}
	if _, err := d.Restore(t.Context(), learner, content.Bring{ID: "b1", Target: content.At("a.md")}); err != nil || d.on(t, "a.md") != "one\n" {
		t.Errorf("restored: %v %q", err, d.on(t, "a.md"))
	}
}

// What a run removed stays removed when another item is in its place now; the rest of the run is undone.
func TestUndoOfARunWhereAPlaceIsTaken(t *testing.T) {
	d := newDesk(t)
	ctx := t.Context()
	for _, step := range []deed{write("w1", "a.md", "a\n", none), register("r1", "a.md", "A")} {
		if err := step.do(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Undo(ctx, agent, "r1", "a1"); err != nil {
		t.Fatal(err)
	}
	d.save(t, agent, "a2", "b.md", "b\n")
	if err := register("r2", "a.md", "B").do(ctx, d); err != nil {
		t.Fatal(err)
	}
	r, err := d.UndoRun(ctx, learner, "run-1", "u1")
	if err != nil || !cmp.Equal(r.Operations, []string{"a2"}) || !cmp.Equal(r.Conflicts, []content.Conflict{{Operation: "a1", Paths: []string{"a.md"}}}) {
		t.Errorf("%+v %v", r, err)
	}
	if got, want := tree(t, d.root, "."), map[string]string{"a.md": "a\n"}; !cmp.Equal(got, want) {
		t.Errorf("%s", cmp.Diff(want, got))
	}
}

// A file that another program renamed over another one goes back, both have what they had, and that can be done again.
func TestUndoOfARenameOverAFile(t *testing.T) {
	d := newDesk(t)
	d.save(t, learner, "w1", "a.md", "a\n")
	d.save(t, learner, "w2", "b.md", "b\n")
	if err := d.root.Rename("a.md", "b.md"); err != nil {
		t.Fatal(err)
	}
	d.observe(t, "a.md", "b.md")
	list, _, err := d.Operations(content.Filter{Limit: 1})
	if err != nil || list[0].Method != "observed" {
		t.Fatalf("%+v %v", list, err)
	}
	if err := d.undo(t, list[0].ID, "u1"); err != nil || d.on(t, "a.md") != "a\n" || d.on(t, "b.md") != "b\n" {
		t.Errorf("undone: %v, a %q, b %q", err, d.on(t, "a.md"), d.on(t, "b.md"))
	}
	if err := d.undo(t, "u1", "u2"); err != nil || d.on(t, "a.md") != "-" || d.on(t, "b.md") != "a\n" {
		t.Errorf("done again: %v, a %q, b %q", err, d.on(t, "a.md"), d.on(t, "b.md"))
	}
	d.outside(t, "a.md", "new\n")
	if err := d.undo(t, "u2", "u3"); code(err) != "revision_conflict" {
		t.Errorf("undone where something else is: %v", err)
	}
}
