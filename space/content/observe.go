package content

import (
	"context"
	"fmt"
	"io"
	"math"
	"path"
	"slices"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/space/catalog"
	"github.com/repa-app/repa/space/internal/fault"
	"github.com/repa-app/repa/space/text"
)

// lastKnown is what the history says of a path, and whether it says anything.
func (e *Engine) lastKnown(name string) (Image, bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	list := e.byPath[name]
	for i := len(list) - 1; i >= 0; i-- {
		if o := list[i]; o.status == Committed || o.status == Reconciled {
			for _, f := range o.files {
				if f.Path == name {
					return f.After, true
				}
			}
		}
	}
	return Image{}, false
}

// Remembered are those of some paths that have a history.
func (e *Engine) Remembered(paths []string) (out []string) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, name := range paths {
		if len(e.byPath[name]) > 0 {
			out = append(out, name)
		}
	}
	return out
}

// noted keeps the bytes of a file that was read for somebody, and writes down that somebody outside changed it since the history last knew it.
// The bytes stay for the store's grace, and with a history as long as that does.
func (e *Engine) noted(ctx context.Context, l *look) error {
	if l.data != nil {
		if _, err := e.store.Put(ctx, l.data); err != nil {
			return e.storeError(err)
		}
	}
	if known, ok := e.lastKnown(l.path); !ok || known.Equal(l.image) {
		return nil
	}
	e.change.Lock()
	defer e.change.Unlock()
	return e.observed(ctx, l)
}

func (e *Engine) storeError(err error) error {
	if err == nil || codeOf(err) != "" {
		return err
	}
	return fault.Wrap(codeStorage, fmt.Sprintf("the store of %s: %v; check the disk and try again", e.path, err), err)
}

// observed writes down that a path is not as the history last knew it. change is held.
func (e *Engine) observed(ctx context.Context, looks ...*look) error {
	now := e.now().UnixMilli()
	r := record{ID: e.newID(), Time: now, Method: methodObserved}
	b := e.store.Batch()
	defer b.Discard()
	var stored []cas.ID
	for _, l := range looks {
		known, ok := e.lastKnown(l.path)
		if !ok {
			known = Image{Kind: kindFile} // there, but its bytes were never read
			if l.image.Kind != kindFile {
				known = absent
			}
		}
		if ok && known.Equal(l.image) {
			continue
		}
		r.Files = append(r.Files, FileChange{Path: l.path, Before: known, After: l.image, Was: l.was})
		switch {
		case l.image.Body == nil:
		case l.data != nil:
			if _, err := b.Put(ctx, l.data); err != nil {
				return e.storeError(err)
			}
		default:
			stored = append(stored, *l.image.Body)
		}
	}
	if len(r.Files) == 0 {
		return nil
	}
	if err := b.CommitHeld(ctx, owner(r.ID)); err != nil {
		return e.storeError(err)
	}
	if len(stored) > 0 {
		if err := e.store.Hold(ctx, owner(r.ID), stored...); err != nil {
			return e.storeError(err)
		}
	}
	return e.enterObserved(ctx, r, false)
}

// enterObserved makes an observation part of the history. An overwritten one came before the newest operation of its path, which stays the last.
func (e *Engine) enterObserved(ctx context.Context, r record, overwritten bool) error {
	rec, err := encode(typeObserved, r)
	if err != nil {
		return err
	}
	at, err := e.journal.AppendAt(ctx, rec)
	if err != nil {
		return e.journalFailed(err)
	}
	o := newOperation(r, at)
	o.status = Committed
	e.mu.Lock()
	defer e.mu.Unlock()
	e.enter(o)
	if !overwritten {
		return nil
	}
	if list := e.byPath[r.Files[0].Path]; len(list) > 1 {
		n := len(list)
		list[n-1], list[n-2] = list[n-2], list[n-1]
		list[n-1].seq, list[n-2].seq = list[n-2].seq, list[n-1].seq
	}
	return nil
}

// methodObserved is the cause of what was seen, not done.
const methodObserved = "observed"

// keepOverwritten keeps what another program wrote into a file just before it was replaced. change is held.
func (e *Engine) keepOverwritten(ctx context.Context, name string, l *look) error {
	body, err := e.store.PutReader(ctx, io.NewSectionReader(l.file, 0, math.MaxInt64))
	if err != nil {
		return err
	}
	if l.image.Body != nil && body == *l.image.Body {
		return nil
	}
	r := record{ID: e.newID(), Time: e.now().UnixMilli(), Method: methodObserved, Files: []FileChange{{Path: name, Before: l.image, After: file(body, l.info.Size(), l.info.Mode())}}}
	if err := e.store.Hold(ctx, owner(r.ID), body); err != nil {
		return err
	}
	return e.enterObserved(ctx, r, true)
}

// Observed says what Observe found.
type Observed struct {
	Changed  []string // paths that are not as the history last knew them
	Relinked []Result // items whose file was found under another name
}

// Observe looks at paths that another program may have changed and writes down what is new. Of at most limit bytes, texts are read and kept, and
// whatever has a history, as long as that takes no more than a tenth of the free disk; of others only the size is noted. When the file of an item is gone and exactly one of the paths has its bytes, the item follows. Errors: of
// the disk; a path that cannot be looked at is left out.
func (e *Engine) Observe(ctx context.Context, limit int64, paths ...string) (Observed, error) {
	e.change.Lock()
	defer e.change.Unlock()
	var out Observed
	var looks []*look
	defer func() {
		for _, l := range looks {
			l.close()
		}
	}()
	slices.Sort(paths)
	spare := e.spare()
	for _, name := range slices.Compact(paths) {
		l, err := e.observable(ctx, name, min(limit, spare))
		if err != nil {
			if ctx.Err() != nil {
				return out, ctx.Err()
			}
			e.log.Debug("a changed file cannot be looked at", "file", name, "error", err)
			continue
		}
		if l == nil {
			continue
		}
		spare -= int64(len(l.data))
		looks = append(looks, l)
		out.Changed = append(out.Changed, l.path)
	}
	gone := e.recognise(looks)
	if err := e.observed(ctx, looks...); err != nil {
		return out, err
	}
	for _, g := range gone {
		if g.item == nil || g.to == nil {
			continue
		}
		r, err := e.follow(ctx, g.item, g.to.path)
		if err != nil {
			return out, err
		}
		out.Relinked = append(out.Relinked, r)
	}
	return out, nil
}

// spareShare is the part of the free disk that others' changes may take without anybody being asked.
const spareShare = 10

// spare is how many bytes of others' changes may be kept now.
func (e *Engine) spare() int64 {
	disk, ok := e.root.(interface{ Free() (int64, error) })
	if !ok {
		return math.MaxInt64
	}
	free, err := disk.Free()
	if err != nil {
		return math.MaxInt64
	}
	return free / spareShare
}

// observable looks at a path and returns what is new there, nil when nothing is. Folders are no news.
func (e *Engine) observable(ctx context.Context, name string, limit int64) (*look, error) {
	name, err := e.clean(name)
	if err != nil || name == "." || Hidden(path.Base(name)) {
		return nil, err
	}
	l, err := e.stat(name)
	if err != nil || l.image.Kind == kindDirectory {
		return nil, err
	}
	known, ok := e.lastKnown(name)
	if l.image.Kind == kindAbsent {
		if !ok && e.itemAt(catalog.Here(name)) == nil || ok && known.Kind == kindAbsent {
			return nil, nil
		}
		return l, nil
	}
	if l.image.Size <= limit {
		if l, err = e.read(ctx, name, limit); err != nil {
			return nil, err
		}
	}
	if known.Body == nil && l.data != nil {
		if _, err := text.Decode(l.data, ""); err != nil { // nobody asked for its bytes, now or before
			l.image.Body, l.data = nil, nil
		}
	}
	if ok && known.Equal(l.image) && (l.image.Body != nil || known.Size == l.image.Size) {
		l.close()
		return nil, nil
	}
	return l, nil
}

// gone is a file that is not where it was.
type gone struct {
	item *catalog.Item // nil for a plain file
	body cas.ID        // that it last had
	to   *look         // the only file that has these bytes now and belongs to nobody; nil: none, or several
}

// recognise finds files that were renamed: one is gone, and exactly one of the others has the bytes that it last had.
func (e *Engine) recognise(looks []*look) (out []gone) {
	for _, l := range looks {
		if l.image.Kind != kindAbsent {
			continue
		}
		known, ok := e.lastKnown(l.path)
		if !ok || known.Body == nil {
			continue
		}
		g := gone{item: e.itemAt(catalog.Here(l.path)), body: *known.Body}
		n := 0
		for _, other := range looks {
			if other.image.Body != nil && *other.image.Body == g.body && e.itemAt(catalog.Here(other.path)) == nil {
				g.to = other
				n++
			}
		}
		if n != 1 {
			g.to = nil
		} else if g.to.was == "" {
			g.to.was = l.path
		}
		out = append(out, g)
	}
	return out
}

// follow lets an item follow its file to another name. change is held.
func (e *Engine) follow(ctx context.Context, i *catalog.Item, to string) (Result, error) {
	moved := *i
	moved.Location = catalog.Here(to)
	p := e.newPlan(ctx)
	defer p.close()
	p.put(&moved)
	r := record{ID: e.newID(), Method: "content.relink", Time: e.now().UnixMilli(), By: &By{Actor: Outside}, Items: p.delta()}
	result := e.result(p, r)
	r.Result = &result
	return result, e.commitRecord(ctx, r)
}
