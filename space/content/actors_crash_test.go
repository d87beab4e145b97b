package content_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/space/content"
	"github.com/repa-app/repa/testkit/crashfs"
)

// outside is another program that changes a file, and sometimes it is noticed.
func (w *world) outside() {
	name := pick(w, "path", places)
	before := w.tree
	_, there := w.tree[name]
	switch kind := rapid.IntRange(0, 5).Draw(w.t, "kind"); {
	case !there || kind < 2:
		w.scribble(name, w.drawText())
	case kind < 4:
		s := w.tree[name] // a change that can be told apart from others
		w.scribble(name, s+fmt.Sprintf("9: from outside, step %d\n", w.step))
	case kind == 4:
		if err := errors.Join(w.disk.Remove(name), w.disk.SyncDir(path.Dir(name))); err != nil {
			w.t.Fatal(err)
		}
	default:
		to := pick(w, "to", places)
		if err := vfs.MkdirAll(w.disk, path.Dir(to), 0o755); err != nil {
			w.t.Fatal(err)
		}
		if err := errors.Join(w.disk.Rename(name, to), w.disk.SyncDir(path.Dir(name)), w.disk.SyncDir(path.Dir(to))); err != nil {
			w.t.Fatal(err)
		}
		w.strange[to] = true
	}
	w.n.outside++
	w.strange[name] = true
	w.see()
	w.note("outside: %s", cmp.Diff(before, w.tree))
	if w.oneIn(2, "noticed") {
		w.letKnow()
	}
}

// scribble writes a file as editors do, into it or over it. The next crash does not take it.
func (w *world) scribble(name, s string) {
	err := errors.Join(vfs.MkdirAll(w.disk, path.Dir(name), 0o755), w.disk.SyncDir("."))
	if err == nil && w.oneIn(2, "in place") {
		var f vfs.File
		if f, err = w.disk.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644); err == nil {
			_, err = f.Write([]byte(s))
			err = errors.Join(err, f.Sync(), f.Close(), w.disk.SyncDir(path.Dir(name)))
		}
	} else if err == nil {
		err = vfs.WriteFile(w.disk, name, []byte(s), 0o644)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// letKnow lets the engine look at what the outside program changed, as the watcher of a space does a moment later.
func (w *world) letKnow() {
	names := slices.Sorted(maps.Keys(w.strange))
	seen, err := w.d.Observe(w.outer.Context(), 1<<20, names...)
	if err != nil {
		w.t.Fatalf("observe: %v", err)
	}
	w.n.observed += len(seen.Changed)
	for _, name := range seen.Changed {
		if r := bodyAt(w.tree, name); r != "" {
			w.observed = append(w.observed, r)
		}
	}
	if len(seen.Changed) > 0 {
		w.waiting = nil
	}
	clear(w.strange)
	w.note("observed %v", seen.Changed)
}

func (w *world) reopen() {
	w.note("reopened")
	w.waiting = nil
	w.shut()
	w.open()
	w.n.reopened++
}

// crash fails the power, or kills the program, between two operations.
func (w *world) crash() {
	rng, now, items := w.random(), w.tree, w.register()
	w.die(w.disk.All(), rng, &interruption{before: now, after: now, itemsBefore: items, itemsAfter: items})
}

// collect drops from the store what nobody holds. Now and then the power fails meanwhile.
func (w *world) collect() {
	items := w.register()
	w.shut()
	w.waiting = nil
	trace := w.disk.Record()
	sub, err := w.disk.Sub(".repa/cas")
	if err != nil {
		w.t.Fatal(err)
	}
	store, err := cas.Open(w.outer.Context(), "cas", cas.Options{FS: sub, Grace: -1})
	if err != nil {
		w.t.Fatal(err)
	}
	dropped, err := store.Collect(w.outer.Context())
	if err = errors.Join(err, store.Close(), sub.Close()); err != nil {
		w.t.Fatalf("collect: %v", err)
	}
	trace.Stop()
	w.n.collected++
	w.n.dropped += int(dropped.Objects)
	if w.oneIn(3, "interrupted") {
		rng := w.random()
		w.disk = trace.At(rng.IntN(trace.Len() + 1)).Crash(rng)
		w.n.crashes++
	}
	w.open()
	if got := w.register(); !maps.Equal(items, got) {
		w.t.Errorf("a collection changed items: %s", cmp.Diff(items, got))
	}
}

// interruption is what was under way when the power failed: an operation or nothing.
type interruption struct {
	done                    *deal // nil: nothing that would have been acknowledged
	acknowledged            bool
	before, after           map[string]string // the disk
	itemsBefore, itemsAfter map[string]string
}

// die goes on with a disk on which power failed or the program was killed. Now and then the outside program changes a file before the space is opened
// again, and another crash comes into the recovery.
func (w *world) die(disk *crashfs.FS, rng *rand.Rand, x *interruption) {
	w.shut()
	w.n.crashes++
	if w.oneIn(3, "killed") {
		w.disk = disk
	} else {
		w.disk = disk.Crash(rng)
	}
	meddled := map[string]bool{}
	if w.oneIn(4, "meddled with") {
		w.meddle(meddled)
	}
	w.note("crash; meddled with %v", meddled)
	lying := w.recover(rng)
	w.see()
	want, items := x.before, x.itemsBefore
	if x.acknowledged {
		want, items = x.after, x.itemsAfter
	}
	committed := false
	if x.done != nil {
		o, _, _ := w.d.Operation(x.done.id) // unknown is fine
		committed = o.Status == content.Committed
	}
	unsure := w.unsure(x, want, meddled, committed)
	var torn []*deal
	for _, e := range append(slices.Clone(w.deals), x.done) {
		if e == nil {
			continue
		}
		o, _, err := w.d.Operation(e.id)
		w.note("after a crash %s is %s%s", e.id, o.Status, code(err))
		switch open := e == x.done && !x.acknowledged; {
		case o.Status == content.Committed:
		case o.Status == content.NeedsRecovery && (open && touches(o.Paths, meddled) || e == unsure):
			torn = append(torn, e)
		case o.Status == content.RolledBack && e == unsure:
			w.n.unsure++
			w.deals = slices.DeleteFunc(w.deals, func(other *deal) bool { return other == e })
			for _, c := range e.changes {
				w.strange[c.Path] = true
			}
		case !open || code(err) != "not_found" && o.Status != content.RolledBack:
			w.t.Errorf("after a crash %s is %s: %v %v; meddled with %v", e.id, o.Status, o.Conflicts, err, meddled)
		}
	}
	if committed {
		want, items = x.after, x.itemsAfter
	}
	if len(torn) > 0 {
		w.same("a recovery from what the outside program did", lying, w.tree)
	} else {
		want = maps.Clone(want)
		for name := range meddled {
			want[name], want[path.Dir(name)+"/"] = lying[name], ""
		}
		w.either(unsure, want, meddled)
		w.same("a crash", want, w.tree)
		if got := w.register(); !maps.Equal(items, got) && len(meddled) == 0 && unsure == nil {
			w.t.Errorf("after a crash items are others: %s", cmp.Diff(items, got))
		}
	}
	w.items = slices.DeleteFunc(w.items, func(id string) bool {
		_, err := w.d.Inspect(w.outer.Context(), content.Target{ID: id})
		return code(err) == "not_found"
	})
	if committed {
		w.stand(x.done)
	}
	w.waiting = nil
	maps.Copy(w.strange, meddled)
	for _, e := range torn {
		w.settle(e)
	}
}

// unsure is the last acknowledged operation if the outside program undid a part of it. Until it is confirmed, which is a matter of milliseconds, nothing
// but its files tells after a crash that it was acknowledged; so it may be completed, taken back or in need of recovery then.
func (w *world) unsure(x *interruption, tree map[string]string, meddled map[string]bool, committed bool) *deal {
	e := w.waiting
	switch {
	case x.acknowledged:
		e = x.done
	case committed:
		return nil // its record brought the confirmation of the one before
	}
	if e == nil {
		return nil
	}
	for _, c := range e.changes {
		folder := c.Before == nil && c.After == nil
		if folder && (touches([]string{c.Path}, meddled) || touches([]string{c.Path}, w.strange)) || !folder && w.strange[c.Path] && bodyAt(tree, c.Path) == value(c.Before) {
			return e
		}
	}
	return nil
}

// either lets the files of an operation be as before or as after it.
func (w *world) either(e *deal, want map[string]string, meddled map[string]bool) {
	if e == nil {
		return
	}
	for _, c := range e.changes {
		for _, name := range []string{c.Path, c.Path + "/"} {
			if meddled[c.Path] {
				continue
			}
			if s, there := w.tree[name]; there {
				want[name] = s
			} else {
				delete(want, name)
			}
		}
		if is := bodyAt(w.tree, c.Path); !meddled[c.Path] && !w.strange[c.Path] && is != value(c.Before) && is != value(c.After) {
			w.t.Errorf("%s has %.8q after a crash, neither as before nor as after %s", c.Path, is, e.id)
		}
	}
}

// meddle lets the outside program write texts that nobody ever wrote.
func (w *world) meddle(meddled map[string]bool) {
	for range rapid.IntRange(1, 2).Draw(w.t, "files") {
		name := pick(w, "path", places)
		w.scribble(name, fmt.Sprintf("0: meddled with %d %d\n", w.step, len(meddled)))
		meddled[name] = true
		w.n.outside++
	}
}

// touches reports whether paths are among those of an operation, or in its folders.
func touches(paths []string, meddled map[string]bool) bool {
	for name := range meddled {
		if slices.Contains(paths, name) || slices.Contains(paths, path.Dir(name)) {
			return true
		}
	}
	return false
}

// recover opens the space after a crash and returns the disk as it was then. Now and then another crash interrupts it, and it is done once more.
func (w *world) recover(rng *rand.Rand) (lying map[string]string) {
	if w.oneIn(4, "crash in the recovery") {
		trace := w.disk.Record()
		w.open()
		trace.Stop()
		w.shut()
		w.disk = trace.At(rng.IntN(trace.Len() + 1)).Crash(rng)
		w.n.twice++
		w.note("crash in the recovery")
	}
	lying = w.look()
	w.open()
	return lying
}

// settle ends an operation that needs recovery.
func (w *world) settle(e *deal) {
	w.n.recovered++
	if _, err := e.repeat(w.d); code(err) != "recovery_required" {
		w.t.Errorf("%s needs recovery and is repeated: %v", e.id, err)
	}
	o, _, err := w.d.Operation(e.id)
	if err != nil {
		w.t.Fatal(err)
	}
	choices := map[string]content.Choice{}
	for _, name := range o.Paths {
		if c := pick(w, "choice", []content.Choice{content.Keep, content.Keep, content.Restore, content.Take}); path.Dir(name) != "." { // folders stay
			choices[name] = c
		}
	}
	before := w.tree
	o, err = w.d.Resolve(w.outer.Context(), e.id, choices)
	if code(err) == "recovery_required" { // an item has no file
		o, err = w.provide(e.id, choices)
	}
	if err != nil {
		w.t.Fatalf("resolve %s by %v: %v", e.id, choices, err)
	}
	w.see()
	for _, name := range files(before) {
		if c, chosen := choices[name]; (c == content.Keep || !chosen && !w.strange[name]) && bodyAt(w.tree, name) != bodyAt(before, name) {
			w.t.Errorf("settling %s by %v changed %s", e.id, choices, name)
		}
		w.observed = append(w.observed, w.replaced(before, name)...)
	}
	for _, c := range e.changes {
		want := map[content.Choice]string{content.Restore: value(c.Before), content.Take: value(c.After)}
		if is, ok := want[choices[c.Path]]; ok && bodyAt(w.tree, c.Path) != is {
			w.t.Errorf("settling %s by %v left %s at %.8q", e.id, choices, c.Path, bodyAt(w.tree, c.Path))
		}
		w.strange[c.Path] = true
	}
	w.deals = slices.DeleteFunc(w.deals, func(other *deal) bool { return other == e })
	switch o.Status {
	case content.Committed:
		w.deals = append(w.deals, e)
		w.know(e.items)
	case content.Reconciled:
		w.observed = append(w.observed, e.bodies()...)
	case content.RolledBack:
	default:
		w.t.Errorf("%s is settled and %s", e.id, o.Status)
	}
}

// replaced is what a file had that has something else now, or is gone.
func (w *world) replaced(before map[string]string, name string) []string {
	if was := bodyAt(before, name); was != bodyAt(w.tree, name) {
		return []string{was}
	}
	return nil
}

// provide gives items their missing files, and settles.
func (w *world) provide(id string, choices map[string]content.Choice) (content.Operation, error) {
	for {
		o, err := w.d.Reconcile(w.outer.Context(), id)
		var known *content.Error
		if code(err) != "recovery_required" || !errors.As(err, &known) {
			return o, err
		}
		name, ok := known.Detail("path").(string)
		if !ok {
			return o, err
		}
		w.scribble(name, fmt.Sprintf("0: provided in step %d\n", w.step))
		w.strange[name] = true
		delete(choices, name)
	}
}
