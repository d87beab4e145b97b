package content

import (
	"context"
	"path"
	"slices"

	"github.com/repa-app/repa/space/catalog"
)

// Reconcile ends an operation that needs recovery, leaving the files as they are now. Others are returned as they are. Errors (codes): not_found,
// recovery_required when an item that it was to move has no file: relink or remove that first.
func (e *Engine) Reconcile(ctx context.Context, id string) (Operation, error) {
	e.change.Lock()
	defer e.change.Unlock()
	o, err := e.inRecovery(id)
	if err != nil || o == nil {
		if err == nil {
			out, _, err := e.Operation(id)
			return out, err
		}
		return Operation{}, err
	}
	if err := e.itemsHaveFiles(o); err != nil {
		return Operation{}, err
	}
	return e.reconciled(ctx, o)
}

func (e *Engine) reconciled(ctx context.Context, o *operation) (Operation, error) {
	if err := e.settle(context.WithoutCancel(ctx), o, typeReconciled, Reconciled, record{ID: o.id}); err != nil {
		return Operation{}, err
	}
	out, _, err := e.Operation(o.id)
	return out, err
}

// inRecovery finds an operation that needs recovery; nil when it is settled.
func (e *Engine) inRecovery(id string) (*operation, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	o := e.operations[id]
	if o == nil {
		return nil, fail(codeNotFound, "there is no operation %s in this space", id)
	}
	if o.status != NeedsRecovery {
		return nil, nil
	}
	return o, nil
}

// itemsHaveFiles wants every item that the operation was to move or change the state of to have its file.
func (e *Engine) itemsHaveFiles(o *operation) error {
	for _, c := range o.pending.Items {
		now := e.itemOf(c.After.ID)
		if now == nil || now.State != catalog.Active || now.Location.Kind != catalog.Relative {
			continue
		}
		if c.Before != nil && c.Before.Location == c.After.Location && c.Before.State == c.After.State {
			continue
		}
		l, err := e.stat(now.Location.Path)
		if err != nil {
			return err
		}
		if l.image.Kind == kindAbsent {
			return fail(codeRecovery, "content %s has no file at %s; relink it to where its file is, or remove it, then settle operation %s", now.ID, now.Location.Path, o.id).
				With(map[string]any{"operationId": o.id, "id": now.ID, "path": now.Location.Path})
		}
	}
	return nil
}

// Choice is what becomes of one file of an operation that needs recovery.
type Choice string

// Choices.
const (
	Keep    Choice = "keep"    // as it is now
	Restore Choice = "restore" // as it was before the operation
	Take    Choice = "take"    // as the operation wanted it
)

// Resolve settles an operation that needs recovery file by file. A file without a choice is kept. What is replaced is kept as an observed revision.
// When every file is as the operation wanted it, its items are too and it counts as committed; when every one is as before, as rolled back; else as
// reconciled. Errors (codes): not_found, invalid_input for another path or choice, revision_unavailable, recovery_required as Reconcile.
func (e *Engine) Resolve(ctx context.Context, id string, choices map[string]Choice) (Operation, error) {
	e.change.Lock()
	defer e.change.Unlock()
	o, err := e.inRecovery(id)
	if err != nil {
		return Operation{}, err
	}
	if o == nil {
		out, _, err := e.Operation(id)
		return out, err
	}
	for name, c := range choices {
		if !o.touches(name) {
			return Operation{}, fail(codeInput, "operation %s has nothing to do with %s", id, name)
		}
		if c != Keep && c != Restore && c != Take {
			return Operation{}, fail(codeInput, "choice %q for %s: want keep, restore or take", c, name)
		}
	}
	ctx = context.WithoutCancel(ctx)
	ends := map[where]int{}
	files := o.pending.Files
	for _, f := range orderFor(files, choices) {
		if err := e.choose(ctx, o, f, choices[f.Path]); err != nil {
			return Operation{}, err
		}
	}
	dirs := map[string]bool{}
	for _, f := range files {
		dirs[path.Dir(f.Path)] = true
		ends[e.place(ctx, f)]++
	}
	if err := e.syncDirs(ctx, dirs); err != nil {
		return Operation{}, err
	}
	typ, status := uint8(typeReconciled), Reconciled
	switch len(files) {
	case ends[atAfter]:
		e.mu.RLock()
		err = e.catalog.Check(o.pending.Items)
		e.mu.RUnlock()
		if err == nil {
			typ, status = typeConfirmed, Committed
		}
	case ends[atBefore]:
		typ, status = typeRolledBack, RolledBack
	}
	if status == Reconciled {
		if err := e.itemsHaveFiles(o); err != nil {
			return Operation{}, err
		}
	}
	if err := e.settle(ctx, o, typ, status, record{ID: id, Code: o.code, Error: o.err}); err != nil {
		return Operation{}, err
	}
	out, _, err := e.Operation(id)
	return out, err
}

// orderFor puts what is made before what is taken away: folders from the top, removals from the bottom.
func orderFor(files []FileChange, choices map[string]Choice) []FileChange {
	gone := func(f FileChange) bool {
		return choices[f.Path] == Restore && f.Before.Kind == kindAbsent || choices[f.Path] == Take && f.After.Kind == kindAbsent
	}
	out := slices.Clone(files)
	slices.SortStableFunc(out, func(a, b FileChange) int {
		switch ga, gb := gone(a), gone(b); {
		case ga == gb && ga:
			return len(b.Path) - len(a.Path)
		case ga == gb:
			return len(a.Path) - len(b.Path)
		case ga:
			return 1
		}
		return -1
	})
	return out
}

// choose makes one file as its choice says; what another program wrote there is noted first.
func (e *Engine) choose(ctx context.Context, o *operation, f FileChange, c Choice) error {
	want := f.Before
	switch c {
	case Take:
		want = f.After
	case Restore:
	default:
		return nil
	}
	if ok, err := e.matches(ctx, f.Path, want, nil); err == nil && ok {
		return nil
	}
	if want.Body != nil && !e.store.Has(*want.Body) {
		return fail(codeGone, "the bytes of %s for %s are not in the store", f.Path, c)
	}
	now, err := e.read(ctx, f.Path, maxDocument)
	if err != nil {
		return err
	}
	defer now.close()
	if now.image.Kind == kindFile {
		if err := e.observed(ctx, now); err != nil {
			return err
		}
	}
	if want.Kind == kindFile && now.image.Kind != kindDirectory {
		if err := e.makeFolders(path.Dir(f.Path)); err != nil {
			return err
		}
	}
	return diskError(f.Path, e.restore(ctx, o.id, f.Path, now.image, want))
}

// makeFolders makes a folder with those on the way.
func (e *Engine) makeFolders(name string) error {
	if name == "." {
		return nil
	}
	if l, err := e.stat(name); err != nil || l.image.Kind == kindDirectory {
		return err
	}
	if err := e.makeFolders(path.Dir(name)); err != nil {
		return err
	}
	folder, base, err := e.folder(name)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := folder.Mkdir(base, 0o755); err != nil {
		return diskError("folder "+name, err)
	}
	return diskError("folder "+path.Dir(name), folder.SyncDir("."))
}

// Bring brings back a document that was removed, or an earlier revision of one.
type Bring struct {
	ID       string
	Target   Target
	Revision string // "": the last one that there was
}

type bringInput struct {
	Target   Target
	Revision string
}

// Restore carries out a Bring: the file has that revision, and an item that was removed is in use again at its last place. Errors (codes): not_found when
// the history has no such revision, revision_unavailable when its bytes are not kept, revision_conflict when another item is at the place.
func (e *Engine) Restore(ctx context.Context, by By, b Bring) (Result, error) {
	return e.do(ctx, request{id: b.ID, method: "content.restore", input: bringInput{b.Target, b.Revision}, by: by}, func(p *plan) error {
		l, err := e.locate(b.Target)
		if err != nil {
			return err
		}
		if l.at.Kind == catalog.External || l.at.Path == "." {
			return fail(codePermission, "%s is not a file inside this space", l)
		}
		image, err := e.formerly(l, b.Revision)
		if err != nil {
			return err
		}
		i := l.item
		if i == nil {
			i = p.removedAt(l.at)
		}
		if i != nil && i.State != catalog.Active {
			next := *i
			next.State = catalog.Active
			p.put(&next)
		}
		p.notes = append(p.notes, l.at.Path)
		return p.setImage(l.at.Path, image)
	})
}

// removedAt is the item that was removed last from a place.
func (p *plan) removedAt(at catalog.Location) (out *catalog.Item) {
	p.e.mu.RLock()
	defer p.e.mu.RUnlock()
	for _, o := range slices.Backward(p.e.byPath[at.Path]) {
		for _, id := range o.items {
			i := p.e.catalog.Get(id) // nil when the operation was taken back
			if i != nil && i.State != catalog.Active && i.Location == at {
				return i
			}
		}
	}
	return nil
}

// formerly finds an earlier state of a file.
func (e *Engine) formerly(l located, revision string) (Image, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, s := range e.trail(l.at.Path) {
		for _, i := range []Image{s.file.After, s.file.Before} {
			switch {
			case i.Body == nil, revision != "" && i.Body.String() != revision:
			case !e.store.Has(*i.Body):
				return Image{}, fail(codeGone, "revision %s of %s is not kept", i.Body, l)
			default:
				return i, nil
			}
		}
	}
	if revision != "" {
		return Image{}, fail(codeNotFound, "%s never had revision %s", l, revision)
	}
	return Image{}, fail(codeNotFound, "there is nothing to restore at %s", l)
}
