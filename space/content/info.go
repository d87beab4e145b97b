package content

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/repa-app/repa/space/catalog"
)

// Target names a content: a registered item by its id, or a file by its path (below the space, or with External an absolute one).
type Target struct {
	ID       string `json:"id,omitzero"`
	Path     string `json:"path,omitzero"`
	External bool   `json:"external,omitzero"`
}

// At is the target of a path below the space.
func At(path string) Target { return Target{Path: path} }

func (t Target) String() string {
	if t.ID != "" {
		return "content " + t.ID
	}
	return t.Path
}

// Availability says whether a content can be read.
type Availability string

// States of a content.
const (
	Available          Availability = "available"
	Missing            Availability = "missing"
	DetachedContent    Availability = "detached"
	InRecovery         Availability = "needs_recovery"
	PermissionRequired Availability = "permission_required"
)

// Info is what there is to know of a file or registered content.
type Info struct {
	ID        string             `json:"id,omitzero"` // "" for a plain file
	Location  catalog.Location   `json:"location"`
	Role      catalog.Role       `json:"role,omitzero"`
	MediaType string             `json:"mediaType"`
	Revision  *string            `json:"revision"` // structural
	Body      *string            `json:"body,omitempty"`
	BodyRead  bool               `json:"bodyRead,omitempty"` // Body says what is there, nil that no file is
	Status    Availability       `json:"status"`
	FileType  string             `json:"fileType,omitempty"` // file or directory; "" when nothing is there
	Size      int64              `json:"size,omitempty"`
	Members   []catalog.Member   `json:"members,omitempty"`
	Resources []catalog.Resource `json:"resources,omitempty"`
	Origin    *catalog.Origin    `json:"origin,omitempty"`
}

func (i Info) key() string {
	if i.ID != "" {
		return "#" + i.ID
	}
	return i.Location.Kind + ":" + i.Location.Path
}

// imageForm is what the structural revision of a plain file says.
type imageForm struct {
	Image    Image            `json:"image"`
	Location catalog.Location `json:"location"`
}

func plainRevision(i Image, l catalog.Location) *string {
	if i.Kind == kindAbsent {
		return nil
	}
	r := catalog.Digest("plain", imageForm{Image{Kind: i.Kind, Body: i.Body, Mode: i.Mode}, l})
	return &r
}

// describe joins a record and what is at its place.
func describe(i *catalog.Item, l catalog.Location, image Image, blocked bool) Info {
	out := Info{Location: l, MediaType: catalog.MediaType(l.Path), Status: Available, Body: image.Revision(), BodyRead: image.Body != nil || image.Kind != kindFile}
	switch image.Kind {
	case kindFile:
		out.FileType, out.Size = "file", image.Size
	case kindDirectory:
		out.FileType = "directory"
		if i == nil {
			out.MediaType = "inode/directory"
		}
	default:
		out.Status = Missing
	}
	if i == nil {
		out.Revision = plainRevision(image, l)
	} else {
		r := i.Revision()
		out.ID, out.Role, out.MediaType, out.Revision = i.ID, i.Role, i.MediaType, &r
		out.Members, out.Resources, out.Origin = i.Members, i.Resources, i.Origin
		if i.State != catalog.Active {
			out.Status, out.FileType, out.Size, out.Body = Missing, "", 0, nil
			if i.State == catalog.Detached {
				out.Status = DetachedContent
			}
		}
	}
	if blocked {
		out.Status = InRecovery
	}
	return out
}

// info describes what a plan makes of a place.
func (p *plan) info(i *catalog.Item, l catalog.Location) Info {
	image := absent
	if l.Kind == catalog.Relative {
		if s := p.files[l.Path]; s != nil {
			image = s.after
		} else if seen, err := p.glance(l.Path); err == nil {
			image = seen.image
		}
	}
	return describe(i, l, image, false)
}

// located is a target that was looked up: its record, if it has one, and where it is.
type located struct {
	item *catalog.Item
	at   catalog.Location
}

func (l located) String() string { return l.at.Path }

// locate looks a target up. A path that belongs to an active record becomes that record, also through symbolic links. Errors (codes):
// invalid_input, permission_required, not_found for an id that never was.
func (e *Engine) locate(t Target) (located, error) {
	if t.ID != "" {
		i := e.itemOf(t.ID)
		if i == nil {
			return located{}, fail(codeNotFound, "there is no content %s in this space", t.ID)
		}
		return located{i, i.Location}, nil
	}
	if t.External {
		if !path.IsAbs(t.Path) && !isDrive(t.Path) {
			return located{}, fail(codeInput, "%q is no absolute path", t.Path)
		}
		if _, err := e.clean(t.Path); err != nil {
			l := catalog.Location{Kind: catalog.External, Path: path.Clean(t.Path)}
			return located{e.itemAt(l), l}, nil
		}
	}
	name, err := e.clean(t.Path)
	if err == nil {
		name, err = e.resolve(name)
	}
	if err != nil {
		return located{}, err
	}
	l := catalog.Here(name)
	return located{e.itemAt(l), l}, nil
}

func isDrive(name string) bool { return len(name) > 2 && name[1] == ':' }

// blocked reports whether an operation that needs recovery touches an item or a path.
func (e *Engine) blocked(i *catalog.Item, name string) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, o := range e.unsettled {
		if o.status != NeedsRecovery {
			continue
		}
		if i != nil && slices.Contains(o.items, i.ID) || o.touches(name) {
			return true
		}
	}
	return false
}

// usable refuses what cannot be read or changed by its identity now.
func (e *Engine) usable(l located) error {
	if l.item != nil && e.blocked(l.item, l.at.Path) {
		return fail(codeRecovery, "%s belongs to an operation that needs recovery; settle that first, or work with the file by its path", l)
	}
	return nil
}

// Get describes a target; a file is read, so that its body's revision is known and its bytes are kept. Errors (codes): invalid_input,
// permission_required, not_found when neither a record nor a file is there.
func (e *Engine) Get(ctx context.Context, t Target) (Info, error) { return e.about(ctx, t, true) }

// Inspect is Get without reading the file.
func (e *Engine) Inspect(ctx context.Context, t Target) (Info, error) { return e.about(ctx, t, false) }

func (e *Engine) about(ctx context.Context, t Target, read bool) (Info, error) {
	l, err := e.locate(t)
	if err != nil {
		return Info{}, err
	}
	if l.at.Kind == catalog.External {
		if l.item == nil {
			return Info{}, fail(codePermission, "%s is outside of this space and was not registered; add it as a material first", l)
		}
		return e.aboutExternal(ctx, l, read)
	}
	if l.item != nil && l.item.State != catalog.Active {
		return describe(l.item, l.at, absent, e.blocked(l.item, "")), nil
	}
	seen, err := e.stat(l.at.Path)
	if err == nil && read && seen.image.Kind == kindFile {
		if seen, err = e.read(ctx, l.at.Path, maxDocument); err == nil {
			defer seen.close()
			err = e.noted(ctx, seen)
		}
	}
	if err != nil {
		return Info{}, err
	}
	if seen.image.Kind == kindAbsent && l.item == nil {
		return Info{}, fail(codeNotFound, "%s does not exist", l)
	}
	return describe(l.item, l.at, seen.image, e.blocked(l.item, l.at.Path)), nil
}

// aboutExternal describes a registered content outside of the space.
func (e *Engine) aboutExternal(ctx context.Context, l located, read bool) (Info, error) {
	if l.item.State != catalog.Active {
		return describe(l.item, l.at, absent, false), nil
	}
	limit := int64(-1) // not read
	if read {
		limit = maxDocument
	}
	seen, err := e.lookExternal(ctx, l.at.Path, limit)
	if codeOf(err) == codePermission {
		out := describe(l.item, l.at, absent, false)
		out.Status = PermissionRequired
		return out, nil
	}
	if err != nil {
		return Info{}, err
	}
	defer seen.close()
	if seen.data != nil {
		if _, err := e.store.Put(ctx, seen.data); err != nil {
			return Info{}, e.storeError(err)
		}
	}
	return describe(l.item, l.at, seen.image, false), nil
}

// List describes what lies directly in a folder, by name: files, folders, and records whose file is missing. The space itself lists external
// materials too. Nothing is read. Errors (codes): not_found, permission_required, invalid_input for a file.
func (e *Engine) List(ctx context.Context, folder string) ([]Info, error) {
	if folder == "" {
		folder = "."
	}
	l, err := e.locate(Target{Path: folder})
	if err != nil {
		return nil, err
	}
	entries, err := e.root.ReadDir(l.at.Path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fail(codeNotFound, "folder %s does not exist", l)
		}
		return nil, diskError("folder "+l.at.Path, err)
	}
	out := make([]Info, 0, len(entries))
	seen := map[string]bool{}
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if Hidden(entry.Name()) {
			continue
		}
		name := path.Join(l.at.Path, entry.Name())
		if entry.Type()&fs.ModeSymlink != 0 {
			if name, err = e.resolve(name); err != nil {
				continue // leads out of the space
			}
		}
		look, err := e.stat(name)
		if err != nil || look.image.Kind == kindAbsent {
			continue // gone, or a device
		}
		info := describe(e.itemAt(catalog.Here(name)), catalog.Here(name), look.image, false)
		if info.ID == "" {
			info.Revision = nil // it would need the bytes
		}
		info.BodyRead = false
		info.Body = nil
		info.Status = e.statusAt(info)
		seen[info.Location.Path] = true
		out = append(out, info)
	}
	e.mu.RLock()
	items := e.catalog.In(l.at.Path)
	if l.at.Path == "." {
		items = append(items, e.catalog.External()...)
	}
	e.mu.RUnlock()
	for _, i := range items {
		if !seen[i.Location.Path] {
			info := describe(i, i.Location, absent, false)
			info.BodyRead = false
			if i.Location.Kind == catalog.External {
				if info, err = e.aboutExternal(ctx, located{i, i.Location}, false); err != nil {
					return nil, err
				}
			}
			info.Status = e.statusAt(info)
			out = append(out, info)
		}
	}
	slices.SortStableFunc(out, func(a, b Info) int {
		return strings.Compare(path.Base(a.Location.Path), path.Base(b.Location.Path))
	})
	return out, nil
}

func (e *Engine) statusAt(i Info) Availability {
	var item *catalog.Item
	if i.ID != "" {
		item = e.itemOf(i.ID)
	}
	if e.blocked(item, i.Location.Path) {
		return InRecovery
	}
	return i.Status
}
