package content_test

import (
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/space/catalog"
	"github.com/repa-app/repa/space/content"
	"github.com/repa-app/repa/testkit/crashfs"
)

// stuck is a space with a patch of two files that failed in the middle while another program wrote to one of them.
func stuck(t *testing.T) (*desk, *crashfs.FS) {
	t.Helper()
	disk := crashfs.New()
	d := openDesk(t, disk, "/space")
	d.save(t, learner, "w1", "a.md", "a\n")
	d.save(t, learner, "w2", "b.md", "b\n")
	d.save(t, learner, "w3", "c.md", "c\n")
	if err := register("r", "a.md", "A").do(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	disk.SetFault(func(c crashfs.Call) error {
		if c.Op != "rename" || !strings.HasSuffix(c.Path, "p1-1") {
			return nil
		}
		disk.SetFault(nil)
		if err := vfs.WriteFile(d.root, "a.md", []byte("somebody else\n"), 0o644); err != nil {
			t.Error(err)
		}
		return syscall.EIO
	})
	_, _, err := d.ApplyPatch(t.Context(), agent, content.Patch{ID: "p1", Text: body("*** Update File: a.md\n@@\n-a\n+A\n*** Update File: b.md\n@@\n-b\n+B\n")})
	wantCode(t, err, "recovery_required")
	return d, disk
}

func TestRecoveryIsReportedAndDoesNotStopTheRest(t *testing.T) {
	d, _ := stuck(t)
	ctx := t.Context()
	for range 2 { // also after the space was opened again
		o, _, err := d.Operation("p1")
		if err != nil || o.Status != content.NeedsRecovery || !cmp.Equal(o.Conflicts, []string{"a.md"}) {
			t.Fatalf("%+v %v", o, err)
		}
		if i, err := d.Get(ctx, content.Target{ID: "A"}); err != nil || i.Status != content.InRecovery {
			t.Errorf("A: %+v %v", i, err)
		}
		_, err = d.ReadText(ctx, content.Target{ID: "A"})
		wantCode(t, err, "recovery_required")
		if doc, err := d.ReadText(ctx, content.At("a.md")); err != nil || doc.Text != "somebody else\n" {
			t.Errorf("by path: %+v %v", doc, err)
		}
		wantCode(t, d.patch(t, content.Patch{ID: "x" + minted(), Text: body("*** Delete File: b.md\n")}), "recovery_required")
		_, err = d.Prune(ctx, "p1")
		wantCode(t, err, "recovery_required")
		if err := d.patch(t, content.Patch{ID: "p1", Text: body("*** Update File: a.md\n@@\n-a\n+A\n*** Update File: b.md\n@@\n-b\n+B\n")}); code(err) != "recovery_required" {
			t.Errorf("the same operation again: %v", err)
		}
		d.save(t, learner, minted(), "c.md", minted())
		d.reopen(t)
	}
	r, err := d.Report(ctx)
	if err != nil || len(r.Unresolved) != 1 || r.Unresolved[0].Operation != "p1" {
		t.Errorf("report %+v %v", r.Unresolved, err)
	}
	// Repair by path, then settle.
	d.save(t, learner, "repair", "a.md", "repaired\n")
	o, err := d.Reconcile(ctx, "p1")
	if err != nil || o.Status != content.Reconciled || o.Error == "" {
		t.Errorf("reconciled: %+v %v", o, err)
	}
	if doc, err := d.ReadText(ctx, content.Target{ID: "A"}); err != nil || doc.Text != "repaired\n" {
		t.Errorf("A: %+v %v", doc, err)
	}
	if o, err = d.Reconcile(ctx, "p1"); err != nil || o.Status != content.Reconciled {
		t.Errorf("reconciled again: %+v %v", o, err)
	}
	if err := d.patch(t, content.Patch{ID: "p1", Text: body("*** Update File: a.md\n@@\n-a\n+A\n*** Update File: b.md\n@@\n-b\n+B\n")}); code(err) == "" {
		t.Error("an operation that was settled was executed again")
	}
}

func TestResolveFileByFile(t *testing.T) {
	for name, c := range map[string]struct {
		choices map[string]content.Choice
		status  content.Status
		a, b    string
	}{
		"keep":    {map[string]content.Choice{"a.md": content.Keep}, content.Reconciled, "somebody else\n", "b\n"},
		"restore": {map[string]content.Choice{"a.md": content.Restore}, content.RolledBack, "a\n", "b\n"},
		"take":    {map[string]content.Choice{"a.md": content.Take, "b.md": content.Take}, content.Committed, "A\n", "B\n"},
		"mixed":   {map[string]content.Choice{"a.md": content.Restore, "b.md": content.Take}, content.Reconciled, "a\n", "B\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := stuck(t)
			_, err := d.Resolve(t.Context(), "p1", map[string]content.Choice{"c.md": content.Keep})
			wantCode(t, err, "invalid_input")
			o, err := d.Resolve(t.Context(), "p1", c.choices)
			if err != nil || o.Status != c.status || d.on(t, "a.md") != c.a || d.on(t, "b.md") != c.b {
				t.Errorf("%s %v, a %q, b %q", o.Status, err, d.on(t, "a.md"), d.on(t, "b.md"))
			}
			if c.a != "somebody else\n" { // what was replaced is kept
				if got := d.told(t, content.At("a.md")); !strings.Contains(strings.Join(got, ";"), "outside observed somebody else a.md") {
					t.Errorf("history %v", got)
				}
			}
			d.reopen(t)
			if again, _, err := d.Operation("p1"); err != nil || again.Status != c.status {
				t.Errorf("opened again: %+v %v", again, err)
			}
			if i, err := d.Get(t.Context(), content.Target{ID: "A"}); err != nil || i.Status != content.Available {
				t.Errorf("A: %+v %v", i, err)
			}
		})
	}
}

// A checkpoint and what comes behind it say what the whole journal says.
func TestCheckpointSaysTheSame(t *testing.T) {
	d, disk := stuck(t)
	ctx := t.Context()
	d.outside(t, "c.md", "outside\n")
	d.observe(t, "c.md")
	if err := moveTo("m", "c.md", "f/c.md").do(ctx, d); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Prune(ctx, "w2"); err != nil {
		t.Fatal(err)
	}
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
	section, err := d.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	end := d.journal.End()
	say := func(d *desk) (out []any) {
		t.Helper()
		list, _, err := d.Operations(content.Filter{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"a.md", "b.md", "f/c.md"} {
			h, err := d.History(ctx, content.At(path), 0, "")
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, h)
		}
		i, err := d.Inspect(ctx, content.Target{ID: "A"})
		if err != nil {
			t.Fatal(err)
		}
		r, err := d.Report(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return append(out, list, i, r)
	}
	replayed := openDesk(t, disk.All(), "/space")
	want := say(replayed)
	from := disk.All()
	restored, err := openFrom(ctx, from, "/space", section, end)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := restored.close(); err != nil {
			t.Error(err)
		}
	}()
	if got := say(restored); !cmp.Equal(want, got) {
		t.Errorf("%s", cmp.Diff(want, got))
	}
	if _, err := restored.Resolve(ctx, "p1", map[string]content.Choice{"a.md": content.Restore}); err != nil {
		t.Errorf("an operation in recovery behind a checkpoint: %v", err)
	}
	if err := restored.undo(t, "m", "u"); err != nil {
		t.Errorf("an operation before the checkpoint is undone: %v", err)
	}
	for n := range section {
		_ = content.New(content.Options{}).RestoreCheckpoint(section[:n]) // an error, never a panic
	}
}

func FuzzCheckpoint(f *testing.F) {
	e := content.New(content.Options{})
	section, err := e.Checkpoint()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(section)
	f.Add([]byte{1, 0, 1, 1, 'x', 0, 1, 'w', 1, 5, 0, 0, 0, 0, 1, 16, 0, 0, 0, 0, 0, 0, 1, 1, 'a', 0, 0, 0, 0, 2, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		e := content.New(content.Options{})
		if e.RestoreCheckpoint(data) != nil {
			return
		}
		again, err := e.Checkpoint()
		if err != nil {
			t.Fatal(err)
		}
		if err := content.New(content.Options{}).RestoreCheckpoint(again); err != nil {
			t.Errorf("what was read cannot be read again: %v", err)
		}
	})
}

func TestAssociationsAndRelink(t *testing.T) {
	d := newDesk(t)
	ctx := t.Context()
	d.save(t, learner, "w", "a.md", "a\n")
	if err := register("r1", "a.md", "A").do(ctx, d); err != nil {
		t.Fatal(err)
	}
	wantCode(t, register("r2", "./a.md", "B").do(ctx, d), "already_registered")
	wantCode(t, register("r3", "b.md", "A").do(ctx, d), "invalid_input")
	wantCode(t, register("r4", "b.md", strings.Repeat("x", 129)).do(ctx, d), "invalid_input")
	if err := register("r5", "later.md", "L").do(ctx, d); err != nil {
		t.Errorf("a place where nothing is yet: %v", err)
	}
	base, err := d.structural(ctx, content.Target{ID: "A"})
	if err != nil {
		t.Fatal(err)
	}
	d.save(t, learner, "w2", "a.md", "edited\n")
	relink := content.Relink{ID: "l1", Item: "A", Location: catalog.Here("later.md"), Base: base}
	_, err = d.Relink(ctx, learner, relink)
	wantCode(t, err, "revision_conflict") // L is there
	relink.ID, relink.Location = "l2", catalog.Here("elsewhere.md")
	if _, err := d.Relink(ctx, learner, relink); err != nil {
		t.Errorf("an edit of the body leaves the structure: %v", err)
	}
	relink.ID = "l3"
	_, err = d.Relink(ctx, learner, relink)
	wantCode(t, err, "revision_conflict") // an old base
	if i, err := d.Get(ctx, content.Target{ID: "A"}); err != nil || i.Status != content.Missing {
		t.Errorf("%+v %v", i, err)
	}
	// A document whose file is missing can be removed.
	base, err = d.structural(ctx, content.Target{ID: "A"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Remove(ctx, learner, content.Remove{ID: "d1", Target: content.Target{ID: "A"}, Base: base}); err != nil {
		t.Errorf("remove what is missing: %v", err)
	}
}

// An answer that was given is kept, although its confirmation was still to come and another program changed a file before the power failed.
func TestAnsweredChangesSurviveWithWhatOthersDid(t *testing.T) {
	disk := crashfs.New()
	d := openDesk(t, disk, "/space")
	d.save(t, learner, "w1", "a.md", "a\n")
	d.save(t, learner, "w2", "b.md", "b\n")
	trace := disk.Record()
	if err := d.patch(t, content.Patch{ID: "p1", Text: body("*** Update File: a.md\n@@\n-a\n+A\n*** Update File: b.md\n@@\n-b\n+B\n")}); err != nil {
		t.Fatal(err)
	}
	trace.Mark("p1")
	trace.Stop()
	for theirs, want := range map[string]string{"somebody else\n": "somebody else\n", "a\n": "A\n"} {
		after := trace.At(trace.Marks()[0].Step).All()
		root, err := after.Sub(".")
		if err != nil {
			t.Fatal(err)
		}
		if err := vfs.WriteFile(root, "a.md", []byte(theirs), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := root.Close(); err != nil {
			t.Fatal(err)
		}
		again := openDesk(t, after, "/space")
		if o, _, err := again.Operation("p1"); err != nil || o.Status != content.Committed {
			t.Errorf("they wrote %q: %+v %v", theirs, o, err)
		}
		if again.on(t, "a.md") != want || again.on(t, "b.md") != "B\n" {
			t.Errorf("they wrote %q: a %q, b %q", theirs, again.on(t, "a.md"), again.on(t, "b.md"))
		}
	}
}

// Whatever a crash in a change leaves and another program writes then, an operation that is not taken back has its bytes for good, also when the power
// fails after the space was opened again.
func TestWhatStaysHoldsItsBytes(t *testing.T) {
	for name, next := range map[string]string{"new bytes": "A\n", "bytes of an earlier operation": "a\n"} {
		disk := crashfs.New()
		d := openDesk(t, disk, "/space")
		d.save(t, learner, "w1", "a.md", "a\n")
		d.save(t, learner, "w2", "a.md", "b\n")
		recorded := make(chan struct{})
		var once sync.Once
		disk.SetFault(func(c crashfs.Call) error { // the journal is faster than the store
			switch {
			case c.Op == "sync" && strings.HasPrefix(c.Path, ".repa/journal"):
				once.Do(func() { close(recorded) })
			case c.Op == "write" && strings.HasPrefix(c.Path, ".repa/cas"):
				<-recorded
			}
			return nil
		})
		trace := disk.Record()
		d.save(t, learner, "w3", "a.md", next)
		trace.Stop()
		statuses := map[content.Status]int{}
		for i := range trace.Len() + 1 {
			found := append(slices.Collect(trace.At(i).Subsets(fewer(16, 4, 400))), trace.At(i))
			for _, after := range found {
				if err := vfs.WriteFile(after, "a.md", []byte("somebody else\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				first, now := standing(t, after)
				again, _ := standing(t, now)
				if first != again {
					t.Errorf("%s, step %d: w3 is %q, and after another crash %q", name, i, first, again)
				}
				statuses[again]++
			}
		}
		if t.Logf("%s: %v", name, statuses); statuses[content.Committed] == 0 {
			t.Errorf("%s: nothing stays, which proves nothing", name)
		}
	}
}

// standing opens a space and says how w3 ended, and what is left when the power fails then; unless it was taken back, it must hold its two bodies.
func standing(t *testing.T, disk *crashfs.FS) (content.Status, *crashfs.FS) {
	t.Helper()
	d, err := openOn(t.Context(), disk, "/space")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.close(); err != nil {
			t.Error(err)
		}
	}()
	o, _, err := d.Operation("w3")
	held := d.store.Held(cas.Owner{Kind: cas.OwnerOperation, ID: "w3"})
	if err == nil && o.Status != content.RolledBack && len(held) != 2 {
		t.Errorf("w3 is %s and holds %v", o.Status, held)
	}
	return o.Status, disk.Crash(nil)
}
