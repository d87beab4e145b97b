package content_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/space/content"
	"github.com/repa-app/repa/testkit/crashfs"
)

// refusals are the errors that a story may meet.
var refusals = map[string][]string{
	"write":                  {"revision_conflict"},
	"edit":                   {"ambiguous_match"},
	"move":                   {"revision_conflict", "invalid_input", "not_found"},
	"copy":                   {"revision_conflict", "invalid_input", "not_found"},
	"remove":                 {},
	"restore":                {"revision_conflict", "not_found"},
	"associate":              {"already_registered"},
	"compose":                {"not_found"},
	"patch":                  {"revision_conflict", "invalid_input", "already_registered", "invalid_patch", "ambiguous_match"},
	"undo":                   {"revision_conflict"},
	"undo of an observation": {"revision_conflict", "revision_unavailable"},
	"undo of a run":          {"not_found"},
}

// attempt carries out an operation, and now and then lets it be interrupted at any moment.
func (w *world) attempt(method string, do func(d *desk, id string) (content.Result, error)) {
	w.ids++
	id := fmt.Sprintf("op-%d", w.ids)
	var trace *crashfs.Trace
	if w.oneIn(8, "interrupted") {
		trace = w.disk.Record()
	}
	before, itemsBefore := w.tree, w.register()
	result, err := do(w.d, id)
	if trace != nil {
		trace.Stop()
	}
	w.see()
	w.note("%s %s: %s%s", id, method, code(err), changed(result))
	var done *deal
	switch {
	case err != nil:
		w.n.refused[method+": "+code(err)]++
		if !slices.Contains(refusals[method], code(err)) {
			w.t.Errorf("%s %s: %s: %v", method, id, code(err), err)
		}
		w.same("the refused "+method+" "+id, before, w.tree)
	case result.Repeated: // nothing was to be done
		w.same(method+" "+id+" of nothing", before, w.tree)
	default:
		w.n.operations[method]++
		done = w.accept(method, id, result, before)
		done.repeat = func(d *desk) (content.Result, error) { return do(d, id) }
	}
	if trace == nil {
		w.stand(done)
		return
	}
	w.n.inside++
	rng := w.random()
	at := rng.IntN(trace.Len() + 1)
	w.note("%s is interrupted at %d of %d", id, at, trace.Len())
	w.die(trace.At(at), rng, &interruption{done: done, acknowledged: done != nil && at == trace.Len(), before: before, after: w.tree, itemsBefore: itemsBefore, itemsAfter: w.register()})
}

// changed is what an answer tells, to be read.
func changed(r content.Result) string {
	var out strings.Builder
	for _, c := range r.Changes {
		fmt.Fprintf(&out, " %s %.4s→%.4s", c.Path, value(c.Before), value(c.After))
	}
	for _, i := range r.Contents {
		if i.ID != "" {
			fmt.Fprintf(&out, " [%s %s at %s]", i.ID, i.Status, i.Location.Path)
		}
	}
	return out.String()
}

// same wants two trees to be equal.
func (w *world) same(what string, want, got map[string]string) {
	w.t.Helper()
	if !maps.Equal(want, got) {
		w.t.Errorf("%s changed the disk: %s", what, cmp.Diff(want, got))
	}
}

// accept holds an answer against the disk: it tells every change, and nothing else changed.
func (w *world) accept(method, id string, r content.Result, before map[string]string) *deal {
	out := &deal{id: id, answer: w.encoded(r), changes: r.Changes, born: w.clock}
	if r.OperationID != id {
		w.t.Errorf("%s %s was answered as %s", method, id, r.OperationID)
	}
	told := map[string]bool{}
	for _, c := range r.Changes {
		told[c.Path], told[c.Path+"/"] = true, true
		if was, is := bodyAt(before, c.Path), bodyAt(w.tree, c.Path); was != value(c.Before) || is != value(c.After) {
			w.t.Errorf("%s %s says that %s went from %.8q to %.8q; it went from %.8q to %.8q", method, id, c.Path, value(c.Before), value(c.After), was, is)
		}
	}
	rest := func(tree map[string]string) map[string]string {
		tree = maps.Clone(tree)
		maps.DeleteFunc(tree, func(name, _ string) bool { return told[name] })
		return tree
	}
	w.same(method+" "+id+", besides what it tells,", rest(before), rest(w.tree))
	for _, i := range r.Contents {
		if i.ID != "" {
			out.items = append(out.items, i.ID)
		}
	}
	w.know(out.items)
	return out
}

// know enters ids of items.
func (w *world) know(ids []string) {
	for _, id := range ids {
		if !slices.Contains(w.items, id) {
			w.items = append(w.items, id)
		}
	}
}

func (w *world) encoded(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

// stand enters an operation that is acknowledged, if there is one.
func (w *world) stand(done *deal) {
	if done == nil {
		return
	}
	w.deals = append(w.deals, done)
	w.waiting = done
	if len(done.changes) == 0 {
		w.waiting = nil // it is confirmed in one go
	}
	for _, c := range done.changes {
		delete(w.strange, c.Path)
	}
}

// register is what the space says of every item.
func (w *world) register() map[string]string {
	out := map[string]string{}
	for _, id := range w.items {
		i, err := w.d.Inspect(w.outer.Context(), content.Target{ID: id})
		if err == nil {
			out[id] = w.encoded(i)
		} else if code(err) != "not_found" {
			w.t.Fatalf("inspect %s: %v", id, err)
		}
	}
	return out
}

// bodies are the revisions of an operation.
func (e *deal) bodies() (out []string) {
	for _, c := range e.changes {
		for _, r := range []*string{c.Before, c.After} {
			if r != nil {
				out = append(out, *r)
			}
		}
	}
	return out
}

// kept lists the revisions that must be there for ever.
func (w *world) kept() []string {
	out := slices.Clone(w.observed)
	for _, e := range w.deals {
		out = append(out, e.bodies()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// verify holds everything against what is known.
func (w *world) verify() {
	ctx := w.outer.Context()
	for _, r := range w.kept() {
		o, err := w.d.Revision(ctx, r)
		if err != nil {
			w.t.Errorf("revision %.8s: %v", r, err)
			continue
		}
		data, err := io.ReadAll(o)
		if err = errors.Join(err, o.Close()); err != nil || string(data) != w.texts[r] {
			w.t.Errorf("revision %.8s is %q: %v", r, data, err)
		}
	}
	for _, e := range w.deals {
		r, err := e.repeat(w.d)
		o, _, gone := w.d.Operation(e.id)
		if err != nil || gone != nil || !r.Repeated || w.encoded(r) != e.answer || o.Status != content.Committed {
			w.t.Errorf("%s was acknowledged; it is %s, and repeated: %v %v\n%s\n%s", e.id, o.Status, err, gone, e.answer, w.encoded(r))
		}
		w.n.asked++
	}
	w.same("looking and repeating", w.tree, w.look())
	report, err := w.d.Report(ctx)
	if err != nil || len(report.Unresolved) > 0 {
		w.t.Errorf("unresolved: %v %v", report.Unresolved, err)
	}
	w.verifyItems()
	w.verifyHistory()
	for name := range w.tree {
		if strings.Contains(name, ".repa-") || strings.Contains(name, ".tmp") {
			w.t.Errorf("%s is left", name)
		}
	}
}

// verifyItems wants no two items in one place.
func (w *world) verifyItems() {
	at := map[string]string{}
	for _, id := range w.items {
		i, err := w.d.Inspect(w.outer.Context(), content.Target{ID: id})
		if err != nil {
			w.t.Errorf("item %s: %v", id, err)
		}
		if i.Status != content.Available {
			continue
		}
		if other := at[i.Location.Path]; other != "" {
			w.t.Errorf("%s and %s both are at %s", other, id, i.Location.Path)
		}
		at[i.Location.Path] = id
		if there, err := w.d.Inspect(w.outer.Context(), content.At(i.Location.Path)); err != nil || there.ID != id {
			w.t.Errorf("%s is at %s, where %q is: %v", id, i.Location.Path, there.ID, err)
		}
	}
	for _, folder := range []string{".", "f", "g"} {
		list, err := w.d.List(w.outer.Context(), folder)
		if err != nil && code(err) != "not_found" {
			w.t.Errorf("list %s: %v", folder, err)
		}
		for n, i := range list {
			if n > 0 && i.Location == list[n-1].Location {
				w.t.Errorf("%s and %s both are at %s", list[n-1].ID, i.ID, i.Location.Path)
			}
		}
	}
}

// verifyHistory wants the newest revision of each path to be what is there, when nobody outside was at it.
func (w *world) verifyHistory() {
	known := map[string]bool{}
	for _, e := range w.deals {
		for _, c := range e.changes {
			known[c.Path] = true
		}
	}
	for _, name := range places {
		if w.strange[name] {
			continue
		}
		h, err := w.d.History(w.outer.Context(), content.At(name), 1, "")
		is := bodyAt(w.tree, name)
		switch {
		case err != nil && (code(err) != "not_found" || is != "" || known[name]):
			w.t.Errorf("history of %s: %v", name, err)
		case err != nil:
		case len(h.Revisions) == 0:
			if known[name] {
				w.t.Errorf("%s has no history", name)
			}
		case value(h.Revisions[0].Revision) != is || is != "" && !h.Revisions[0].Available:
			w.t.Errorf("the newest revision of %s is %+v, and it has %.8q", name, h.Revisions[0], is)
		}
	}
}
