package actors

import (
	"context"

	"github.com/repa-app/repa/actors/wire"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/space/catalog"
	"github.com/repa-app/repa/space/content"
	"github.com/repa-app/repa/space/text"
)

// change is a change of contents that waits for its space.
type change func(*content.Engine) (content.Result, error)

// contentChange reads a call that changes contents: what it does, and in which space; nil for another call.
func contentChange(ctx context.Context, method string, params any) (change, protocol.ID) {
	switch p := params.(type) {
	case protocol.ContentWriteParams:
		id, target := wire.DomainTarget(p.Target)
		w := content.Write{ID: string(p.OperationID), Target: target, Text: p.Value.Text, Base: base(p.Base)}
		if p.Value.Resource != nil {
			w.Resource = string(p.Value.Resource.ID)
		}
		return func(e *content.Engine) (content.Result, error) { return e.Write(ctx, learner, w) }, id
	case protocol.ContentEditParams:
		id, target := wire.DomainTarget(p.Target)
		w := content.Edits{ID: string(p.OperationID), Target: target}
		for _, e := range p.Edits {
			w.Edits = append(w.Edits, text.Edit{Old: e.OldText, New: e.NewText})
		}
		return func(e *content.Engine) (content.Result, error) {
			r, _, err := e.Edit(ctx, learner, w)
			return r, err
		}, id
	case protocol.ContentPatchParams:
		return patchContent(ctx, p), p.SpaceID
	case protocol.ContentTransferParams:
		id, target := wire.DomainTarget(p.Target)
		t := content.Transfer{ID: string(p.OperationID), Target: target, Destination: p.Destination.Path, Base: string(p.Base), Container: p.Container}
		if p.Destination.Kind != catalog.Relative {
			return refuse(protocol.Errorf(protocol.CodePermissionRequired, "%s is outside of this space; choose a place in it", p.Destination.Path)), id
		}
		if method == protocol.ContentCopy.Name {
			return func(e *content.Engine) (content.Result, error) { return e.Copy(ctx, learner, t) }, id
		}
		return func(e *content.Engine) (content.Result, error) { return e.Move(ctx, learner, t) }, id
	case protocol.MaterialCollectParams:
		id, target := wire.DomainTarget(p.Target)
		c := content.Collect{ID: string(p.OperationID), Target: target, Destination: p.Destination.Path, Base: string(p.Base)}
		if p.Destination.Kind != catalog.Relative {
			return refuse(protocol.Errorf(protocol.CodePermissionRequired, "%s is outside of this space; choose a place in it", p.Destination.Path)), id
		}
		return func(e *content.Engine) (content.Result, error) { return e.Collect(ctx, learner, c) }, id
	case protocol.ContentAssociateParams:
		a := content.Associate{ID: string(p.OperationID), Location: wire.DomainLocation(p.Location), Role: catalog.Role(p.Role), Item: string(p.ID), Origin: wire.DomainOrigin(p.Origin)}
		return func(e *content.Engine) (content.Result, error) { return e.Associate(ctx, learner, a) }, p.SpaceID
	case protocol.ContentRelinkParams:
		r := content.Relink{ID: string(p.OperationID), Item: string(p.Ref.ID), Location: wire.DomainLocation(p.Location), Base: string(p.Base)}
		return func(e *content.Engine) (content.Result, error) { return e.Relink(ctx, learner, r) }, p.Ref.SpaceID
	case protocol.ContentRemoveParams:
		id, target := wire.DomainTarget(p.Target)
		r := content.Remove{ID: string(p.OperationID), Target: target, Base: string(p.Base), Detach: p.Detach}
		return func(e *content.Engine) (content.Result, error) { return e.Remove(ctx, learner, r) }, id
	case protocol.ContentCompositionParams:
		if err := ownParts(p.Ref.SpaceID, p.Members, p.Resources); err != nil {
			return refuse(err), p.Ref.SpaceID
		}
		c := content.Composition{ID: string(p.OperationID), Item: string(p.Ref.ID), Base: string(p.Base), Members: wire.DomainMembers(p.Members), Resources: wire.DomainResources(p.Resources)}
		return func(e *content.Engine) (content.Result, error) { return e.SetComposition(ctx, learner, c) }, p.Ref.SpaceID
	case protocol.OperationUndoParams:
		return func(e *content.Engine) (content.Result, error) {
			return e.Undo(ctx, learner, string(p.OperationID), string(p.UndoOperationID))
		}, p.SpaceID
	}
	return nil, ""
}

func refuse(err error) change {
	return func(*content.Engine) (content.Result, error) { return content.Result{}, err }
}

func base(b protocol.WriteBase) content.Base {
	if b.Revision != nil {
		return content.Base{Revision: string(*b.Revision)}
	}
	return content.Base{Absent: true}
}

// ownParts refuses parts of other spaces: a composition stays whole when its space is moved or copied.
func ownParts(id protocol.ID, members []protocol.ContentMember, resources []protocol.ResourceRef) error {
	for _, m := range members {
		if other, _ := wire.DomainTarget(m.Target); other != id {
			return protocol.Errorf(protocol.CodeInvalidInput, "a part lies in space %s; only contents of the same space can be parts", other)
		}
	}
	for _, r := range resources {
		if r.SpaceID != id {
			return protocol.Errorf(protocol.CodeInvalidInput, "resource %s belongs to space %s; upload it to this one", r.ID, r.SpaceID)
		}
	}
	return nil
}

func patchContent(ctx context.Context, p protocol.ContentPatchParams) change {
	w := content.Patch{ID: string(p.OperationID), Text: p.Patch}
	for _, b := range p.Bases {
		id, target := wire.DomainTarget(b.Target)
		if id != p.SpaceID {
			return refuse(protocol.Errorf(protocol.CodeInvalidInput, "a base names a file of space %s; a patch changes one space", id))
		}
		w.Bases = append(w.Bases, content.PatchBase{Target: target, Base: base(b.Base)})
	}
	for _, r := range p.Registrations {
		if err := ownParts(p.SpaceID, r.Members, r.Resources); err != nil {
			return refuse(err)
		}
		w.Registrations = append(w.Registrations, content.Registration{Path: r.Path, Role: catalog.Role(r.Role), Item: string(r.ID), Origin: wire.DomainOrigin(r.Origin),
			Members: wire.DomainMembers(r.Members), Resources: wire.DomainResources(r.Resources)})
	}
	for _, c := range p.Compositions {
		if err := ownParts(p.SpaceID, c.Members, c.Resources); err != nil {
			return refuse(err)
		}
		w.Compositions = append(w.Compositions, content.Recompose{Item: string(c.Ref.ID), Base: string(c.Base), Members: wire.DomainMembers(c.Members), Resources: wire.DomainResources(c.Resources)})
	}
	return func(e *content.Engine) (content.Result, error) {
		r, _, err := e.ApplyPatch(ctx, learner, w)
		return r, err
	}
}
