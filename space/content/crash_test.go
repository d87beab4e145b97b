package content_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/space/catalog"
	"github.com/repa-app/repa/space/content"
	"github.com/repa-app/repa/testkit/crashfs"
)

// deed is a change that a crash may interrupt, by the id of its operation.
type deed struct {
	id string
	do func(ctx context.Context, d *desk) error
}

func write(id, name, text string, base content.Base) deed {
	return deed{id, func(ctx context.Context, d *desk) error {
		_, err := d.Write(ctx, learner, content.Write{ID: id, Target: content.At(name), Text: text, Base: base})
		return err
	}}
}

var none = content.Base{Absent: true}

func at(text string) content.Base { return content.Base{Revision: revision(text)} }

// plainRevision is the structural revision of a file or folder as it is now.
func (d *desk) structural(ctx context.Context, t content.Target) (string, error) {
	i, err := d.Get(ctx, t)
	if err != nil {
		return "", err
	}
	return *i.Revision, nil
}

func moveTo(id, from, to string) deed {
	return deed{id, func(ctx context.Context, d *desk) error {
		base, err := d.structural(ctx, content.At(from))
		if err != nil {
			return err
		}
		_, err = d.Move(ctx, learner, content.Transfer{ID: id, Target: content.At(from), Destination: to, Base: base})
		return err
	}}
}

func removeAt(id, name string) deed {
	return deed{id, func(ctx context.Context, d *desk) error {
		info, err := d.Get(ctx, content.At(name))
		if err != nil {
			return err
		}
		base := info.Revision
		if info.Body != nil {
			base = info.Body
		}
		_, err = d.Remove(ctx, learner, content.Remove{ID: id, Target: content.At(name), Base: *base})
		return err
	}}
}

func undo(id, of string) deed {
	return deed{id, func(ctx context.Context, d *desk) error {
		_, err := d.Undo(ctx, learner, of, id)
		return err
	}}
}

func register(id, name, item string) deed {
	return deed{id, func(ctx context.Context, d *desk) error {
		_, err := d.Associate(ctx, learner, content.Associate{ID: id, Location: catalog.Here(name), Role: catalog.Document, Item: item})
		return err
	}}
}

// deeds are short stories of changes; the power fails at every step of each.
var deeds = map[string][]deed{
	"new in a new folder": {write("w1", "a/b/new.md", "new\n", none)},
	"replace twice":       {write("w1", "n.md", "one\n", none), write("w2", "n.md", "two\n", at("one\n")), write("w3", "n.md", "three\n", at("two\n"))},
	"move":                {write("w1", "a.md", "text\n", none), register("r1", "a.md", "item"), moveTo("m1", "a.md", "deep/b.md")},
	"move a folder":       {write("w1", "f/a.md", "a\n", none), write("w2", "f/g/b.md", "b\n", none), moveTo("m1", "f", "h")},
	"remove and undo":     {write("w1", "f/a.md", "a\n", none), removeAt("d1", "f"), undo("u1", "d1"), undo("u2", "u1")},
}

// Whatever a power loss at any step leaves, every change is there wholly or not at all, what was acknowledged is there, nothing needs recovery,
// no temporary file is left, and opening once more changes nothing.
func TestPowerLoss(t *testing.T) {
	subsets := fewer(24, 4, 400)
	total := 0
	for name, story := range deeds {
		t.Run(name, func(t *testing.T) {
			disk := crashfs.New()
			d := openDesk(t, disk, "/space")
			states := []map[string]string{tree(t, d.root, ".")}
			trace := disk.Record()
			for _, step := range story {
				if err := step.do(t.Context(), d); err != nil {
					t.Fatalf("%s: %v", step.id, err)
				}
				trace.Mark(step.id)
				states = append(states, tree(t, d.root, "."))
			}
			trace.Stop()
			count := 0
			for i := range trace.Len() + 1 {
				acked := 0
				for _, mark := range trace.Marks() {
					if mark.Step <= i {
						acked++
					}
				}
				for after := range trace.At(i).Subsets(subsets) {
					count++
					where := fmt.Sprintf("step %d of %d, state %d", i, trace.Len(), count)
					checkAfterCrash(t, where, after, story, states, acked)
					if t.Failed() {
						return
					}
				}
			}
			total += count
			t.Logf("%d steps, %d states", trace.Len(), count)
		})
	}
	t.Logf("%d states", total)
}

// fewer chooses how much a battery does: as a rule, under the race detector, which is ten times slower, and in the long form.
func fewer(rule, race, long int) int {
	switch {
	case os.Getenv("REPA_TEST") == "long":
		return long
	case raced:
		return race
	}
	return rule
}

func checkAfterCrash(t *testing.T, where string, disk *crashfs.FS, story []deed, states []map[string]string, acked int) {
	t.Helper()
	d, err := openOn(t.Context(), disk, "/space")
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	done := 0
	for n, step := range story {
		o, _, err := d.Operation(step.id)
		switch {
		case code(err) == "not_found", err == nil && o.Status == content.RolledBack:
			if n < acked {
				t.Errorf("%s: %s was acknowledged and is gone (%v %s)", where, step.id, err, o.Status)
			}
		case err != nil || o.Status != content.Committed:
			t.Errorf("%s: %s is %s: %v %v", where, step.id, o.Status, o.Conflicts, err)
		default:
			done = n + 1
		}
	}
	got := tree(t, d.root, ".")
	if !maps.Equal(got, states[done]) {
		t.Errorf("%s: %d changes are done, but: %s", where, done, cmp.Diff(states[done], got))
	}
	for held := range d.store.AllOwners(cas.OwnerOperation) {
		if _, _, err := d.Operation(held.ID); err != nil {
			t.Errorf("%s: %s holds something and is not there", where, held)
		}
	}
	for name := range got {
		if strings.Contains(name, ".repa-") {
			t.Errorf("%s: %s is left", where, name)
		}
	}
	if err := d.close(); err != nil {
		t.Errorf("%s: %v", where, err)
	}
	again, err := openOn(t.Context(), disk, "/space")
	if err != nil {
		t.Errorf("%s, opened again: %v", where, err)
		return
	}
	if now := tree(t, again.root, "."); !maps.Equal(got, now) {
		t.Errorf("%s: opening again changed %s", where, cmp.Diff(got, now))
	}
	if err := again.close(); err != nil {
		t.Errorf("%s: %v", where, err)
	}
}

// The power fails again at every step of the recovery from a failure in the middle of a change.
func TestCrashInsideRecovery(t *testing.T) {
	count := 0
	for name, story := range deeds {
		disk := crashfs.New()
		d := openDesk(t, disk, "/space")
		states := []map[string]string{tree(t, d.root, ".")}
		trace := disk.Record()
		for _, step := range story {
			if err := step.do(t.Context(), d); err != nil {
				t.Fatalf("%s: %v", step.id, err)
			}
			trace.Mark(step.id)
			states = append(states, tree(t, d.root, "."))
		}
		trace.Stop()
		for i := 0; i <= trace.Len(); i += fewer(3, 9, 1) {
			acked := 0
			for _, mark := range trace.Marks() {
				if mark.Step <= i {
					acked++
				}
			}
			first := trace.At(i).All()
			again := first.Record()
			recovered, err := openOn(t.Context(), first, "/space")
			if err != nil {
				t.Fatalf("%s, step %d: %v", name, i, err)
			}
			again.Stop()
			if err := recovered.close(); err != nil {
				t.Fatal(err)
			}
			for k := range again.Len() + 1 {
				for after := range again.At(k).Subsets(fewer(4, 2, 16)) {
					count++
					checkAfterCrash(t, fmt.Sprintf("%s: step %d, then step %d of the recovery", name, i, k), after, story, states, acked)
					if t.Failed() {
						return
					}
				}
			}
		}
	}
	t.Logf("%d states", count)
}
