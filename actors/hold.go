package actors

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/repa-app/repa/actors/engine"
	"github.com/repa-app/repa/actors/wire"
	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/space"
	"github.com/repa-app/repa/space/catalog"
	"github.com/repa-app/repa/space/content"
)

const (
	// holdLife is how long a hold lasts after its host was last heard of, and holdBeat how often a connected host is: protocol version 1 fixes both.
	holdLife = time.Hour
	holdBeat = 30 * time.Second
	// maxHold bounds the description of a hold.
	maxHold = 16 << 20
)

// heldBy is what is kept of a hold, as an object of the store that the hold itself holds: so it is there as long as the hold is, also after a restart.
type heldBy struct {
	Host protocol.ID   `json:"host"`
	Hash string        `json:"hash"` // of what was asked for
	Hold protocol.Hold `json:"hold"`
}

// A hold has two owners: a lease for its bytes, which ends by itself, and one for its description.
func holdLease(id protocol.ID) cas.Owner {
	return cas.Owner{Kind: cas.OwnerLease, ID: "hold-" + string(id)}
}
func holdRecord(id protocol.ID) cas.Owner {
	return cas.Owner{Kind: cas.OwnerDisplay, ID: "hold-" + string(id)}
}

// answerHold works on a call of the family resource; false when it is of another.
func (b *Backend) answerHold(ctx context.Context, host protocol.ID, method string, params any) (any, bool, error) {
	switch p := params.(type) {
	case protocol.HoldParams:
		return answered(b.hold(ctx, host, p))
	case protocol.ContentRef:
		s, err := b.contents(ctx, p.SpaceID)
		if err != nil {
			return nil, true, err
		}
		switch method {
		case protocol.ResourceHoldGet.Name:
			return answered(b.currentHold(ctx, s, host, p.ID))
		case protocol.ResourceHoldRenew.Name:
			return answered(b.renewHold(ctx, s, host, p.ID))
		case protocol.ResourceRelease.Name:
			return answered(protocol.Null{}, b.releaseHold(ctx, s, host, p.ID))
		}
	}
	return nil, false, nil
}

// hold keeps contents as they are now, and resources, for a host. The same id with the same input is the same hold, renewed.
func (b *Backend) hold(ctx context.Context, host protocol.ID, p protocol.HoldParams) (protocol.Hold, error) {
	if len(p.Targets) == 0 && len(p.Resources) == 0 {
		return protocol.Hold{}, protocol.Errorf(protocol.CodeInvalidInput, "a hold names neither contents nor resources")
	}
	s, err := b.contents(ctx, p.SpaceID)
	if err != nil {
		return protocol.Hold{}, err
	}
	hash := catalog.Digest("hold", p)
	b.holding.Lock()
	defer b.holding.Unlock()
	kept, err := b.readHold(ctx, s, p.ID)
	if err == nil {
		if kept.Host != host {
			return protocol.Hold{}, errOtherHost(p.ID)
		}
		if kept.Hash != hash {
			return protocol.Hold{}, protocol.Errorf(protocol.CodeRequestConflict, "hold %s is of something else; use a new id", p.ID)
		}
		return b.renewHold(ctx, s, host, p.ID)
	}
	if codeOf(err) != string(protocol.CodeNotFound) {
		return protocol.Hold{}, err
	}
	made, ids, err := b.gatherHold(ctx, s, p)
	if err != nil {
		return protocol.Hold{}, err
	}
	record, err := json.Marshal(heldBy{host, hash, made})
	if err == nil {
		_, err = s.Store().PutHeld(ctx, holdRecord(p.ID), record)
	}
	if err == nil {
		err = s.Store().Lease(ctx, holdLease(p.ID), holdLife, ids...)
	}
	if err != nil {
		_ = s.Store().Release(ctx, holdRecord(p.ID)) // the next open does it
		if errors.Is(err, cas.ErrLeaseEnded) {
			return protocol.Hold{}, errHoldEnded(p.ID)
		}
		return protocol.Hold{}, storeError(s, err)
	}
	if err := b.tellHost(ctx, host, holdTaken{s, p.ID}); err != nil { // it left meanwhile
		return protocol.Hold{}, errors.Join(err, b.endHold(context.WithoutCancel(ctx), s, p.ID))
	}
	made.ExpiresAt = b.expires()
	return made, nil
}

// gatherHold reads what a hold is to keep.
func (b *Backend) gatherHold(ctx context.Context, s *space.Space, p protocol.HoldParams) (protocol.Hold, []cas.ID, error) {
	out := protocol.Hold{ID: p.ID, SpaceID: p.SpaceID, Contents: []protocol.ContentSnapshot{}, Resources: []protocol.ResourceRef{}}
	var targets []content.Target
	for _, t := range p.Targets {
		id, target := wire.DomainTarget(t)
		if id != p.SpaceID {
			return out, nil, protocol.Errorf(protocol.CodeInvalidInput, "a target lies in space %s; a hold is of one space", id)
		}
		targets = append(targets, target)
	}
	snapshot, err := s.Content().Snapshot(ctx, targets)
	if err != nil {
		return out, nil, err
	}
	ids := snapshot.Bodies
	for _, i := range snapshot.Contents {
		v := wire.ContentInfo(p.SpaceID, i)
		c := protocol.ContentSnapshot{Target: v.Target, Content: v}
		if i.Body != nil {
			c.Resource = &protocol.ResourceRef{SpaceID: p.SpaceID, ID: protocol.ID(*i.Body), MediaType: i.MediaType}
		}
		out.Contents = append(out.Contents, c)
	}
	for _, r := range p.Resources {
		id, err := cas.ParseID(string(r.ID))
		if err != nil || r.SpaceID != p.SpaceID || !s.Store().Has(id) {
			return out, nil, protocol.Errorf(protocol.CodeNotFound, "resource %s is not in space %s", r.ID, p.SpaceID)
		}
		ids = append(ids, id)
		out.Resources = append(out.Resources, r)
	}
	return out, ids, nil
}

func errOtherHost(id protocol.ID) error {
	return protocol.Errorf(protocol.CodePermissionRequired, "hold %s belongs to another front end", id)
}

func errHoldEnded(id protocol.ID) error {
	return protocol.Errorf(protocol.CodeLeaseExpired, "hold %s has ended; take a new one under a new id", id)
}

func (b *Backend) expires() protocol.Millis {
	return protocol.MillisOf(b.opts.Clock.Now().Add(holdLife))
}

// readHold finds a hold that lasts. Errors (codes): not_found, lease_expired.
func (b *Backend) readHold(ctx context.Context, s *space.Space, id protocol.ID) (heldBy, error) {
	var out heldBy
	objects := s.Store().Held(holdRecord(id))
	if len(objects) == 0 {
		return out, protocol.Errorf(protocol.CodeNotFound, "there is no hold %s in space %s", id, s.ID())
	}
	if _, lasts := s.Store().Remains(holdLease(id)); !lasts {
		return out, errHoldEnded(id)
	}
	data, err := s.Store().Get(ctx, objects[0], maxHold)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	return out, storeError(s, err)
}

func (b *Backend) currentHold(ctx context.Context, s *space.Space, host, id protocol.ID) (protocol.Hold, error) {
	kept, err := b.readHold(ctx, s, id)
	if err != nil {
		return protocol.Hold{}, err
	}
	if kept.Host != host {
		return protocol.Hold{}, errOtherHost(id)
	}
	if remains, lasts := s.Store().Remains(holdLease(id)); lasts {
		kept.Hold.ExpiresAt = protocol.MillisOf(b.opts.Clock.Now().Add(remains))
	}
	return kept.Hold, nil
}

func (b *Backend) renewHold(ctx context.Context, s *space.Space, host, id protocol.ID) (protocol.Hold, error) {
	hold, err := b.currentHold(ctx, s, host, id)
	if err != nil {
		return hold, err
	}
	if err := s.Store().Renew(ctx, holdLease(id), holdLife); err != nil {
		if errors.Is(err, cas.ErrLeaseEnded) {
			return hold, errHoldEnded(id)
		}
		return hold, storeError(s, err)
	}
	hold.ExpiresAt = b.expires()
	return hold, b.tellHost(ctx, host, holdTaken{s, id})
}

// releaseHold ends a hold. One that has ended, or never was, needs nothing.
func (b *Backend) releaseHold(ctx context.Context, s *space.Space, host, id protocol.ID) error {
	kept, err := b.readHold(ctx, s, id)
	switch codeOf(err) {
	case string(protocol.CodeNotFound), string(protocol.CodeLeaseExpired):
		return nil
	}
	if err != nil {
		return err
	}
	if kept.Host != host {
		return errOtherHost(id)
	}
	return b.endHold(ctx, s, id)
}

// endHold ends a lease first: without it the description says nothing.
func (b *Backend) endHold(ctx context.Context, s *space.Space, id protocol.ID) error {
	err := s.Store().EndLease(ctx, holdLease(id))
	if err == nil {
		err = s.Store().Release(ctx, holdRecord(id))
	}
	return storeError(s, err)
}

func codeOf(err error) string {
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		return coded.Code()
	}
	return ""
}

// dropEndedHolds ends the descriptions of holds whose lease has ended.
func dropEndedHolds(ctx context.Context, store *cas.Store) error {
	for owner := range store.AllOwners(cas.OwnerDisplay) {
		if _, lasts := store.Remains(cas.Owner{Kind: cas.OwnerLease, ID: owner.ID}); !lasts {
			if err := store.Release(ctx, owner); err != nil {
				return err
			}
		}
	}
	return nil
}

// tellHost sends a message to the actor of a host.
func (b *Backend) tellHost(ctx context.Context, id protocol.ID, m hostMessage) error {
	ref, err := engine.Ask(ctx, b.coordinator, func(r engine.Reply[*engine.Ref[hostMessage]]) coordinatorMessage { return findHost{r, id} })
	if err != nil {
		return err
	}
	return ref.Post(m)
}
