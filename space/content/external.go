package content

import (
	"context"
	"errors"
	"io/fs"

	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/space/catalog"
	"github.com/repa-app/repa/space/grant"
	"github.com/repa-app/repa/space/internal/fault"
)

// Grants says which files outside of the space may be read for it.
type Grants interface {
	// Allow grants a file. Errors: grant.ErrMoved, fs.ErrNotExist, of the disk.
	Allow(space, name string) error
	// Open opens a granted file. Errors: grant.ErrNone, grant.ErrMoved, fs.ErrNotExist, of the disk.
	Open(space, name string) (vfs.File, error)
}

// allow grants the reading of an external place that a learner names; nobody else can.
func (p *plan) allow(by By, at catalog.Location) error {
	if at.Kind != catalog.External {
		return nil
	}
	if by.Actor != Learner || p.e.grants == nil {
		return fail(codePermission, "%s is outside of this space; a learner must add it", at.Path)
	}
	return grantError(at.Path, p.e.grants.Allow(p.e.spaceID, at.Path))
}

func grantError(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, grant.ErrNone):
		return fault.Wrap(codePermission, name+" is outside of this space and may not be read for it; add it as a material first", err)
	case errors.Is(err, grant.ErrMoved):
		return fault.Wrap(codePermission, name+" is no plain file, or leads through a symbolic link; name the file itself", err)
	}
	return diskError(name, err)
}

// lookExternal looks at a granted file outside of the space and reads it: whole up to limit bytes, else into the store; not at all with a negative limit. The
// caller closes it.
func (e *Engine) lookExternal(ctx context.Context, name string, limit int64) (*look, error) {
	if e.grants == nil {
		return nil, grantError(name, grant.ErrNone)
	}
	f, err := e.grants.Open(e.spaceID, name)
	if errors.Is(err, fs.ErrNotExist) {
		return &look{path: name, image: absent}, nil
	}
	if err != nil {
		return nil, grantError(name, err)
	}
	l := &look{path: name, file: f}
	if err := e.fill(ctx, l, limit); err != nil {
		l.close()
		return nil, diskError(name, err)
	}
	return l, nil
}

// Collect copies an external material into the space.
type Collect struct {
	ID          string
	Target      Target
	Destination string
	Base        string // structural revision
}

type collectInput struct {
	Target      Target
	Destination string
	Base        string
}

// Collect carries out a Collect: the material keeps its id and is in the space from now on, its origin is where it was, and the original stays. Errors
// (codes): not_found, invalid_input for what is in the space already, permission_required, revision_conflict.
func (e *Engine) Collect(ctx context.Context, by By, c Collect) (Result, error) {
	return e.do(ctx, request{id: c.ID, method: "material.collect", input: collectInput{c.Target, c.Destination, c.Base}, by: by}, func(p *plan) error {
		l, err := e.locate(c.Target)
		if err != nil {
			return err
		}
		if l.item == nil || l.at.Kind != catalog.External {
			return fail(codeInput, "%s is no material outside of the space; only such a one is collected", l)
		}
		if l.item.State != catalog.Active {
			return fail(codeNotFound, "content %s was removed", l.item.ID)
		}
		if _, err := p.atBase(l.item.ID, c.Base); err != nil {
			return err
		}
		seen, err := e.lookExternal(ctx, l.at.Path, maxDocument)
		if err != nil {
			return err
		}
		defer seen.close()
		if seen.image.Kind == kindAbsent {
			return fail(codeNotFound, "%s does not exist", l)
		}
		to, err := e.canonical(catalog.Here(c.Destination))
		if err != nil {
			return err
		}
		there, err := p.look(to.Path)
		if err != nil {
			return err
		}
		if there.image.Kind != kindAbsent {
			return conflict(to.Path, "", revisionText(there.image), "something is there already; choose another place")
		}
		image := seen.image
		image.Mode = 0o644
		if err := p.set(to.Path, image, seen.data); err != nil {
			return err
		}
		next := *l.item
		next.Location = to
		if next.Origin == nil {
			next.Origin = &catalog.Origin{Kind: catalog.External, Path: l.at.Path}
		}
		p.put(&next)
		return nil
	})
}
