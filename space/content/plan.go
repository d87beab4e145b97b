package content

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/space/catalog"
)

// request is what a caller asks for: an operation id, and everything that makes its input.
type request struct {
	id     string
	method string
	input  any // what the id stands for; encodes as JSON
	by     By
	undoes []string
}

// plan is what an operation is going to do. It looks at each path once: what it relies on is what it was computed from.
type plan struct {
	e     *Engine
	ctx   context.Context
	looks map[string]*look
	files map[string]*fileStep
	items map[string]*catalog.Item // next records
	order []string                 // ids in the order of their first change
	kept  []cas.ID                 // bytes that the operation holds although no file has them
	notes []string                 // ids and paths that the result tells of although they do not change
}

// fileStep is the change of one path.
type fileStep struct {
	before *look
	after  Image
	data   []byte // of the new file, when it is not in the store
	was    string // the path from which the file came
	rename bool   // the file itself is renamed, unchanged
}

func (e *Engine) newPlan(ctx context.Context) *plan {
	return &plan{e: e, ctx: ctx, looks: map[string]*look{}, files: map[string]*fileStep{}, items: map[string]*catalog.Item{}}
}

func (p *plan) close() {
	for _, l := range p.looks {
		l.close()
	}
}

// look reads a path once; bytes up to the size of a document are kept.
func (p *plan) look(name string) (*look, error) {
	if l := p.looks[name]; l != nil {
		return l, nil
	}
	l, err := p.e.read(p.ctx, name, maxDocument)
	if err != nil {
		return nil, err
	}
	p.looks[name] = l
	return l, nil
}

// glance looks at a path without reading it.
func (p *plan) glance(name string) (*look, error) {
	if l := p.looks[name]; l != nil {
		return l, nil
	}
	return p.e.stat(name)
}

// now is the image that a path will have, as far as the plan goes.
func (p *plan) now(name string) (Image, error) {
	if s := p.files[name]; s != nil {
		return s.after, nil
	}
	l, err := p.look(name)
	if err != nil {
		return Image{}, err
	}
	return l.image, nil
}

// set gives a path new content. Missing folders on the way are made.
func (p *plan) set(name string, after Image, data []byte) error {
	before, err := p.look(name)
	if err != nil {
		return err
	}
	if err := p.parents(name); err != nil {
		return err
	}
	p.files[name] = &fileStep{before: before, after: after, data: data}
	return nil
}

// parents plans the folders on the way to a path.
func (p *plan) parents(name string) error {
	parent := path.Dir(name)
	if parent == "." || p.files[parent] != nil {
		return nil
	}
	l, err := p.glance(parent)
	switch {
	case err != nil:
		return err
	case l.image.Kind == kindDirectory:
		return nil
	case l.image.Kind == kindFile:
		return fail(codeConflict, "%s cannot be made: %s is a file, not a folder", name, parent)
	}
	if err := p.parents(parent); err != nil {
		return err
	}
	p.looks[parent] = l
	p.files[parent] = &fileStep{before: l, after: directory(0o755)}
	return nil
}

// item returns the record of an id as the plan makes it, nil when there is none.
func (p *plan) item(id string) *catalog.Item {
	if i, ok := p.items[id]; ok {
		return i
	}
	return p.e.itemOf(id)
}

// itemAt returns the active item at a place, as the plan makes it.
func (p *plan) itemAt(l catalog.Location) *catalog.Item {
	for _, i := range p.items {
		if i.State == catalog.Active && i.Location == l {
			return i
		}
	}
	i := p.e.itemAt(l)
	if i == nil || p.items[i.ID] != nil {
		return nil
	}
	return i
}

// put plans a record.
func (p *plan) put(i *catalog.Item) {
	if p.items[i.ID] == nil {
		p.order = append(p.order, i.ID)
	}
	p.items[i.ID] = i
}

// delta is the change of the catalog.
func (p *plan) delta() (out []catalog.Change) {
	for _, id := range p.order {
		if before := p.e.itemOf(id); !before.Same(p.items[id]) {
			out = append(out, catalog.Change{Before: before, After: p.items[id]})
		}
	}
	return out
}

// steps are the changes of files in the order in which they are done: folders from the top, files from the top, removals from the bottom.
func (p *plan) steps() (out []FileChange) {
	for name, s := range p.files {
		if s.before.image.Equal(s.after) {
			continue
		}
		f := FileChange{Path: name, Before: s.before.image, After: s.after, Was: s.was}
		if s.rename {
			f.From = s.was
		}
		out = append(out, f)
	}
	rank := func(f FileChange) int {
		switch f.After.Kind {
		case kindDirectory:
			return 0
		case kindFile:
			return 1
		}
		return 2
	}
	slices.SortFunc(out, func(a, b FileChange) int {
		if ra, rb := rank(a), rank(b); ra != rb {
			return ra - rb
		}
		deep := strings.Count(a.Path, "/") - strings.Count(b.Path, "/")
		if deep == 0 {
			deep = strings.Compare(a.Path, b.Path)
		}
		if rank(a) == 2 {
			return -deep
		}
		return deep
	})
	return out
}

// itemOf and itemAt read the catalog.
func (e *Engine) itemOf(id string) *catalog.Item {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.catalog.Get(id)
}

func (e *Engine) itemAt(l catalog.Location) *catalog.Item {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.catalog.At(l)
}
