package content_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/space/catalog"
	"github.com/repa-app/repa/space/content"
)

func (d *desk) patch(t testing.TB, p content.Patch) error {
	t.Helper()
	_, _, err := d.ApplyPatch(t.Context(), agent, p)
	return err
}

func body(actions string) string { return "*** Begin Patch\n" + actions + "*** End Patch\n" }

func TestPatchAndStructure(t *testing.T) {
	d := newDesk(t)
	ctx := t.Context()
	d.save(t, learner, "w1", "main.md", "# Main\r\npart one\r\npart two\r\nend“x²”\r\n")
	d.save(t, learner, "w2", "old.md", "old\n")
	if err := register("r1", "main.md", "main").do(ctx, d); err != nil {
		t.Fatal(err)
	}
	if err := register("r2", "old.md", "old").do(ctx, d); err != nil {
		t.Fatal(err)
	}
	base, err := d.structural(ctx, content.Target{ID: "main"})
	if err != nil {
		t.Fatal(err)
	}
	split := content.Patch{
		ID: "p1",
		Text: body("*** Update File: repa:document/main\n*** Move to: parts/main.md\n@@\n # Main\n-part one\n-part two\n+see the parts\n" +
			"*** Add File: parts/one.md\n+part one\n*** Add File: parts/two.md\n+part two\n*** Delete File: old.md\n"),
		Bases: []content.PatchBase{{Target: content.Target{ID: "main"}, Base: content.Base{Revision: revision("# Main\r\npart one\r\npart two\r\nend“x²”\r\n")}},
			{Target: content.At("parts/one.md"), Base: none}},
		Registrations: []content.Registration{{Path: "parts/one.md", Role: catalog.Document, Item: "one"}, {Path: "parts", Role: catalog.Document, Item: "all",
			Members: []catalog.Member{{Target: catalog.Target{ID: "one"}}, {Target: catalog.Target{ID: "main"}}}}},
		Compositions: []content.Recompose{{Item: "main", Base: base, Members: []catalog.Member{{Target: catalog.Target{ID: "one"}, Name: "first"}}}},
	}
	r, reports, err := d.ApplyPatch(ctx, agent, split)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"parts/": "", "parts/main.md": "# Main\r\nsee the parts\r\nend“x²”\r\n", "parts/one.md": "part one\n", "parts/two.md": "part two\n"}
	if got := tree(t, d.root, "."); !cmp.Equal(got, want) {
		t.Errorf("%s", cmp.Diff(want, got))
	}
	if len(r.Changes) != 6 || len(reports) != 1 || reports[0].Hunks[0].Strategy != "exact" {
		t.Errorf("changes %+v reports %+v", r.Changes, reports)
	}
	for id, at := range map[string]string{"main": "parts/main.md", "one": "parts/one.md", "all": "parts"} {
		if i, err := d.Inspect(ctx, content.Target{ID: id}); err != nil || i.Location.Path != at || i.Status != content.Available {
			t.Errorf("%s: %+v %v", id, i, err)
		}
	}
	if i, err := d.Inspect(ctx, content.Target{ID: "old"}); err != nil || i.Status != content.Missing {
		t.Errorf("the deleted document: %+v %v", i, err)
	}
	d.outside(t, "parts/two.md", "part two\nmine\n")
	d.outside(t, "parts/main.md", "# Main\r\nsee the parts\r\nend“x²”\r\nlater\r\n")
	wantCode(t, d.undo(t, "p1", "u1"), "revision_conflict") // two.md was new and is not what the patch made
	d.outside(t, "parts/two.md", "part two\n")
	if err := d.undo(t, "p1", "u2"); err != nil {
		t.Fatal(err)
	}
	want = map[string]string{"main.md": "# Main\r\npart one\r\npart two\r\nend“x²”\r\nlater\r\n", "old.md": "old\n"}
	if got := tree(t, d.root, "."); !cmp.Equal(got, want) {
		t.Errorf("undone: %s", cmp.Diff(want, got))
	}
	for id, status := range map[string]content.Availability{"main": content.Available, "old": content.Available, "one": content.Missing, "all": content.Missing} {
		if i, err := d.Inspect(ctx, content.Target{ID: id}); err != nil || i.Status != status {
			t.Errorf("%s: %+v %v", id, i, err)
		}
	}
}

func TestPatchRefuses(t *testing.T) {
	d := newDesk(t)
	ctx := t.Context()
	d.save(t, learner, "w1", "a.md", "one\ntwo\n")
	d.save(t, learner, "w2", "f/b.md", "b\n")
	if err := register("r", "a.md", "A").do(ctx, d); err != nil {
		t.Fatal(err)
	}
	before := tree(t, d.root, ".")
	change := "*** Update File: a.md\n@@\n-two\n+2\n"
	for name, c := range map[string]struct {
		p    content.Patch
		code string
	}{
		"nonsense":                   {content.Patch{Text: "nonsense"}, "invalid_patch"},
		"not found":                  {content.Patch{Text: body("*** Update File: a.md\n@@\n-three\n+3\n")}, "match_not_found"},
		"no such file":               {content.Patch{Text: body("*** Update File: none.md\n@@\n-x\n+y\n")}, "not_found"},
		"add onto a file":            {content.Patch{Text: body("*** Add File: a.md\n+x\n")}, "revision_conflict"},
		"move onto a file":           {content.Patch{Text: body("*** Update File: a.md\n*** Move to: f/b.md\n")}, "revision_conflict"},
		"one file twice":             {content.Patch{Text: body("*** Update File: a.md\n@@\n-two\n+2\n*** Delete File: repa:document/A\n")}, "invalid_patch"},
		"second hunk fails":          {content.Patch{Text: body("*** Add File: new.md\n+x\n" + change + "@@\n-nothing\n+x\n")}, "match_not_found"},
		"stale base":                 {content.Patch{Text: body(change), Bases: []content.PatchBase{{content.At("a.md"), at("other")}}}, "revision_conflict"},
		"base of what stays":         {content.Patch{Text: body(change), Bases: []content.PatchBase{{content.At("f/b.md"), at("b\n")}}}, "invalid_input"},
		"base of a folder":           {content.Patch{Text: body(change), Bases: []content.PatchBase{{content.At("f"), at("b\n")}}}, "invalid_input"},
		"two bases of one file":      {content.Patch{Text: body(change), Bases: []content.PatchBase{{content.At("a.md"), at("one\ntwo\n")}, {content.Target{ID: "A"}, at("one\ntwo\n")}}}, "invalid_input"},
		"register nothing":           {content.Patch{Text: body(change), Registrations: []content.Registration{{Path: "none.md", Role: catalog.Document}}}, "not_found"},
		"register twice":             {content.Patch{Text: body(change), Registrations: []content.Registration{{Path: "a.md", Role: catalog.Document}}}, "already_registered"},
		"an id that was used":        {content.Patch{Text: body(change), Registrations: []content.Registration{{Path: "f/b.md", Role: catalog.Document, Item: "A"}}}, "invalid_input"},
		"a member that is not there": {content.Patch{Text: body(change), Registrations: []content.Registration{{Path: "f/b.md", Role: catalog.Document, Members: []catalog.Member{{Target: catalog.Target{ID: "Z"}}}}}}, "not_found"},
		"stale composition":          {content.Patch{Text: body(change), Compositions: []content.Recompose{{Item: "A", Base: "old"}}}, "revision_conflict"},
		"into .repa":                 {content.Patch{Text: body("*** Add File: .repa/x\n+x\n")}, "permission_required"},
	} {
		c.p.ID = "p-" + minted()
		if err := d.patch(t, c.p); code(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
		if got := tree(t, d.root, "."); !cmp.Equal(got, before) {
			t.Fatalf("%s changed %s", name, cmp.Diff(before, got))
		}
		if _, _, err := d.Operation(c.p.ID); code(err) != "not_found" {
			t.Errorf("%s left a record", name)
		}
	}
	if err := d.patch(t, content.Patch{ID: "empty", Text: body("")}); err != nil {
		t.Errorf("an empty patch: %v", err)
	}
}

func TestTransfers(t *testing.T) {
	d := newDesk(t)
	ctx := t.Context()
	d.save(t, learner, "w1", "notes/a.md", "see [b](repa:document/B) and `repa:document/B`\n")
	d.save(t, learner, "w2", "code/b.py", "print()\n")
	for _, r := range []deed{register("r1", "notes/a.md", "A"), register("r2", "code/b.py", "B")} {
		if err := r.do(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	compose := func(id, of, part string) {
		t.Helper()
		base, err := d.structural(ctx, content.Target{ID: of})
		if err == nil {
			_, err = d.SetComposition(ctx, learner, content.Composition{ID: id, Item: of, Base: base, Members: []catalog.Member{{Target: catalog.Target{ID: part}}}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	compose("c1", "A", "B")
	compose("c2", "B", "A") // a circle
	base, err := d.structural(ctx, content.Target{ID: "A"})
	if err != nil {
		t.Fatal(err)
	}
	transfer := content.Transfer{ID: "t1", Target: content.Target{ID: "A"}, Destination: "copies/run1", Base: base}
	_, err = d.Copy(ctx, learner, transfer)
	wantCode(t, err, "invalid_input") // the part lies elsewhere
	transfer.ID, transfer.Container = "t2", true
	r, err := d.Copy(ctx, learner, transfer)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{}
	for _, i := range r.Contents {
		ids[i.Location.Path] = i.ID
	}
	a, b := ids["copies/run1/notes/a.md"], ids["copies/run1/code/b.py"]
	if a == "" || b == "" || a == "A" || b == "B" {
		t.Fatalf("copies %v", ids)
	}
	if got, want := d.on(t, "copies/run1/notes/a.md"), "see [b](repa:document/"+b+") and `repa:document/B`\n"; got != want {
		t.Errorf("the copy says %q, want %q", got, want)
	}
	if i, err := d.Inspect(ctx, content.Target{ID: a}); err != nil || len(i.Members) != 1 || i.Members[0].Target.ID != b || i.Origin == nil || i.Origin.Path != "notes/a.md" {
		t.Errorf("the copy: %+v %v", i, err)
	}
	again, err := d.Copy(ctx, learner, transfer)
	if err != nil || !again.Repeated {
		t.Errorf("repeated: %v", err)
	}
	transfer.ID = "t3"
	_, err = d.Copy(ctx, learner, transfer)
	wantCode(t, err, "revision_conflict") // something is there
	folder, err := d.structural(ctx, content.At("copies"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Move(ctx, learner, content.Transfer{ID: "t4", Target: content.At("copies"), Destination: "copies/inside", Base: folder})
	wantCode(t, err, "invalid_input")
	if _, err := d.Move(ctx, learner, content.Transfer{ID: "t5", Target: content.At("copies"), Destination: "moved/here", Base: folder}); err != nil {
		t.Fatal(err)
	}
	if i, err := d.Get(ctx, content.Target{ID: a}); err != nil || i.Location.Path != "moved/here/run1/notes/a.md" || i.Status != content.Available {
		t.Errorf("moved with its folder: %+v %v", i, err)
	}
}

func TestDerivedPatch(t *testing.T) {
	d := newDesk(t)
	ctx := t.Context()
	d.save(t, learner, "w1", "state.md", "attempts: 1\n")
	calls := 0
	var late *content.Scope
	derived := content.Derived{ID: "d1", Request: map[string]any{"answer": "7", "correct": true}}
	derive := func(s *content.Scope) (content.Patch, error) {
		calls++
		late = s
		doc, err := s.Read(content.At("state.md"))
		if err != nil {
			return content.Patch{}, err
		}
		evidence, err := s.Keep([]byte("what the learner wrote"))
		if err != nil {
			return content.Patch{}, err
		}
		return content.Patch{ID: "another", Text: body("*** Update File: state.md\n@@\n-" + doc.Text + "+attempts: 2\n*** Add File: attempt.md\n+" + evidence + "\n"),
			Registrations: []content.Registration{{Path: "attempt.md", Role: catalog.Document, Item: "attempt", Resources: []catalog.Resource{{ID: evidence, MediaType: "text/plain"}}}}}, nil
	}
	for range 2 {
		if _, err := d.ApplyDerived(ctx, agent, derived, derive); err != nil {
			t.Fatal(err)
		}
		if d.on(t, "state.md") != "attempts: 2\n" || calls != 1 {
			t.Errorf("%d calls, %q", calls, d.on(t, "state.md"))
		}
		d.reopen(t)
	}
	if i, err := d.Get(ctx, content.Target{ID: "attempt"}); err != nil || len(i.Resources) != 1 || d.bytes(t, i.Resources[0].ID) != "what the learner wrote" {
		t.Errorf("%+v %v", i, err)
	}
	if _, err := late.Read(content.At("state.md")); code(err) != "closed" {
		t.Errorf("after its end: %v", err)
	}
	derived.Request = "another"
	_, err := d.ApplyDerived(ctx, agent, derived, derive)
	wantCode(t, err, "operation_id_conflict")
	derived = content.Derived{ID: "d2", Request: 1}
	refused := func(s *content.Scope) (content.Patch, error) { return content.Patch{}, context.DeadlineExceeded }
	if _, err := d.ApplyDerived(ctx, agent, derived, refused); err == nil {
		t.Error("a failed derivation was applied")
	}
	if _, err := d.ApplyDerived(ctx, agent, derived, func(s *content.Scope) (content.Patch, error) { return content.Patch{Text: body("")}, nil }); err != nil {
		t.Errorf("tried again: %v", err)
	}
	_, err = d.ApplyDerived(ctx, agent, content.Derived{ID: "d3", Request: make(chan int)}, derive)
	wantCode(t, err, "invalid_input")
}
