package content

import (
	"context"
	"path"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/space/catalog"
)

// maxSnapshot bounds the files of one snapshot: a folder that somebody shows has far fewer.
const maxSnapshot = 10_000

// Snapshot is the contents of targets at one moment, each as it was; Bodies are their bytes in the store. Nobody holds them yet.
type Snapshot struct {
	Contents []Info
	Bodies   []cas.ID
}

// Snapshot reads targets with everything in their folders and all parts of their items into the store. A registered content outside of the space comes
// without its bytes. Errors (codes): not_found, external_reference for a file outside that is not registered, recovery_required, content_limit above
// 10,000 files, those of Get.
func (e *Engine) Snapshot(ctx context.Context, targets []Target) (Snapshot, error) {
	s := &snapshot{e: e, ctx: ctx, seen: map[string]bool{}}
	for _, t := range targets {
		l, err := e.locate(t)
		if err == nil {
			err = s.add(l, t.ID != "")
		}
		if err != nil {
			return Snapshot{}, err
		}
	}
	return s.out, nil
}

type snapshot struct {
	e    *Engine
	ctx  context.Context
	seen map[string]bool
	out  Snapshot
}

// add takes one content with what belongs to it.
func (s *snapshot) add(l located, byIdentity bool) error {
	switch {
	case l.at.Kind == catalog.External && l.item == nil:
		return fail("external_reference", "%s is outside of this space and was not registered", l)
	case l.at.Kind == catalog.External:
		return s.take(describe(l.item, l.at, absent, false), nil)
	case l.item != nil && l.item.State != catalog.Active:
		return fail(codeNotFound, "content %s was removed", l.item.ID)
	case byIdentity:
		if err := s.e.usable(l); err != nil {
			return err
		}
	}
	seen, err := s.e.read(s.ctx, l.at.Path, maxDocument)
	if err != nil {
		return err
	}
	defer seen.close()
	if seen.image.Kind == kindAbsent {
		return fail(codeNotFound, "%s does not exist", l)
	}
	if seen.image.Kind == kindFile {
		if err := s.e.noted(s.ctx, seen); err != nil {
			return err
		}
	}
	known := s.seen[l.at.Path]
	if err := s.take(describe(l.item, l.at, seen.image, false), seen.image.Body); err != nil || known {
		return err
	}
	if seen.image.Kind == kindDirectory {
		entries, err := s.e.root.ReadDir(l.at.Path)
		if err != nil {
			return diskError("folder "+l.at.Path, err)
		}
		for _, entry := range entries {
			if Hidden(entry.Name()) || !entry.IsDir() && !entry.Type().IsRegular() {
				continue
			}
			at := catalog.Here(path.Join(l.at.Path, entry.Name()))
			if err := s.add(located{s.e.itemAt(at), at}, false); err != nil {
				return err
			}
		}
	}
	if l.item == nil {
		return nil
	}
	for _, m := range l.item.Members {
		part := located{at: catalog.Location{}}
		if m.Target.ID != "" {
			i := s.e.itemOf(m.Target.ID)
			if i == nil {
				return fail(codeNotFound, "content %s is a part of %s and is not there", m.Target.ID, l)
			}
			part = located{i, i.Location}
		} else {
			part = located{s.e.itemAt(*m.Target.Location), *m.Target.Location}
		}
		if s.seen[part.at.Path] || s.e.blocked(part.item, part.at.Path) {
			continue
		}
		if err := s.add(part, false); err != nil {
			return err
		}
	}
	return nil
}

func (s *snapshot) take(i Info, body *cas.ID) error {
	if s.seen[i.Location.Path] {
		return nil
	}
	s.seen[i.Location.Path] = true
	if len(s.out.Contents) >= maxSnapshot {
		return fail(codeLimit, "more than %d files cannot be held at once; choose a smaller folder", maxSnapshot)
	}
	s.out.Contents = append(s.out.Contents, i)
	if body != nil {
		s.out.Bodies = append(s.out.Bodies, *body)
	}
	return nil
}
