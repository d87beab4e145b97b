package content

import (
	"context"
	"errors"
	"path"
	"slices"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/space/catalog"
)

// Associate registers a file, a folder, or a place where none is yet.
type Associate struct {
	ID       string
	Location catalog.Location
	Role     catalog.Role
	Item     string // the id that the item gets; "" mints one
	Origin   *catalog.Origin
}

type associateInput struct {
	Location catalog.Location
	Role     catalog.Role
	Item     string
	Origin   *catalog.Origin
}

// Associate carries out an Associate. Nothing is read. Errors (codes): invalid_input for an id that was used before, already_registered when another
// item is there, permission_required.
func (e *Engine) Associate(ctx context.Context, by By, a Associate) (Result, error) {
	return e.do(ctx, request{id: a.ID, method: "content.associate", input: associateInput{a.Location, a.Role, a.Item, a.Origin}, by: by}, func(p *plan) error {
		i, err := p.register(a.Location, a.Role, a.Item, a.Origin)
		if err != nil {
			return err
		}
		return p.allow(by, i.Location)
	})
}

// register plans a new item.
func (p *plan) register(at catalog.Location, role catalog.Role, id string, origin *catalog.Origin) (*catalog.Item, error) {
	if role != catalog.Document && role != catalog.Material {
		return nil, fail(codeInput, "role %q: want document or material", role)
	}
	at, err := p.e.canonical(at)
	if err != nil {
		return nil, err
	}
	if id == "" {
		id = p.e.newID()
	}
	if err := checkID("content id", id); err != nil {
		return nil, err
	}
	if p.item(id) != nil {
		return nil, fail(codeInput, "content id %s was used before in this space; choose another", id)
	}
	if other := p.itemAt(at); other != nil {
		return nil, fail(codeRegistered, "%s is registered already, as %s", at.Path, other.ID).With(map[string]any{"id": other.ID, "path": at.Path})
	}
	i := &catalog.Item{ID: id, Location: at, Role: role, MediaType: catalog.MediaType(at.Path), State: catalog.Active,
		Members: []catalog.Member{}, Resources: []catalog.Resource{}, Origin: origin}
	p.put(i)
	return i, nil
}

// canonical makes a location that a caller gave canonical.
func (e *Engine) canonical(at catalog.Location) (catalog.Location, error) {
	l, err := e.locate(Target{Path: at.Path, External: at.Kind == catalog.External})
	if err == nil && l.at.Path == "." {
		err = fail(codeInput, "the space itself is no document; choose a file or folder in it")
	}
	return l.at, err
}

// Relink says where an item is now.
type Relink struct {
	ID       string
	Item     string
	Location catalog.Location
	Base     string // structural revision
}

type relinkInput struct {
	Item     string
	Location catalog.Location
	Base     string
}

// Relink carries out a Relink; a removed item is in use again. Errors (codes): not_found for an id that never was, revision_conflict when the
// item is not at the base or another one is there, permission_required.
func (e *Engine) Relink(ctx context.Context, by By, r Relink) (Result, error) {
	return e.do(ctx, request{id: r.ID, method: "content.relink", input: relinkInput{r.Item, r.Location, r.Base}, by: by}, func(p *plan) error {
		i, err := p.atBase(r.Item, r.Base)
		if err != nil {
			return err
		}
		at, err := e.canonical(r.Location)
		if err != nil {
			return err
		}
		if other := p.itemAt(at); other != nil && other.ID != i.ID {
			return conflict(at.Path, i.ID, other.ID, "another content is there")
		}
		next := *i
		next.Location, next.State = at, catalog.Active
		p.put(&next)
		return p.allow(by, at)
	})
}

// atBase returns the record of an id when it is at a structural revision.
func (p *plan) atBase(id, base string) (*catalog.Item, error) {
	i := p.item(id)
	if i == nil {
		return nil, fail(codeNotFound, "there is no content %s in this space", id)
	}
	if actual := i.Revision(); actual != base {
		return nil, conflict("content "+id, base, actual, "its place or composition was changed since it was read; look at it again")
	}
	return i, nil
}

// Remove deletes a document or file, or detaches a material.
type Remove struct {
	ID     string
	Target Target
	Base   string // body revision of a file, structural revision of a folder, of what is missing, and with Detach
	Detach bool
}

type removeInput struct {
	Target Target
	Base   string
	Detach bool
}

// Remove carries out a Remove. A document's file is deleted and its record kept as deleted; a folder goes with everything in it; with Detach only the
// association of a material ends. Errors (codes): not_found, invalid_input for what the role forbids, revision_conflict, recovery_required.
func (e *Engine) Remove(ctx context.Context, by By, r Remove) (Result, error) {
	return e.do(ctx, request{id: r.ID, method: "content.remove", input: removeInput{r.Target, r.Base, r.Detach}, by: by}, func(p *plan) error {
		l, err := e.locate(r.Target)
		if err != nil {
			return err
		}
		switch {
		case l.item != nil && l.item.State != catalog.Active:
			return fail(codeNotFound, "content %s was removed before", l.item.ID)
		case r.Detach && (l.item == nil || l.item.Role != catalog.Material):
			return fail(codeInput, "%s is no material; only a material is detached", l)
		case r.Detach:
			if _, err := p.atBase(l.item.ID, r.Base); err != nil {
				return err
			}
			p.tombstone(l.item, catalog.Detached)
			return nil
		case l.item != nil && l.item.Role == catalog.Material:
			return fail(codeInput, "%s is a material; detach it, its file stays", l)
		case l.at.Path == ".":
			return fail(codeInput, "the space itself cannot be removed")
		}
		return p.removeTree(l, r.Base)
	})
}

func (p *plan) tombstone(i *catalog.Item, state catalog.State) {
	next := *i
	next.State = state
	p.put(&next)
}

// removeTree plans the removal of a file, or of a folder with what is in it.
func (p *plan) removeTree(l located, base string) error {
	before, err := p.look(l.at.Path)
	if err != nil {
		return err
	}
	switch before.image.Kind {
	case kindFile:
		if err := (Base{Revision: base}).check(l.at.Path, before); err != nil {
			return err
		}
	default: // a folder, or a document whose file is gone: there is no body to rely on
		structural := plainRevision(before.image, l.at)
		if l.item != nil {
			r := l.item.Revision()
			structural = &r
		}
		if structural == nil {
			return fail(codeNotFound, "%s does not exist", l)
		}
		if *structural != base {
			return conflict(l.at.Path, base, *structural, "it was changed since it was read; look at it again")
		}
	}
	if err := p.clear(l.at.Path); err != nil {
		return err
	}
	p.e.mu.RLock()
	items := p.e.catalog.Below(l.at.Path)
	p.e.mu.RUnlock()
	for _, i := range items {
		state := catalog.Deleted
		if i.Role == catalog.Material {
			state = catalog.Detached
		}
		p.tombstone(i, state)
	}
	return nil
}

// clear plans that nothing is at a path any more.
func (p *plan) clear(name string) error {
	l, err := p.look(name)
	if err != nil || l.image.Kind == kindAbsent {
		return err
	}
	if l.image.Kind == kindDirectory {
		entries, err := p.e.root.ReadDir(name)
		if err != nil {
			return diskError("folder "+name, err)
		}
		for _, entry := range entries {
			if isOwn(entry.Name()) && name == "." {
				continue
			}
			if err := p.clear(path.Join(name, entry.Name())); err != nil {
				return err
			}
		}
	}
	p.files[name] = &fileStep{before: l, after: absent}
	return nil
}

// Composition replaces the parts and resources of an item.
type Composition struct {
	ID        string
	Item      string
	Base      string // structural revision
	Members   []catalog.Member
	Resources []catalog.Resource
}

type compositionInput struct {
	Item      string
	Base      string
	Members   []catalog.Member
	Resources []catalog.Resource
}

// SetComposition carries out a Composition. Errors (codes): not_found for an item or member that is not there, revision_conflict,
// revision_unavailable for a resource that is not in the store, recovery_required.
func (e *Engine) SetComposition(ctx context.Context, by By, c Composition) (Result, error) {
	return e.do(ctx, request{id: c.ID, method: "content.setComposition", input: compositionInput{c.Item, c.Base, c.Members, c.Resources}, by: by}, func(p *plan) error {
		i, err := p.atBase(c.Item, c.Base)
		if err != nil {
			return err
		}
		if i.State != catalog.Active {
			return fail(codeNotFound, "content %s was removed; restore it first", i.ID)
		}
		return p.compose(i, c.Members, c.Resources)
	})
}

// compose plans the parts of an item.
func (p *plan) compose(i *catalog.Item, members []catalog.Member, resources []catalog.Resource) error {
	next := *i
	next.Members, next.Resources = []catalog.Member{}, []catalog.Resource{}
	for _, m := range members {
		m, err := p.member(m)
		if err != nil {
			return err
		}
		next.Members = append(next.Members, m)
	}
	for _, r := range resources {
		id, err := cas.ParseID(r.ID)
		if err != nil {
			return fail(codeInput, "resource %q: want 64 hexadecimal digits", r.ID)
		}
		if !p.e.store.Has(id) {
			return fail(codeGone, "the bytes %s are not in the store; upload them again", r.ID)
		}
		next.Resources = append(next.Resources, r)
	}
	p.put(&next)
	return nil
}

// member checks one part: an item of this catalog, or a file that is there.
func (p *plan) member(m catalog.Member) (catalog.Member, error) {
	if id := m.Target.ID; id != "" {
		i := p.item(id)
		if i == nil {
			return m, fail(codeNotFound, "there is no content %s in this space", id)
		}
		return m, p.e.usable(located{i, i.Location})
	}
	if m.Target.Location == nil {
		return m, fail(codeInput, "a member names neither a content nor a file")
	}
	at, err := p.e.canonical(*m.Target.Location)
	if err != nil {
		return m, err
	}
	if at.Kind == catalog.External {
		return m, fail(codePermission, "%s is outside of this space; register it as a material, then name that", at.Path)
	}
	now, err := p.now(at.Path)
	if err != nil {
		return m, err
	}
	if now.Kind == kindAbsent {
		return m, fail(codeNotFound, "%s does not exist", at.Path)
	}
	if i := p.itemAt(at); i != nil {
		m.Target = catalog.Target{ID: i.ID}
	} else {
		m.Target = catalog.Target{Location: &at}
	}
	return m, nil
}

// keepsResources are the objects that items of a record name: their operation holds them as long as its history is kept.
func keepsResources(items []catalog.Change) (out []cas.ID) {
	for _, c := range items {
		for _, i := range []*catalog.Item{c.Before, c.After} {
			if i == nil {
				continue
			}
			for _, r := range i.Resources {
				if id, err := cas.ParseID(r.ID); err == nil && !slices.Contains(out, id) {
					out = append(out, id)
				}
			}
		}
	}
	return out
}

// keepResources holds what items of an operation name, for its history; then their documents hold it as long as they do.
func (e *Engine) keepResources(ctx context.Context, p *plan, r record) error {
	ids := append(keepsResources(r.Items), p.kept...)
	if len(ids) == 0 {
		return nil
	}
	return e.storeError(e.store.Hold(ctx, owner(r.ID), ids...))
}

// holdForDocuments lets each item of an operation hold what it names now; what a failure leaves is put right at the next open.
func (e *Engine) holdForDocuments(ctx context.Context, items []catalog.Change) {
	for _, c := range items {
		if len(c.After.Resources) == 0 && (c.Before == nil || len(c.Before.Resources) == 0) {
			continue
		}
		if err := e.holdForDocument(ctx, c.After); err != nil {
			e.log.Warn("the resources of an item are not held as they should be; the next open does it", "id", c.After.ID, "error", err)
		}
	}
}

func (e *Engine) holdForDocument(ctx context.Context, i *catalog.Item) error {
	document := cas.Owner{Kind: cas.OwnerDocument, ID: i.ID}
	if i.State != catalog.Active || len(i.Resources) == 0 {
		return e.store.Release(ctx, document)
	}
	return e.store.Replace(ctx, document, keepsResources([]catalog.Change{{After: i}})...)
}

// holdAll lets exactly the active items hold what they name.
func (e *Engine) holdAll(ctx context.Context) error {
	for held := range e.store.AllOwners(cas.OwnerDocument) {
		if i := e.catalog.Get(held.ID); i == nil || i.State != catalog.Active || len(i.Resources) == 0 {
			if err := e.store.Release(ctx, held); err != nil {
				return err
			}
		}
	}
	for i := range e.catalog.All() {
		document := cas.Owner{Kind: cas.OwnerDocument, ID: i.ID}
		if i.State == catalog.Active && len(i.Resources) > 0 && len(e.store.Held(document)) == 0 {
			if err := e.holdForDocument(ctx, i); err != nil && !errors.Is(err, cas.ErrNotFound) {
				return err
			}
		}
	}
	return nil
}
