package content

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/space/internal/fault"
)

// where says how far a path got.
type where int

const (
	atBefore where = iota
	atAfter
	elsewhere // somebody else changed it, or it cannot be read
)

// place says how far a path of an operation got.
func (e *Engine) place(ctx context.Context, f FileChange) where {
	for _, side := range []struct {
		image Image
		is    where
	}{{f.After, atAfter}, {f.Before, atBefore}} {
		if ok, err := e.matches(ctx, f.Path, side.image, nil); err == nil && ok {
			return side.is
		}
	}
	return elsewhere
}

// recover settles an operation that a crash interrupted. Its answer may have been given: the confirmation rides with the next record. So it is done when
// no file is as before, whatever others made of some since; it is completed when some files are as it wanted them; it is taken back when none is; and
// when somebody changed a file while others are as before, nothing is touched and the operation needs recovery.
func (e *Engine) recover(ctx context.Context, o *operation) error {
	files := o.pending.Files
	places := map[where]int{}
	for _, f := range files {
		places[e.place(ctx, f)]++
	}
	prepared, err := e.holdsBodies(ctx, o)
	if err != nil {
		return err
	}
	const early, broken = "the program ended before the change began", "the program ended in the middle of the change"
	switch {
	case !prepared: // its preparation did not end, so no file was touched
		return e.settle(ctx, o, typeRolledBack, RolledBack, record{ID: o.id, Code: codeFailed, Error: early})
	case places[atBefore] == 0:
	case places[elsewhere] > 0 || places[atAfter] == 0:
		return e.rollBack(ctx, o, codeFailed, broken)
	default:
		if err := e.complete(ctx, o); err != nil {
			e.log.Warn("an interrupted operation cannot be completed and is taken back", "operation", o.id, "error", err)
			return e.rollBack(ctx, o, codeFailed, broken)
		}
	}
	dirs := map[string]bool{}
	for _, f := range files {
		dirs[path.Dir(f.Path)] = true
	}
	if err := e.syncDirs(ctx, dirs); err != nil {
		return err
	}
	return e.settle(ctx, o, typeConfirmed, Committed, record{ID: o.id})
}

// complete makes the files of an operation that are still as before as it wanted them.
func (e *Engine) complete(ctx context.Context, o *operation) error {
	for _, f := range o.pending.Files {
		if e.place(ctx, f) != atBefore {
			continue
		}
		if err := e.restore(ctx, o.id, f.Path, f.Before, f.After); err != nil {
			return err
		}
	}
	return nil
}

// holdsBodies reports whether the bytes before and after an operation are in the store for it, and sees to it that they stay: what the store has read
// back after a crash need not be on the disk.
func (e *Engine) holdsBodies(ctx context.Context, o *operation) (bool, error) {
	need, held := bodies(o.pending.Files), map[cas.ID]bool{}
	for _, id := range e.store.Held(owner(o.id)) {
		held[id] = true
	}
	for _, id := range need {
		if !held[id] {
			return false, nil
		}
	}
	if err := e.store.Hold(ctx, owner(o.id), need...); err != nil && !errors.Is(err, cas.ErrReadOnly) {
		return false, e.storeError(err)
	}
	return true, nil
}

// revert takes an operation back that failed, and returns what its caller is to know.
func (e *Engine) revert(ctx context.Context, o *operation, cause error) error {
	e.removeTemps(o.pending.Files)
	code := codeOf(cause)
	if code == "" {
		code = codeFailed
	}
	if err := e.rollBack(ctx, o, code, cause.Error()); err != nil {
		return err
	}
	if o.status == NeedsRecovery {
		return fault.Wrap(codeRecovery, fmt.Sprintf("%v. A part of the change stays, because other programs changed its files meanwhile: %v. "+
			"Look at them, then settle operation %s", cause, o.conflicts, o.id), cause).With(map[string]any{"operationId": o.id, "conflicts": o.conflicts})
	}
	var known *Error
	if errors.As(cause, &known) {
		return cause
	}
	return fault.Wrap(code, cause.Error(), cause)
}

// rollBack makes every file of an operation as it was before, if each still is as it was before or as the operation wanted it. Otherwise
// nothing is touched: the operation needs recovery.
func (e *Engine) rollBack(ctx context.Context, o *operation, code, why string) error {
	files := o.pending.Files
	var conflicts []string
	at := make([]where, len(files))
	for i, f := range files {
		if at[i] = e.place(ctx, f); at[i] == elsewhere {
			conflicts = append(conflicts, f.Path)
		}
	}
	if len(conflicts) == 0 {
		dirs := map[string]bool{}
		for i := len(files) - 1; i >= 0; i-- {
			f := files[i]
			if at[i] == atBefore {
				continue
			}
			if err := e.restore(ctx, o.id, f.Path, f.After, f.Before); err != nil {
				e.log.Warn("a file cannot be put back", "operation", o.id, "file", f.Path, "error", err)
				conflicts = append(conflicts, f.Path)
			}
			dirs[path.Dir(f.Path)] = true
		}
		if err := e.syncDirs(ctx, dirs); err != nil {
			return err
		}
	}
	if len(conflicts) > 0 {
		return e.settle(ctx, o, typeConflict, NeedsRecovery, record{ID: o.id, Code: code, Error: why, Conflicts: conflicts})
	}
	return e.settle(ctx, o, typeRolledBack, RolledBack, record{ID: o.id, Code: code, Error: why})
}

// restore makes a path, which is as now says, as an image says. The name is not durable yet.
func (e *Engine) restore(ctx context.Context, id, name string, now, want Image) (err error) {
	folder, base, err := e.folder(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	switch want.Kind {
	case kindAbsent:
		return folder.Remove(base)
	case kindDirectory:
		return folder.Mkdir(base, want.Mode)
	}
	if now.Kind == kindDirectory {
		return fail(codeConflict, "%s is a folder now", name)
	}
	temp := id + "-back"
	out, err := e.temp.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, want.Mode)
	if err != nil {
		return err
	}
	err = e.copyOut(ctx, *want.Body, out)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = e.temp.RenameTo(temp, folder, base)
	}
	if err != nil {
		return errors.Join(err, e.temp.Remove(temp))
	}
	return nil
}

// settle notes durably how an operation ended.
func (e *Engine) settle(ctx context.Context, o *operation, typ uint8, status Status, r record) error {
	rec, err := encode(typ, r)
	if err == nil {
		err = e.journal.Append(ctx, rec)
	}
	if err != nil {
		return e.journalFailed(err)
	}
	e.mu.Lock()
	if status == Committed {
		e.catalog.Apply(o.pending.Items)
	}
	e.settled(o, status, r)
	e.mu.Unlock()
	if status == RolledBack {
		if err := e.store.Release(ctx, owner(o.id)); err != nil && !errors.Is(err, cas.ErrReadOnly) {
			e.log.Warn("what an operation held is not released; the next open does it", "operation", o.id, "error", err)
		}
	}
	return nil
}
