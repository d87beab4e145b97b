package content_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/space/content"
)

func TestWriteIsDoneOnce(t *testing.T) {
	d := newDesk(t)
	ctx := t.Context()
	w := content.Write{ID: "op-1", Target: content.At("notes/a.md"), Text: "one\n", Base: content.Base{Absent: true}}
	first, err := d.Write(ctx, learner, w)
	if err != nil {
		t.Fatal(err)
	}
	after := revision("one\n")
	if want := []content.Change{{Path: "notes"}, {Path: "notes/a.md", After: &after}}; !cmp.Equal(first.Changes, want) {
		t.Errorf("changes %s", cmp.Diff(want, first.Changes))
	}
	if d.on(t, "notes/a.md") != "one\n" {
		t.Errorf("the file has %q", d.on(t, "notes/a.md"))
	}
	d.outside(t, "notes/a.md", "two\n")
	again, err := d.Write(ctx, learner, w)
	if !again.Repeated {
		t.Error("a repetition does not say so")
	}
	again.Repeated = false
	if err != nil || !cmp.Equal(first, again) {
		t.Errorf("repeated: %v %s", err, cmp.Diff(first, again))
	}
	if d.on(t, "notes/a.md") != "two\n" {
		t.Error("a repetition was executed")
	}
	w.Text = "other\n"
	_, err = d.Write(ctx, learner, w)
	wantCode(t, err, "operation_id_conflict")
	for id, base := range map[string]content.Base{"op-stale": {Revision: after}, "op-absent": {Absent: true}} {
		_, err := d.Write(ctx, learner, content.Write{ID: id, Target: content.At("notes/a.md"), Text: "x", Base: base})
		wantCode(t, err, "revision_conflict")
		if _, _, err := d.Operation(id); code(err) != "not_found" {
			t.Errorf("a refused save left a record: %v", err)
		}
	}
}

// Names and texts that are no text are refused or passed over, and break nothing.
func TestWhatIsNoText(t *testing.T) {
	d := newDesk(t)
	d.outside(t, "good.md", "x\n")
	d.outside(t, "bad-\xff.md", "x\n")
	list, err := d.List(t.Context(), ".")
	if err != nil || len(list) != 1 || list[0].Location.Path != "good.md" {
		t.Errorf("%+v %v", list, err)
	}
	if o := d.observe(t, "bad-\xff.md", "good.md"); !cmp.Equal(o.Changed, []string{"good.md"}) {
		t.Errorf("observed %q", o.Changed)
	}
	_, err = d.Write(t.Context(), learner, content.Write{ID: "w1", Target: content.At("new-\xff.md"), Text: "x", Base: none})
	wantCode(t, err, "invalid_input")
	_, err = d.Write(t.Context(), learner, content.Write{ID: "w2", Target: content.At("new.md"), Text: "\xff", Base: none})
	wantCode(t, err, "unsupported_format")
}

// Below a file there is nothing, and nothing can be made.
func TestBelowAFile(t *testing.T) {
	d := newDesk(t)
	d.save(t, learner, "w1", "f/a.md", "a\n")
	_, err := d.Write(t.Context(), learner, content.Write{ID: "w2", Target: content.At("f/a.md/b.md"), Text: "x", Base: none})
	wantCode(t, err, "not_found")
	_, err = d.Get(t.Context(), content.At("f/a.md/b.md"))
	wantCode(t, err, "not_found")
	if o := d.observe(t, "f/a.md/b.md"); len(o.Changed) != 0 {
		t.Errorf("observed %v", o.Changed)
	}
	for _, step := range []deed{moveTo("m1", "f/a.md", "g/a.md"), removeAt("d1", "f"), write("w3", "f", "a file now\n", none)} {
		if err := step.do(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.undo(t, "m1", "u1"); code(err) != "revision_conflict" {
		t.Errorf("a move is undone into a file: %v", err)
	}
}
