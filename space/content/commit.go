package content

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/space/catalog"
	"github.com/repa-app/repa/space/internal/fault"
)

// parallel is how many files of one operation are written at once: a sync waits for the disk, not for a core.
const parallel = 8

// do carries out an operation: it answers what was done before, lets build plan, and commits. Cancellation counts until the commit begins.
func (e *Engine) do(ctx context.Context, r request, build func(*plan) error) (Result, error) {
	return e.doWith(ctx, &r, build)
}

// doWith is do for a request whose build says more of it.
func (e *Engine) doWith(ctx context.Context, r *request, build func(*plan) error) (Result, error) {
	if err := checkID("operation id", r.id); err != nil {
		return Result{}, err
	}
	hash := catalog.Digest("operation "+r.method, r.input)
	e.change.Lock()
	defer e.change.Unlock()
	if done, result, err := e.repeated(r.id, hash); done {
		return result, err
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	e.mu.RLock()
	broken := e.broken
	e.mu.RUnlock()
	if broken != nil {
		return Result{}, broken
	}
	p := e.newPlan(ctx)
	defer p.close()
	if err := build(p); err != nil {
		return Result{}, err
	}
	delta := p.delta()
	if err := e.check(delta); err != nil {
		return Result{}, err
	}
	rec := record{ID: r.id, Hash: hash, Method: r.method, Time: e.now().UnixMilli(), By: &r.by, Files: p.steps(), Items: delta, Undoes: r.undoes}
	result := e.result(p, rec)
	rec.Result = &result
	return result, e.commit(context.WithoutCancel(ctx), p, rec)
}

// repeated answers an operation id that was used before.
func (e *Engine) repeated(id, hash string) (bool, Result, error) {
	e.mu.RLock()
	o, pruned := e.operations[id], e.pruned[id]
	e.mu.RUnlock()
	if o == nil && pruned == "" {
		return false, Result{}, nil
	}
	if o != nil && o.hash != hash || o == nil && pruned != hash {
		return true, Result{}, fail(codeIDConflict, "operation id %s was used before for another change; use a new id", id)
	}
	if o == nil {
		return true, Result{}, fail(codePruned, "operation %s was done, and its history was pruned since", id)
	}
	switch o.status {
	case Committed:
		rec, err := e.stored(o)
		if err != nil {
			return true, Result{}, err
		}
		result := *rec.Result
		result.Repeated = true
		return true, result, nil
	case RolledBack, Reconciled:
		code := o.code
		if code == "" {
			code = codeFailed
		}
		return true, Result{}, fail(code, "operation %s failed before and is not tried again: %s; use a new id", id, o.err)
	}
	return true, Result{}, fail(codeRecovery, "operation %s was interrupted and needs recovery", id).With(map[string]any{"operationId": id, "conflicts": o.conflicts})
}

// stored reads the record of an operation from the journal.
func (e *Engine) stored(o *operation) (record, error) {
	r, err := e.journal.ReadAt(o.at)
	if err != nil {
		return record{}, fault.Wrap(codeInvalid, fmt.Sprintf("the record of operation %s cannot be read: %v", o.id, err), err)
	}
	return decode(r)
}

// check says whether the catalog takes a change.
func (e *Engine) check(delta []catalog.Change) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return catalogError(e.catalog.Check(delta))
}

func catalogError(err error) error {
	if err == nil {
		return nil
	}
	var taken *catalog.TakenError
	if errors.As(err, &taken) {
		return fault.Wrap(codeConflict, err.Error(), err).With(map[string]any{"ids": taken.IDs[:], "location": taken.Location.Path})
	}
	var missing *catalog.MissingError
	if errors.As(err, &missing) {
		return fault.Wrap(codeNotFound, err.Error(), err)
	}
	return fault.Wrap(codeConflict, err.Error(), err)
}

// result tells what a record will have done.
func (e *Engine) result(p *plan, r record) Result {
	out := Result{OperationID: r.ID, Changes: []Change{}, Contents: []Info{}}
	told := map[string]bool{}
	tell := func(i Info) {
		if key := i.key(); !told[key] {
			told[key] = true
			out.Contents = append(out.Contents, i)
		}
	}
	for _, f := range r.Files {
		out.Changes = append(out.Changes, Change{f.Path, f.Before.Revision(), f.After.Revision()})
	}
	for _, c := range r.Items {
		tell(p.info(c.After, c.After.Location))
	}
	for _, f := range r.Files {
		l := catalog.Here(f.Path)
		tell(p.info(p.itemAt(l), l))
	}
	for _, name := range p.notes {
		l := catalog.Here(name)
		tell(p.info(p.itemAt(l), l))
	}
	slices.SortStableFunc(out.Changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// commit makes an operation durable. Nothing but its end stops it.
func (e *Engine) commit(ctx context.Context, p *plan, r record) error {
	if err := e.keepResources(ctx, p, r); err != nil {
		return err
	}
	if len(r.Files) == 0 {
		return e.commitRecord(ctx, r)
	}
	for i := range r.Files {
		f := &r.Files[i]
		if f.After.Kind == kindFile && f.From == "" {
			f.Temp = fmt.Sprintf("%s-%d", r.ID, i)
		}
	}
	o, err := e.prepare(ctx, p, r)
	if err != nil {
		return err
	}
	if err := e.apply(ctx, p, r); err != nil {
		return e.revert(ctx, o, err)
	}
	e.finish(ctx, p, o, r)
	return nil
}

// commitRecord commits an operation that changes no file.
func (e *Engine) commitRecord(ctx context.Context, r record) error {
	prepared, err := encode(typePrepared, r)
	if err != nil {
		return err
	}
	confirmed, err := encode(typeConfirmed, record{ID: r.ID})
	if err != nil {
		return err
	}
	at, err := e.journal.AppendAt(ctx, prepared, confirmed)
	if err != nil {
		return e.journalFailed(err)
	}
	o := newOperation(r, at)
	e.mu.Lock()
	e.enter(o)
	e.catalog.Apply(r.Items)
	e.settled(o, Committed, record{})
	e.mu.Unlock()
	e.holdForDocuments(ctx, r.Items)
	return nil
}

// journalFailed notes that the journal takes no more records: what reached the disk is unknown until it is opened again.
func (e *Engine) journalFailed(err error) error {
	out := fault.Wrap(codeStorage, fmt.Sprintf("the journal of %s cannot be written: %v; free the disk, then open the space again", e.path, fault.Reason(err)), err)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.broken = out
	return out
}

// prepare makes bodies, the prepare record and the temporary files durable, at the same time.
func (e *Engine) prepare(ctx context.Context, p *plan, r record) (*operation, error) {
	prepared, err := encode(typePrepared, r)
	if err != nil {
		return nil, err
	}
	o := newOperation(r, prepared.At)
	o.pending = &r
	e.mu.Lock()
	e.enter(o)
	e.mu.Unlock()
	var journalErr error
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return e.keepBodies(gctx, p, r) })
	g.Go(func() error {
		o.at, journalErr = e.journal.AppendAt(ctx, prepared) // not gctx: it is known whether it was written
		return journalErr
	})
	g.Go(func() error { return e.writeTemps(gctx, p, r.Files) })
	if err := g.Wait(); err != nil {
		if journalErr != nil {
			e.removeTemps(r.Files)
			e.mu.Lock()
			e.withdraw(o)
			e.mu.Unlock()
			return nil, e.journalFailed(journalErr)
		}
		return nil, e.revert(ctx, o, diskError("operation "+r.ID, err))
	}
	return o, nil
}

// withdraw takes an operation out whose record was not written. mu is held.
func (e *Engine) withdraw(o *operation) {
	e.forget(o.id)
	delete(e.pruned, o.id)
	delete(e.unsettled, o.id)
}

// keepBodies puts the bytes before and after the change into the store, held by the operation. Those of large files are there already.
func (e *Engine) keepBodies(ctx context.Context, p *plan, r record) error {
	b := e.store.Batch()
	defer b.Discard()
	var rest []cas.ID
	for _, f := range r.Files {
		s := p.files[f.Path]
		for _, side := range []struct {
			image Image
			data  []byte
		}{{f.Before, s.before.data}, {f.After, s.data}} {
			switch {
			case side.image.Body == nil:
			case side.data == nil && side.image.Size > 0:
				rest = append(rest, *side.image.Body)
			default:
				if _, err := b.Put(ctx, side.data); err != nil {
					return err
				}
			}
		}
	}
	if err := b.CommitHeld(ctx, owner(r.ID)); err != nil {
		return err
	}
	if len(rest) == 0 {
		return nil
	}
	return e.store.Hold(ctx, owner(r.ID), rest...)
}

// writeTemps writes the files that are to become new contents. They are made one after the other, because making files in one folder at the same time
// is slower, and synced at the same time.
func (e *Engine) writeTemps(ctx context.Context, p *plan, files []FileChange) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	var made []vfs.File
	var err error
	for _, f := range files {
		if f.Temp == "" {
			continue
		}
		var out vfs.File
		if out, err = e.writeTemp(gctx, p.files[f.Path], f); err != nil {
			break
		}
		made = append(made, out)
		if len(made) == openTemps { // as many files as may be open at once
			err = syncAndClose(g, made)
			g, _ = errgroup.WithContext(ctx)
			g.SetLimit(parallel)
			if made = nil; err != nil {
				break
			}
		}
	}
	return errors.Join(err, syncAndClose(g, made))
}

// openTemps bounds the files that one operation has open: a quarter of what a process may have as a rule.
const openTemps = 256

func syncAndClose(g *errgroup.Group, files []vfs.File) error {
	for _, f := range files {
		g.Go(func() error { return diskError("a new file", errors.Join(f.Sync(), f.Close())) })
	}
	return g.Wait()
}

// writeTemp writes one file and leaves it open, to be synced.
func (e *Engine) writeTemp(ctx context.Context, s *fileStep, f FileChange) (vfs.File, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out, err := e.temp.OpenFile(f.Temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.After.Mode)
	if err != nil {
		return nil, diskError(f.Path, err)
	}
	if s.data != nil || f.After.Size == 0 {
		_, err = out.Write(s.data)
	} else {
		err = e.copyOut(ctx, *f.After.Body, out)
	}
	if err != nil {
		return nil, diskError(f.Path, errors.Join(err, out.Close()))
	}
	return out, nil
}

func (e *Engine) copyOut(ctx context.Context, id cas.ID, out vfs.File) error {
	o, err := e.store.Open(ctx, id)
	if err != nil {
		return err
	}
	defer o.Close()
	_, err = o.WriteTo(out)
	return err
}

// removeTemps removes what is left of temporary files; what cannot be removed goes at the next open.
func (e *Engine) removeTemps(files []FileChange) {
	for _, f := range files {
		if f.Temp == "" {
			continue
		}
		if err := e.temp.Remove(f.Temp); err != nil && !errors.Is(err, os.ErrNotExist) {
			e.log.Warn("a temporary file stays", "file", f.Temp, "error", err)
		}
	}
}

// apply makes the files as the record says, each only if it still is as the plan saw it, and the names durable.
func (e *Engine) apply(ctx context.Context, p *plan, r record) error {
	dirs := map[string]bool{}
	moved := map[string]bool{}
	for _, f := range r.Files {
		moved[f.From] = true
	}
	for _, f := range r.Files {
		if f.After.Kind == kindAbsent && moved[f.Path] {
			continue // renamed away
		}
		ok, err := e.matches(ctx, f.Path, f.Before, p.files[f.Path].before)
		if err == nil && ok && f.From != "" {
			ok, err = e.matches(ctx, f.From, f.After, p.files[f.From].before)
		}
		if err != nil {
			return err
		}
		if !ok {
			return conflict(f.Path, revisionText(f.Before), "", "another program changed it at this moment; look at it and try again")
		}
		if err := e.applyOne(f); err != nil {
			return diskError(f.Path, err)
		}
		dirs[path.Dir(f.Path)] = true
		if f.From != "" {
			dirs[path.Dir(f.From)] = true
		}
	}
	return e.syncDirs(ctx, dirs)
}

func revisionText(i Image) string {
	if i.Body == nil {
		return ""
	}
	return i.Body.String()
}

// applyOne makes one path as its change says.
func (e *Engine) applyOne(f FileChange) error {
	folder, base, err := e.folder(f.Path)
	if err != nil {
		return err
	}
	defer folder.Close()
	switch {
	case f.After.Kind == kindDirectory:
		return folder.Mkdir(base, f.After.Mode)
	case f.After.Kind == kindAbsent:
		return folder.Remove(base)
	case f.From != "":
		source, name, err := e.folder(f.From)
		if err != nil {
			return err
		}
		defer source.Close()
		return source.RenameTo(name, folder, base)
	}
	return e.temp.RenameTo(f.Temp, folder, base)
}

// syncDirs makes the names in folders durable, at the same time. A folder that is gone again needs nothing.
func (e *Engine) syncDirs(ctx context.Context, dirs map[string]bool) error {
	g, _ := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for dir := range maps.Keys(dirs) {
		g.Go(func() error {
			if err := e.root.SyncDir(dir); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
				return diskError("folder "+dir, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// finish makes an operation part of the state. Its confirmation rides with the next record.
func (e *Engine) finish(ctx context.Context, p *plan, o *operation, r record) {
	e.mu.Lock()
	e.catalog.Apply(r.Items)
	e.settled(o, Committed, record{})
	e.mu.Unlock()
	confirmed, err := encode(typeConfirmed, record{ID: o.id})
	if err == nil {
		err = e.journal.Defer(confirmed)
	}
	if err != nil {
		e.log.Warn("an operation is not confirmed; the next open will", "operation", o.id, "error", err)
	}
	e.holdForDocuments(ctx, r.Items)
	e.keepLate(ctx, p)
}

// keepLate looks at the old files once more: what another program wrote to one between our look and our rename is kept as an observation.
func (e *Engine) keepLate(ctx context.Context, p *plan) {
	for name, s := range p.files {
		l := s.before
		if l.file == nil {
			continue
		}
		now, err := l.file.Stat()
		if err == nil && unchanged(l.info, now) {
			continue
		}
		if err == nil {
			err = e.keepOverwritten(ctx, name, l)
		}
		if err != nil {
			e.log.Warn("what another program wrote during a change could not be kept", "file", name, "error", err)
		}
	}
}
