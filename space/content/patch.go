package content

import (
	"context"
	"path"
	"strings"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/space/catalog"
	"github.com/repa-app/repa/space/internal/fault"
	"github.com/repa-app/repa/space/patch"
)

// PatchBase is what a patch relies on for one file.
type PatchBase struct {
	Target Target
	Base   Base
}

// Registration registers a file or folder that is there, or that the patch makes.
type Registration struct {
	Path      string
	Role      catalog.Role
	Item      string // "" mints an id
	Origin    *catalog.Origin
	Members   []catalog.Member
	Resources []catalog.Resource
}

// Recompose replaces the parts of an item; Base is its structural revision before the patch.
type Recompose struct {
	Item      string
	Base      string
	Members   []catalog.Member
	Resources []catalog.Resource
}

// Patch changes many files and their items at once.
type Patch struct {
	ID            string
	Text          string // in the grammar of package patch
	Bases         []PatchBase
	Registrations []Registration
	Compositions  []Recompose
}

type patchInput struct {
	Patch         string
	Bases         []PatchBase
	Registrations []Registration
	Compositions  []Recompose
}

// PatchReport says how the hunks of one file were found.
type PatchReport struct {
	Path  string
	Hunks patch.Report
}

// ApplyPatch carries out a Patch, all or nothing. Errors (codes): invalid_patch, ambiguous_match and match_not_found with path and candidates,
// revision_conflict, invalid_input for bases of what the patch does not change, already_registered, not_found, permission_required, recovery_required.
func (e *Engine) ApplyPatch(ctx context.Context, by By, w Patch) (Result, []PatchReport, error) {
	var reports []PatchReport
	r, err := e.do(ctx, request{id: w.ID, method: "content.applyPatch", input: patchInput{w.Text, w.Bases, w.Registrations, w.Compositions}, by: by}, func(p *plan) (err error) {
		reports, err = p.patch(w)
		return err
	})
	return r, reports, err
}

// patch plans a patch.
func (p *plan) patch(w Patch) (reports []PatchReport, err error) {
	parsed, err := patch.Parse(w.Text)
	if err != nil {
		return nil, fault.Wrap(codePatch, "the patch was not applied: "+err.Error(), err)
	}
	bases, err := p.bases(w.Bases)
	if err != nil {
		return nil, err
	}
	subjects := map[string]bool{}
	for _, a := range parsed.Actions {
		report, err := p.act(a, subjects)
		if err != nil {
			return nil, err
		}
		if report != nil {
			reports = append(reports, *report)
		}
	}
	if err := p.checkBases(bases); err != nil {
		return nil, err
	}
	return reports, p.structure(w)
}

// bases makes the bases of a patch canonical.
func (p *plan) bases(list []PatchBase) (map[string]Base, error) {
	out := map[string]Base{}
	for _, b := range list {
		l, err := p.e.locate(b.Target)
		if err != nil {
			return nil, err
		}
		if l.at.Kind == catalog.External {
			return nil, fail(codePermission, "%s is outside of this space; a patch never changes it", l)
		}
		if _, twice := out[l.at.Path]; twice {
			return nil, fail(codeInput, "two bases name %s", l)
		}
		out[l.at.Path] = b.Base
	}
	return out, nil
}

// checkBases holds the bases against the very bytes that the patch was computed from.
func (p *plan) checkBases(bases map[string]Base) error {
	for name, b := range bases {
		s := p.files[name]
		if s == nil || s.before.image.Equal(s.after) || s.before.image.Kind == kindDirectory || s.after.Kind == kindDirectory {
			return fail(codeInput, "a base names %s, and the patch does not change that file", name)
		}
		if err := b.check(name, s.before); err != nil {
			return err
		}
	}
	return nil
}

// act plans one action.
func (p *plan) act(a patch.Action, subjects map[string]bool) (*PatchReport, error) {
	l, before, err := p.subject(targetOf(a.Path))
	if err != nil {
		return nil, err
	}
	name := l.at.Path
	if p.e.blocked(l.item, name) {
		return nil, fail(codeRecovery, "%s belongs to an operation that needs recovery; settle that first", l)
	}
	if subjects[name] {
		return nil, fail(codePatch, "the patch was not applied: %s is named twice; join its changes into one action", name)
	}
	subjects[name] = true
	switch a.Kind {
	case patch.Add:
		if before.image.Kind != kindAbsent {
			return nil, conflict(name, "", revisionText(before.image), "it exists already; update it instead of adding it")
		}
		return nil, p.setText(l, []byte(a.Text), 0o644)
	case patch.Delete:
		if before.image.Kind != kindFile {
			return nil, missingFile(l, before)
		}
		p.files[name] = &fileStep{before: before, after: absent}
		if l.item != nil {
			p.tombstone(p.item(l.item.ID), catalog.Deleted)
		}
		return nil, nil
	}
	if a.MoveTo != "" && len(a.Hunks) == 0 {
		if before.image.Kind != kindFile {
			return nil, missingFile(l, before)
		}
		return nil, p.moveTo(l, before, a.MoveTo, before.image, before.data, subjects)
	}
	old, err := p.decode(l, before)
	if err != nil {
		return nil, err
	}
	next, report, err := a.Apply(old.String())
	if err != nil {
		return nil, about(name, err)
	}
	data, err := encodeText(l, old, next)
	if err != nil {
		return nil, err
	}
	if a.MoveTo == "" {
		p.notes = append(p.notes, name)
		return &PatchReport{name, report}, p.setText(l, data, before.image.Mode)
	}
	return &PatchReport{name, report}, p.moveTo(l, before, a.MoveTo, file(cas.Sum(data), int64(len(data)), before.image.Mode), data, subjects)
}

func missingFile(l located, before *look) error {
	if before.image.Kind == kindDirectory {
		return fail(codeInput, "%s is a folder, not a file", l)
	}
	return fail(codeNotFound, "%s does not exist", l)
}

// moveTo plans that a file is elsewhere with new bytes.
func (p *plan) moveTo(l located, before *look, to string, image Image, data []byte, subjects map[string]bool) error {
	at, err := p.e.canonical(catalog.Here(to))
	if err != nil {
		return err
	}
	there, err := p.look(at.Path)
	if err != nil {
		return err
	}
	if there.image.Kind != kindAbsent || p.files[at.Path] != nil || subjects[at.Path] {
		return conflict(at.Path, "", revisionText(there.image), "something is there already; move the file elsewhere")
	}
	subjects[at.Path] = true
	if err := p.set(at.Path, image, data); err != nil {
		return err
	}
	p.files[at.Path].was = l.at.Path
	p.files[l.at.Path] = &fileStep{before: before, after: absent}
	if l.item != nil {
		next := *p.item(l.item.ID)
		next.Location = at
		p.put(&next)
	}
	return nil
}

// targetOf reads a path of a patch: a reference names an item.
func targetOf(name string) Target {
	for _, prefix := range []string{"repa:document/", "repa:material/"} {
		if id, ok := strings.CutPrefix(name, prefix); ok && idPattern.MatchString(id) {
			return Target{ID: id}
		}
	}
	return At(name)
}

// structure plans registrations, then parts: what is new may have each other as parts.
func (p *plan) structure(w Patch) error {
	made := make([]string, len(w.Registrations))
	for i, r := range w.Registrations {
		at, err := p.e.canonical(catalog.Here(r.Path))
		if err != nil {
			return err
		}
		now, err := p.now(at.Path)
		if err != nil {
			return err
		}
		if now.Kind == kindAbsent && !p.holdsFiles(at.Path) {
			return fail(codeNotFound, "%s does not exist and the patch does not make it, so it cannot be registered", r.Path)
		}
		item, err := p.register(at, r.Role, r.Item, r.Origin)
		if err != nil {
			return err
		}
		made[i] = item.ID
	}
	for i, r := range w.Registrations {
		if err := p.compose(p.item(made[i]), r.Members, r.Resources); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	for _, c := range w.Compositions {
		if seen[c.Item] {
			return fail(codeInput, "two compositions name content %s", c.Item)
		}
		seen[c.Item] = true
		was := p.e.itemOf(c.Item)
		if was == nil {
			return fail(codeNotFound, "there is no content %s in this space", c.Item)
		}
		if actual := was.Revision(); actual != c.Base {
			return conflict("content "+c.Item, c.Base, actual, "its place or composition was changed since it was read; look at it again")
		}
		now := p.item(c.Item)
		if now.State != catalog.Active {
			return fail(codeNotFound, "content %s is removed by the same patch", c.Item)
		}
		if err := p.compose(now, c.Members, c.Resources); err != nil {
			return err
		}
	}
	return nil
}

// holdsFiles reports whether the plan makes something below a path.
func (p *plan) holdsFiles(name string) bool {
	for other, s := range p.files {
		if s.after.Kind != kindAbsent && path.Dir(other) == name {
			return true
		}
	}
	return false
}
