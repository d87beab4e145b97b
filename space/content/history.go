package content

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/space/catalog"
)

// Operation is what there is to know of one.
type Operation struct {
	ID        string
	Status    Status
	Time      int64 // ms since 1970
	By        By
	Method    string
	Undoes    []string
	UndoneBy  string
	Paths     []string
	Conflicts []string
	Code      string // why it failed
	Error     string
	Result    *Result // of a committed one; only Operation has it
}

// view copies an operation. mu is held.
func (o *operation) view() Operation {
	out := Operation{ID: o.id, Status: o.status, Time: o.time, By: o.by, Method: o.method, Undoes: o.undoes, UndoneBy: o.undoneBy,
		Conflicts: o.conflicts, Code: o.code, Error: o.err, Paths: []string{}}
	for _, f := range o.files {
		out.Paths = append(out.Paths, f.Path)
	}
	slices.Sort(out.Paths)
	return out
}

// Operation returns what is known of an operation; pruned tells that only its id is. Errors (codes): not_found, invalid_storage when its record
// cannot be read.
func (e *Engine) Operation(id string) (o Operation, pruned bool, err error) {
	e.mu.RLock()
	found := e.operations[id]
	pruned = found == nil && e.pruned[id] != ""
	if found != nil {
		o = found.view()
	}
	e.mu.RUnlock()
	switch {
	case found == nil && !pruned:
		return o, false, fail(codeNotFound, "there is no operation %s in this space", id)
	case found == nil || o.Status != Committed || o.Method == methodObserved:
		return o, pruned, nil
	}
	r, err := e.stored(found)
	o.Result = r.Result
	return o, false, err
}

// Filter narrows a list of operations. Zero members do not.
type Filter struct {
	Path, Item, Session, Run string
	After, Before            int64 // ms since 1970, exclusive
	Limit                    int   // 0: 100
	Cursor                   string
}

const defaultPage = 100

// Operations lists operations, newest first, and says where the next page begins ("": this was the last). Errors (codes): invalid_cursor for one
// of no list.
func (e *Engine) Operations(f Filter) (out []Operation, cursor string, err error) {
	upTo, err := parseCursor(f.Cursor)
	if err != nil {
		return nil, "", err
	}
	limit := f.Limit
	if limit <= 0 {
		limit = defaultPage
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	list := e.order
	switch {
	case f.Item != "":
		list = e.byItem[f.Item]
	case f.Path != "":
		list = e.byPath[f.Path]
	}
	out = []Operation{}
	for _, o := range slices.Backward(list) {
		switch {
		case upTo >= 0 && o.seq >= upTo, f.Path != "" && f.Item != "" && !o.touches(f.Path), f.Session != "" && o.by.Session != f.Session,
			f.Run != "" && o.by.Run != f.Run, f.After > 0 && o.time <= f.After, f.Before > 0 && o.time >= f.Before:
			continue
		}
		if len(out) == limit {
			return out, strconv.Itoa(e.operations[out[limit-1].ID].seq), nil
		}
		out = append(out, o.view())
	}
	return out, "", nil
}

func parseCursor(text string) (int, error) {
	if text == "" {
		return -1, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fail(codeCursor, "cursor %q belongs to no list; begin again without one", text)
	}
	return n, nil
}

// Revision is one state of a document.
type Revision struct {
	Revision  *string // of the body; nil: the file was gone, or was not read
	Size      int64
	Path      string
	Time      int64 // ms since 1970: when it was made, or first seen
	By        By
	Cause     string // the method, or "observed"
	Operation string // "" when it was only seen as what an operation replaced
	Available bool   // its bytes are in the store
}

// History is the revisions of a file or item, newest first, through all its moves.
type History struct {
	Item      string // "" for a plain file
	Path      string
	Revisions []Revision
	Cursor    string // where the next page begins; "": this was the last
}

// History lists the revisions of a target. Limit 0 is 100. Errors (codes): not_found when there is neither a file nor any history,
// permission_required, invalid_cursor.
func (e *Engine) History(ctx context.Context, t Target, limit int, cursor string) (History, error) {
	upTo, err := parseCursor(cursor)
	if err != nil {
		return History{}, err
	}
	if limit <= 0 {
		limit = defaultPage
	}
	l, err := e.locate(t)
	if err != nil {
		return History{}, err
	}
	out := History{Path: l.at.Path, Revisions: []Revision{}}
	if l.item != nil {
		out.Item = l.item.ID
	}
	e.mu.RLock()
	steps := e.trail(l.at.Path)
	e.mu.RUnlock()
	for i, s := range steps {
		if upTo >= 0 && s.o.seq >= upTo {
			continue
		}
		if len(out.Revisions) >= limit {
			out.Cursor = strconv.Itoa(steps[i-1].o.seq)
			return out, ctx.Err()
		}
		r := e.revisionOf(s.file.After, s.file.Path, s.o)
		r.By, r.Cause, r.Operation = s.o.by, s.o.method, s.o.id
		out.Revisions = append(out.Revisions, r)
		// What an operation found and nobody had noted before was made by another program.
		older := absent
		if i+1 < len(steps) {
			older = steps[i+1].file.After
		}
		if b := s.file.Before; b.Body != nil && !b.Equal(older) && !s.moved {
			r := e.revisionOf(b, s.file.Path, s.o)
			r.By, r.Cause = By{Actor: Outside}, methodObserved
			out.Revisions = append(out.Revisions, r)
		}
	}
	if len(steps) == 0 && l.item == nil {
		if seen, err := e.stat(l.at.Path); err != nil || seen.image.Kind == kindAbsent {
			return out, errors.Join(err, fail(codeNotFound, "%s does not exist and has no history", l))
		}
	}
	return out, ctx.Err()
}

func (e *Engine) revisionOf(i Image, name string, o *operation) Revision {
	return Revision{Revision: i.Revision(), Size: i.Size, Path: name, Time: o.time, Available: i.Body != nil && e.store.Has(*i.Body)}
}

// step is an operation's change of the file that a history is about.
type step struct {
	o     *operation
	file  FileChange
	moved bool // the file came from another path, where its history goes on
}

// trail follows a path back through its operations, newest first, and on to where it was moved from. mu is held.
func (e *Engine) trail(name string) (out []step) {
	upTo := e.next
	for name != "" {
		here := name
		name = ""
		for _, o := range slices.Backward(e.byPath[here]) {
			if o.seq >= upTo || o.status != Committed && o.status != Reconciled {
				continue
			}
			s := step{o: o, file: change(o, here)}
			s.moved = s.file.Was != ""
			out = append(out, s)
			if s.moved {
				name, upTo = s.file.Was, o.seq
				break
			}
		}
	}
	return out
}

func change(o *operation, name string) FileChange {
	for _, f := range o.files {
		if f.Path == name {
			return f
		}
	}
	return FileChange{Path: name}
}

// Revision opens a revision of a file; the caller closes it. Errors (codes): invalid_input, revision_unavailable.
func (e *Engine) Revision(ctx context.Context, revision string) (*cas.Object, error) {
	id, err := cas.ParseID(revision)
	if err != nil {
		return nil, fail(codeInput, "revision %q: want 64 hexadecimal digits", revision)
	}
	o, err := e.store.Open(ctx, id)
	if errors.Is(err, cas.ErrNotFound) {
		return nil, fail(codeGone, "revision %s is not kept", revision)
	}
	return o, e.storeError(err)
}

// Prune drops the history of operations: they can neither be undone nor shown, and their ids are never executed again. Errors (codes): not_found,
// recovery_required for one that is not settled; then none is dropped.
func (e *Engine) Prune(ctx context.Context, ids ...string) ([]string, error) {
	e.change.Lock()
	defer e.change.Unlock()
	out := []string{}
	e.mu.RLock()
	for _, id := range ids {
		o := e.operations[id]
		switch {
		case o != nil && e.unsettled[id] != nil:
			e.mu.RUnlock()
			return nil, fail(codeRecovery, "operation %s needs recovery; settle it before its history is dropped", id)
		case o != nil && !slices.Contains(out, id):
			out = append(out, id)
		}
	}
	e.mu.RUnlock()
	if len(out) == 0 {
		return out, nil
	}
	rec, err := encode(typePruned, record{IDs: out})
	if err == nil {
		err = e.journal.Append(ctx, rec)
	}
	if err != nil {
		return nil, e.journalFailed(err)
	}
	e.mu.Lock()
	e.forget(out...)
	e.mu.Unlock()
	for _, id := range out { // after the fact is durable; what a crash leaves is released at the next open
		if err := e.store.Release(ctx, owner(id)); err != nil {
			return out, e.storeError(err)
		}
	}
	return out, nil
}

// Prunable lists the settled operations that are older than before (ms since 1970; 0: any) and, when a target is given, touch it, oldest first, with
// the bytes that only they hold. KeepBytes > 0 leaves out the newest whose bodies sum up to no more than that.
func (e *Engine) Prunable(before int64, keepBytes int64, t *Target) (ids []string, bytes int64, err error) {
	var at *catalog.Location
	if t != nil {
		l, err := e.locate(*t)
		if err != nil {
			return nil, 0, err
		}
		at = &l.at
	}
	e.mu.RLock()
	kept := int64(0)
	going := map[string]bool{}
	var held []cas.ID
	for _, o := range slices.Backward(e.order) {
		if e.unsettled[o.id] != nil || before > 0 && o.time >= before || at != nil && !o.touches(at.Path) {
			continue
		}
		size := int64(0)
		for _, f := range o.files {
			size += f.Before.Size + f.After.Size
		}
		if kept += size; keepBytes > 0 && kept <= keepBytes {
			continue
		}
		ids = append(ids, o.id)
		going[owner(o.id).String()] = true
		held = append(held, bodies(o.files)...)
	}
	e.mu.RUnlock()
	slices.Reverse(ids)
	seen := map[cas.ID]bool{}
	for _, id := range held {
		if seen[id] {
			continue
		}
		seen[id] = true
		alone := true
		for _, o := range e.store.Owners(id) {
			alone = alone && going[o.String()]
		}
		if info, err := e.store.Stat(id); err == nil && alone {
			bytes += info.Stored
		}
	}
	return ids, bytes, nil
}
