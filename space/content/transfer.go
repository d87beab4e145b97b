package content

import (
	"context"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/space/catalog"
	"github.com/repa-app/repa/space/links"
)

// Transfer moves or copies a file, a folder or an item with its parts.
type Transfer struct {
	ID          string
	Target      Target
	Destination string // path below the space
	Base        string // structural revision
	Container   bool   // parts lie apart: Destination is a new folder that takes them all
}

type transferInput struct {
	Target      Target
	Destination string
	Base        string
	Container   bool
}

// Move carries out a Transfer; ids stay. Errors (codes): not_found, invalid_input, revision_conflict when the target is not at the base or something
// is at the destination, unsupported_content for a symbolic link inside, permission_required, recovery_required.
func (e *Engine) Move(ctx context.Context, by By, t Transfer) (Result, error) {
	return e.transfer(ctx, by, t, "content.move", (*transfer).move)
}

// Copy carries out a Transfer; every item that is copied gets a new id, and what is copied refers to the copies. Errors: those of Move, and
// unsupported_format for a Markdown file with references that is no UTF-8.
func (e *Engine) Copy(ctx context.Context, by By, t Transfer) (Result, error) {
	return e.transfer(ctx, by, t, "content.copy", (*transfer).copy)
}

// transfer is a Transfer as far as it is planned.
type transfer struct {
	*plan
	from    located
	entries []*look           // files and folders, folders first
	items   []*catalog.Item   // that lie in them
	to      map[string]string // path → new path
	stay    map[string]bool   // folders that stay when their files move: only their parts were named
}

func (e *Engine) transfer(ctx context.Context, by By, t Transfer, method string, finish func(*transfer) error) (Result, error) {
	return e.do(ctx, request{id: t.ID, method: method, input: transferInput{t.Target, t.Destination, t.Base, t.Container}, by: by}, func(p *plan) error {
		x := &transfer{plan: p, to: map[string]string{}, stay: map[string]bool{}}
		if err := x.gather(t); err != nil {
			return err
		}
		if err := x.layOut(t); err != nil {
			return err
		}
		return finish(x)
	})
}

// gather finds everything that goes along: the target, what is in its folders, and its parts.
func (x *transfer) gather(t Transfer) (err error) {
	if x.from, err = x.e.locate(t.Target); err != nil {
		return err
	}
	switch {
	case x.from.at.Kind == catalog.External:
		return fail(codePermission, "%s is outside of this space; collect it instead", x.from)
	case x.from.at.Path == ".":
		return fail(codeInput, "the space itself cannot be moved or copied within itself")
	case x.from.item != nil && x.from.item.State != catalog.Active:
		return fail(codeNotFound, "content %s was removed; restore it first", x.from.item.ID)
	}
	first, err := x.look(x.from.at.Path)
	if err != nil {
		return err
	}
	if first.image.Kind == kindAbsent {
		return fail(codeNotFound, "%s does not exist", x.from)
	}
	actual := plainRevision(first.image, x.from.at)
	if x.from.item != nil {
		r := x.from.item.Revision()
		actual = &r
	}
	if *actual != t.Base {
		return conflict(x.from.at.Path, t.Base, *actual, "it was changed since it was read; look at it again")
	}
	if err := x.tree(x.from.at.Path); err != nil {
		return err
	}
	slices.SortFunc(x.entries, func(a, b *look) int { return strings.Compare(a.path, b.path) })
	return nil
}

// tree adds a path with what is in it and the parts of its items.
func (x *transfer) tree(name string) error {
	if slices.ContainsFunc(x.entries, func(l *look) bool { return l.path == name }) {
		return nil
	}
	l, err := x.look(name)
	if err != nil {
		return err
	}
	if l.image.Kind == kindAbsent {
		return fail(codeNotFound, "%s does not exist, and it is a part of %s", name, x.from)
	}
	x.entries = append(x.entries, l)
	if l.image.Kind == kindDirectory {
		entries, err := x.e.root.ReadDir(name)
		if err != nil {
			return diskError("folder "+name, err)
		}
		for _, entry := range entries {
			if Hidden(entry.Name()) {
				continue
			}
			if err := x.tree(path.Join(name, entry.Name())); err != nil {
				return err
			}
		}
	}
	i := x.itemAt(catalog.Here(name))
	if x.e.blocked(i, name) {
		return fail(codeRecovery, "%s belongs to an operation that needs recovery; settle that first", name)
	}
	if i == nil {
		return nil
	}
	x.items = append(x.items, i)
	for _, m := range i.Members {
		part := m.Target.Location
		if m.Target.ID != "" {
			at := x.item(m.Target.ID)
			if at == nil || at.State != catalog.Active {
				return fail(codeNotFound, "content %s was removed, and it is a part of %s", m.Target.ID, name)
			}
			part = &at.Location
		}
		if part.Kind == catalog.Relative {
			if err := x.tree(part.Path); err != nil {
				return err
			}
		}
	}
	return nil
}

// layOut says where everything goes: each keeps its place relative to the anchor.
func (x *transfer) layOut(t Transfer) error {
	destination, err := x.e.canonical(catalog.Here(t.Destination))
	if err != nil {
		return err
	}
	anchor, to := x.from.at.Path, destination.Path
	if t.Container {
		for _, l := range x.entries {
			for anchor != "." && l.path != anchor && !strings.HasPrefix(l.path, anchor+"/") {
				anchor = path.Dir(anchor)
			}
		}
		if l, err := x.look(anchor); err == nil && l.image.Kind == kindFile {
			anchor = path.Dir(anchor)
		}
	}
	for _, l := range x.entries {
		next, ok := relocate(l.path, anchor, to)
		if !ok && !t.Container {
			next, ok = relocate(l.path, path.Dir(anchor), path.Dir(to))
			if ok && x.isFolder(anchor) {
				ok = false
			}
		}
		if !ok {
			return fail(codeInput, "%s is a part of %s and lies outside of it; choose to put everything into one new folder", l.path, x.from)
		}
		x.to[l.path] = next
	}
	seen := map[string]string{}
	for from, next := range x.to {
		if other, twice := seen[next]; twice {
			return fail(codeInput, "%s and %s would both become %s", from, other, next)
		}
		seen[next] = from
		if next == from || strings.HasPrefix(next, from+"/") {
			return fail(codeInput, "%s cannot go into itself", from)
		}
		l, err := x.look(next)
		if err != nil {
			return err
		}
		if l.image.Kind != kindAbsent && !x.sameUnderOtherName(from, next) {
			return conflict(next, "", revisionText(l.image), "something is there already; choose another place")
		}
	}
	return nil
}

func (x *transfer) isFolder(name string) bool {
	l := x.looks[name]
	return l != nil && l.image.Kind == kindDirectory
}

// sameUnderOtherName recognises a change of a name's case on a disk that does not tell cases apart.
func (x *transfer) sameUnderOtherName(from, to string) bool {
	a, b := x.looks[from], x.looks[to]
	return from != to && catalog.Fold(from) == catalog.Fold(to) && a.info != nil && b.info != nil && a.info.Sys() != nil && sameFile(a.info, b.info)
}

// relocate carries a path from an anchor over to another.
func relocate(name, anchor, to string) (string, bool) {
	switch {
	case name == anchor:
		return to, true
	case anchor == ".":
		return path.Join(to, name), true
	}
	if rest, ok := strings.CutPrefix(name, anchor+"/"); ok {
		return path.Join(to, rest), true
	}
	return "", false
}

// move plans that everything is elsewhere; whoever had it as a part has it there.
func (x *transfer) move() error {
	for _, l := range x.entries {
		to := x.to[l.path]
		if l.image.Kind == kindDirectory {
			if err := x.folderAt(to, l.image); err != nil {
				return err
			}
			x.files[l.path] = &fileStep{before: l, after: absent}
			continue
		}
		if err := x.keepLarge(l); err != nil {
			return err
		}
		if err := x.set(to, l.image, l.data); err != nil {
			return err
		}
		x.files[to].was, x.files[to].rename = l.path, true
		x.files[l.path] = &fileStep{before: l, after: absent}
	}
	for _, i := range x.items {
		next := *x.item(i.ID)
		next.Location = catalog.Here(x.to[i.Location.Path])
		x.put(&next)
	}
	for _, i := range x.e.allItems() {
		if i = x.item(i.ID); i.State == catalog.Active {
			if members, changed := x.movedMembers(i.Members, nil); changed {
				next := *i
				next.Members = members
				x.put(&next)
			}
		}
	}
	return nil
}

// keepLarge puts the bytes of a file that was not read whole where its history finds them; look has done it for those that were too large.
func (x *transfer) keepLarge(l *look) error {
	if l.data == nil && l.image.Size > 0 && !x.e.store.Has(*l.image.Body) {
		return fail(codeConflict, "%s was changed at this moment; try again", l.path)
	}
	return nil
}

// folderAt plans a folder.
func (x *transfer) folderAt(name string, as Image) error {
	before, err := x.look(name)
	if err != nil {
		return err
	}
	if err := x.parents(name); err != nil {
		return err
	}
	x.files[name] = &fileStep{before: before, after: as}
	return nil
}

// movedMembers follows parts to their new places, and to new ids.
func (x *transfer) movedMembers(members []catalog.Member, ids map[string]string) (out []catalog.Member, changed bool) {
	for _, m := range members {
		if id, ok := ids[m.Target.ID]; ok && m.Target.ID != "" {
			m.Target, changed = catalog.Target{ID: id}, true
		} else if l := m.Target.Location; l != nil && l.Kind == catalog.Relative {
			if to, ok := x.to[l.Path]; ok {
				at := catalog.Here(to)
				m.Target, changed = catalog.Target{Location: &at}, true
			}
		}
		out = append(out, m)
	}
	return out, changed
}

// allItems lists the records.
func (e *Engine) allItems() (out []*catalog.Item) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for i := range e.catalog.All() {
		out = append(out, i)
	}
	return out
}

// copy plans that everything is there a second time, under new ids.
func (x *transfer) copy() error {
	ids := map[string]string{}
	for _, i := range x.items {
		ids[i.ID] = x.e.newID()
	}
	for _, l := range x.entries {
		to := x.to[l.path]
		if l.image.Kind == kindDirectory {
			if err := x.folderAt(to, l.image); err != nil {
				return err
			}
			continue
		}
		if err := x.keepLarge(l); err != nil {
			return err
		}
		image, data := l.image, l.data
		if strings.EqualFold(path.Ext(l.path), ".md") && data != nil {
			next, err := rewriteReferences(l.path, data, ids)
			if err != nil {
				return err
			}
			image, data = file(cas.Sum(next), int64(len(next)), image.Mode), next
		}
		if err := x.set(to, image, data); err != nil {
			return err
		}
	}
	for _, i := range x.items {
		next := *i
		next.ID, next.Location = ids[i.ID], catalog.Here(x.to[i.Location.Path])
		if next.Origin == nil {
			next.Origin = &catalog.Origin{Kind: i.Location.Kind, Path: i.Location.Path}
		}
		next.Members, _ = x.movedMembers(i.Members, ids)
		x.put(&next)
	}
	return nil
}

// rewriteReferences lets the links of a Markdown file that name a copied item name its copy.
func rewriteReferences(name string, data []byte, ids map[string]string) ([]byte, error) {
	if len(ids) == 0 {
		return data, nil
	}
	if !utf8.Valid(data) {
		return nil, fail(codeFormat, "%s is not UTF-8, so its references cannot be carried over; convert it first", name)
	}
	return links.Rewrite(data, func(destination string) (string, bool) {
		for _, role := range []string{"repa:document/", "repa:material/"} {
			rest, ok := strings.CutPrefix(destination, role)
			if !ok {
				continue
			}
			id, suffix := rest, ""
			if i := strings.IndexAny(rest, "?#"); i >= 0 {
				id, suffix = rest[:i], rest[i:]
			}
			if next, ok := ids[id]; ok {
				return role + next + suffix, true
			}
		}
		return "", false
	}), nil
}
