package actors

import (
	"context"
	"errors"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/space"
)

// prepare keeps bytes for a while for whoever was told of them.
func (b *Backend) prepare(ctx context.Context, s *space.Space, ref protocol.ResourceRef) (protocol.ResourcePreparation, error) {
	id, err := cas.ParseID(string(ref.ID))
	if err != nil {
		return protocol.ResourcePreparation{}, protocol.Errorf(protocol.CodeInvalidInput, "resource %q: want 64 hexadecimal digits", ref.ID)
	}
	out := protocol.ResourcePreparation{ID: b.newID(), Resource: ref}
	if err := s.Store().Lease(ctx, leaseOwner(out.ID), preparationLife, id); err != nil {
		return out, storeError(s, err)
	}
	out.ExpiresAt = protocol.MillisOf(b.opts.Clock.Now().Add(preparationLife))
	return out, nil
}

func leaseOwner(id protocol.ID) cas.Owner { return cas.Owner{Kind: cas.OwnerLease, ID: string(id)} }

// storeError gives an error of a space's store its code and a sentence.
func storeError(s *space.Space, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, cas.ErrNotFound):
		return protocol.Errorf(protocol.CodeRevisionUnavailable, "the bytes are not kept in %s", s.Path())
	case errors.Is(err, cas.ErrClosed):
		return protocol.Errorf(protocol.CodeSpaceBusy, "%s is being closed", s.Path())
	}
	return protocol.Errorf(protocol.CodeStorage, "the store of %s: %v; check the disk and try again", s.Path(), err)
}
