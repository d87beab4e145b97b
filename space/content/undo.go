package content

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/space/catalog"
	"github.com/repa-app/repa/space/text"
)

const methodUndo = "operation.undo"

type undoInput struct{ Operation string }

// Undo takes a committed operation back, as an operation of its own that can be undone too (which does it again). What was changed since stays when
// it can be told apart. Errors (codes): not_found, history_pruned, recovery_required, revision_conflict with the paths where later changes overlap or
// somebody else took a place.
func (e *Engine) Undo(ctx context.Context, by By, id, undoID string) (Result, error) {
	return e.do(ctx, request{id: undoID, method: methodUndo, input: undoInput{id}, by: by, undoes: []string{id}}, func(p *plan) error {
		o, err := e.undoable(id)
		if err != nil {
			return err
		}
		return p.undo(o)
	})
}

// undoable finds an operation that can be undone.
func (e *Engine) undoable(id string) (*operation, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	o := e.operations[id]
	switch {
	case o == nil && e.pruned[id] != "":
		return nil, fail(codePruned, "the history of operation %s was pruned, so it cannot be undone", id)
	case o == nil:
		return nil, fail(codeNotFound, "there is no operation %s in this space", id)
	case o.status == NeedsRecovery || o.status == Prepared:
		return nil, fail(codeRecovery, "operation %s needs recovery; settle it first", id)
	case o.status != Committed:
		return nil, fail(codeInput, "operation %s did not change anything (%s), so there is nothing to undo", id, o.status)
	case o.undoneBy != "" && !e.undone(o.undoneBy):
		return nil, fail(codeConflict, "operation %s was undone before, by %s; undo that to do it again", id, o.undoneBy).With(map[string]any{"undoneBy": o.undoneBy})
	}
	return o, nil
}

// undone reports whether an operation was undone and that stands. mu is held.
func (e *Engine) undone(id string) bool {
	o := e.operations[id]
	return o != nil && o.undoneBy != "" && !e.undone(o.undoneBy)
}

// undo plans the opposite of an operation.
func (p *plan) undo(o *operation) error {
	r, err := p.e.stored(o)
	if err != nil {
		return err
	}
	var conflicts []string
	took := map[string]bool{} // both ends of the moves that are put back
	try := func(name string, err error) error {
		if codeOf(err) != codeConflict {
			return err
		}
		conflicts = append(conflicts, name)
		return nil
	}
	for _, f := range r.Files {
		if f.Was != "" {
			took[f.Was], took[f.Path] = true, true
			if err := try(f.Path, p.undoMove(f, changeOf(r.Files, f.Was))); err != nil {
				return err
			}
		}
	}
	for _, f := range slices.Backward(r.Files) {
		if !took[f.Path] {
			if f.Before.Kind == kindFile && f.After.Kind == kindFile {
				f.Path = p.e.whereabouts(f.Path, o.seq)
			}
			if err := try(f.Path, p.undoFile(f)); err != nil {
				return err
			}
		}
	}
	if len(conflicts) > 0 {
		slices.Sort(conflicts)
		return fail(codeConflict, "operation %s was not undone: later changes of %v cannot be told apart from it; change these files by hand", o.id, conflicts).
			With(map[string]any{"operationId": o.id, "paths": conflicts})
	}
	for _, c := range r.Items {
		if err := p.undoItem(c); err != nil {
			return err
		}
	}
	return p.keepNeeded()
}

// whereabouts follows a file through the moves after an operation.
func (e *Engine) whereabouts(name string, seq int) string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for again := true; again; {
		again = false
		for _, o := range e.byPath[name] {
			if o.seq <= seq || o.status != Committed {
				continue
			}
			for _, f := range o.files {
				if f.Was == name {
					name, seq, again = f.Path, o.seq, true
				}
			}
			if again {
				break
			}
		}
	}
	return name
}

// current is what a path has as far as the plan goes, with its bytes if it is a document.
func (p *plan) current(name string) (Image, []byte, error) {
	if s := p.files[name]; s != nil {
		if s.after.Kind != kindFile || s.data != nil {
			return s.after, s.data, nil
		}
		data, err := p.body(s.after)
		return s.after, data, err
	}
	l, err := p.look(name)
	if err != nil {
		return Image{}, nil, err
	}
	return l.image, l.data, nil
}

// body reads the bytes of an image from the store.
func (p *plan) body(i Image) ([]byte, error) {
	if i.Body == nil {
		return nil, fail(codeGone, "the earlier bytes were never read, so they cannot be brought back")
	}
	data, err := p.e.store.Get(p.ctx, *i.Body, maxDocument)
	if errors.Is(err, cas.ErrNotFound) {
		return nil, fail(codeGone, "revision %s is not in the store any more", *i.Body)
	}
	return data, p.e.storeError(err)
}

// undoFile plans that a path is as it was before, keeping later changes of its text that can be told apart.
func (p *plan) undoFile(f FileChange) error {
	now, data, err := p.current(f.Path)
	if err != nil {
		return err
	}
	switch {
	case f.After.Kind == kindDirectory && f.Before.Kind == kindAbsent:
		if empty, err := p.emptied(f.Path); err != nil || !empty {
			return err // what came later keeps its folder
		}
		return p.setImage(f.Path, absent)
	case now.Equal(f.After):
		return p.setImage(f.Path, f.Before)
	case f.Before.Kind == kindDirectory:
		if now.Kind == kindDirectory {
			return nil
		}
		return conflict(f.Path, "", revisionText(now), "something else is there now")
	case f.Before.Kind != kindFile || f.After.Kind != kindFile || now.Kind != kindFile || data == nil:
		return conflict(f.Path, revisionText(f.After), revisionText(now), "it was changed since")
	}
	return p.undoText(f.Path, f.Before, f.After, now, data)
}

// undoText plans a text without a change of it, at a path.
func (p *plan) undoText(name string, before, after, now Image, data []byte) error {
	next, err := p.reverted(name, before, after, now, data)
	if err != nil {
		return err
	}
	return p.set(name, file(cas.Sum(next), int64(len(next)), now.Mode), next)
}

// reverted takes a change out of a text that was changed again since.
func (p *plan) reverted(name string, before, after, now Image, data []byte) ([]byte, error) {
	old, err := p.body(before)
	if err != nil {
		return nil, err
	}
	changed, err := p.body(after)
	if err != nil {
		return nil, err
	}
	was, err1 := text.Decode(old, "")
	did, err2 := text.Decode(changed, "")
	is, err3 := text.Decode(data, "")
	if err1 != nil || err2 != nil || err3 != nil {
		return nil, conflict(name, revisionText(after), revisionText(now), "it was changed since, and it is no text")
	}
	next, err := text.Revert(was.String(), did.String(), is.String())
	if err != nil {
		return nil, about(name, err)
	}
	return encodeText(located{at: catalog.Here(name)}, is, next)
}

// undoMove plans that a file is where it was and as it was, with what was written into it since.
func (p *plan) undoMove(f, source FileChange) error {
	now, data, err := p.current(f.Path)
	if err != nil {
		return err
	}
	if now.Kind != kindFile {
		return conflict(f.Path, revisionText(f.After), revisionText(now), "it is gone")
	}
	there, _, err := p.current(f.Was)
	if err != nil {
		return err
	}
	if !there.Equal(source.After) {
		return conflict(f.Was, "", revisionText(there), "something else is there now")
	}
	switch before := source.Before; {
	case now.Equal(f.After):
		err = p.setImage(f.Was, before)
	case before.Equal(f.After):
		err = p.set(f.Was, now, data)
	case data == nil:
		err = conflict(f.Path, revisionText(f.After), revisionText(now), "it was changed since")
	default:
		var next []byte
		if next, err = p.reverted(f.Path, before, f.After, now, data); err == nil {
			err = p.set(f.Was, file(cas.Sum(next), int64(len(next)), now.Mode), next)
		}
	}
	if err != nil {
		return err
	}
	p.files[f.Was].was = f.Path
	return p.setImage(f.Path, f.Before)
}

// changeOf is what an operation did to a path.
func changeOf(files []FileChange, name string) FileChange {
	for _, f := range files {
		if f.Path == name {
			return f
		}
	}
	return FileChange{Path: name, Before: absent, After: absent}
}

// setImage plans an earlier state of a path; its bytes are in the store.
func (p *plan) setImage(name string, i Image) error {
	if i.Kind == kindFile {
		if i.Body == nil || !p.e.store.Has(*i.Body) {
			return fail(codeGone, "the earlier bytes of %s are not in the store", name)
		}
		return p.set(name, i, nil)
	}
	l, err := p.look(name)
	if err != nil {
		return err
	}
	if i.Kind == kindDirectory {
		if err := p.parents(name); err != nil {
			return err
		}
	}
	p.files[name] = &fileStep{before: l, after: i}
	return nil
}

// emptied reports whether a folder has nothing in it as far as the plan goes.
func (p *plan) emptied(name string) (bool, error) {
	l, err := p.look(name)
	if err != nil || l.image.Kind != kindDirectory {
		return false, err
	}
	entries, err := p.e.root.ReadDir(name)
	if err != nil {
		return false, diskError("folder "+name, err)
	}
	left := map[string]bool{}
	for _, entry := range entries {
		left[path.Join(name, entry.Name())] = true
	}
	for other, s := range p.files {
		if path.Dir(other) == name {
			left[other] = s.after.Kind != kindAbsent
		}
	}
	for _, there := range left {
		if there {
			return false, nil
		}
	}
	return true, nil
}

// keepNeeded takes the removal of folders out of the plan that something needs after all.
func (p *plan) keepNeeded() error {
	for name, s := range p.files {
		if s.after.Kind != kindAbsent || s.before.image.Kind != kindDirectory {
			continue
		}
		if empty, err := p.emptied(name); err != nil {
			return err
		} else if !empty {
			delete(p.files, name)
		}
	}
	return nil
}

// undoItem plans the opposite of a change of a record, field by field.
func (p *plan) undoItem(c catalog.Change) error {
	now := p.item(c.After.ID)
	if now == nil {
		return nil
	}
	if c.Before == nil { // records are never erased
		state := catalog.Deleted
		if now.Role == catalog.Material {
			state = catalog.Detached
		}
		p.tombstone(now, state)
		return nil
	}
	next := *now
	ok := true
	revertField(&ok, &next.Location, c.Before.Location, c.After.Location, func(a, b catalog.Location) bool { return a == b })
	revertField(&ok, &next.Role, c.Before.Role, c.After.Role, func(a, b catalog.Role) bool { return a == b })
	revertField(&ok, &next.MediaType, c.Before.MediaType, c.After.MediaType, func(a, b string) bool { return a == b })
	revertField(&ok, &next.State, c.Before.State, c.After.State, func(a, b catalog.State) bool { return a == b })
	revertField(&ok, &next.Members, c.Before.Members, c.After.Members, func(a, b []catalog.Member) bool { return slices.EqualFunc(a, b, sameMember) })
	revertField(&ok, &next.Resources, c.Before.Resources, c.After.Resources, slices.Equal[[]catalog.Resource])
	revertField(&ok, &next.Origin, c.Before.Origin, c.After.Origin, func(a, b *catalog.Origin) bool { return a == b || a != nil && b != nil && *a == *b })
	if !ok {
		return conflict("content "+now.ID, c.After.Revision(), now.Revision(), "its place or composition was changed again since")
	}
	p.put(&next)
	return nil
}

// revertField takes a change out of one field: what was not changed stays as it is now.
func revertField[T any](ok *bool, now *T, before, after T, equal func(a, b T) bool) {
	switch {
	case equal(before, after):
	case equal(*now, after):
		*now = before
	case equal(*now, before):
	default:
		*ok = false
	}
}

func sameMember(a, b catalog.Member) bool {
	if a.Name != b.Name || a.Target.ID != b.Target.ID || (a.Target.Location == nil) != (b.Target.Location == nil) {
		return false
	}
	return a.Target.Location == nil || *a.Target.Location == *b.Target.Location
}

// RunUndone says what an undo of a whole run did.
type RunUndone struct {
	Operations []string // undone, newest first
	Result     Result
	Conflicts  []Conflict // operations that stay, and why
}

// Conflict is an operation that was not undone, and the paths for which it was not.
type Conflict struct {
	Operation string   `json:"operationId"`
	Paths     []string `json:"paths"`
}

type undoRunInput struct{ Run string }

// errNothingUndone ends the undo of a run of which everything stays.
var errNothingUndone = errors.New("nothing can be undone")

// UndoRun undoes what a run did and what was not undone since, newest first, as one operation. An operation that cannot be told apart from later
// changes stays, with those of the same run that it builds on; when all stay, there is no operation. Errors (codes): not_found when the run changed nothing that stands.
func (e *Engine) UndoRun(ctx context.Context, by By, run, undoID string) (RunUndone, error) {
	var out RunUndone
	r := request{id: undoID, method: "operation.undoRun", input: undoRunInput{run}, by: by}
	result, err := e.doWith(ctx, &r, func(p *plan) error {
		stays := map[string]bool{}
		for _, o := range e.ofRun(run) {
			if paths := standing(o, stays); len(paths) > 0 {
				out.Conflicts = append(out.Conflicts, Conflict{o.id, paths})
				continue
			}
			files, items, order := maps.Clone(p.files), maps.Clone(p.items), slices.Clone(p.order)
			err := p.undo(o)
			if err == nil {
				err = e.check(p.delta())
			}
			if err != nil {
				if codeOf(err) != codeConflict {
					return err
				}
				p.files, p.items, p.order = files, items, order
				c := Conflict{o.id, conflictPaths(err)}
				out.Conflicts = append(out.Conflicts, c)
				for _, f := range o.files {
					stays[f.Path] = true
				}
				continue
			}
			out.Operations = append(out.Operations, o.id)
		}
		switch {
		case len(out.Operations) > 0:
		case len(out.Conflicts) > 0:
			return errNothingUndone
		default:
			return fail(codeNotFound, "run %s changed nothing here that stands", run)
		}
		r.undoes = out.Operations
		return nil
	})
	if errors.Is(err, errNothingUndone) {
		out.Result = Result{OperationID: undoID, Changes: []Change{}, Contents: []Info{}, Repeated: true}
		return out, nil
	}
	if err == nil && out.Operations == nil { // answered before
		out.Operations = e.undoneBy(undoID)
	}
	out.Result = result
	return out, err
}

func conflictPaths(err error) []string {
	var known *Error
	if errors.As(err, &known) {
		if paths, ok := known.Detail("paths").([]string); ok {
			return paths
		}
		for _, key := range []string{"path", "location"} {
			if name, ok := known.Detail(key).(string); ok {
				return []string{name}
			}
		}
	}
	return []string{}
}

func standing(o *operation, stays map[string]bool) (out []string) {
	for _, f := range o.files {
		if stays[f.Path] {
			out = append(out, f.Path)
		}
	}
	return out
}

// ofRun lists the operations of a run that stand, newest first.
func (e *Engine) ofRun(run string) (out []*operation) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, o := range slices.Backward(e.order) {
		if o.by.Run == run && o.by.Actor == Agent && o.status == Committed && (o.undoneBy == "" || e.undone(o.undoneBy)) {
			out = append(out, o)
		}
	}
	return out
}

func (e *Engine) undoneBy(id string) []string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if o := e.operations[id]; o != nil {
		return slices.Clone(o.undoes)
	}
	return nil
}
