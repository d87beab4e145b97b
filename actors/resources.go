package actors

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/repa-app/repa/actors/engine"
	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/server"
)

// preparationLife is how long an upload stays when nobody holds it: protocol version 1 fixes it.
const preparationLife = 10 * time.Minute

// OpenResource implements server.Backend. While a resource is open the backend does not end by itself.
func (b *Backend) OpenResource(ctx context.Context, space, id protocol.ID) (server.Resource, error) {
	if err := b.gate(protocol.GateOpen); err != nil {
		return nil, err
	}
	object, err := cas.ParseID(string(id))
	if err != nil {
		return nil, protocol.Errorf(protocol.CodeInvalidInput, "%s is no resource: %v", id, err)
	}
	b.active.begin()
	opened, err := b.openObject(ctx, space, object)
	if err != nil {
		b.active.end()
		return nil, err
	}
	return &openResource{Object: opened, end: sync.OnceFunc(b.active.end)}, nil
}

func (b *Backend) openObject(ctx context.Context, space protocol.ID, id cas.ID) (*cas.Object, error) {
	store, err := b.store(ctx, space)
	if err != nil {
		return nil, err
	}
	opened, err := store.Open(ctx, id)
	if errors.Is(err, cas.ErrNotFound) {
		return nil, protocol.Errorf(protocol.CodeRevisionUnavailable, "resource %s is not in space %s, or nobody held it any more and it was collected", id, space)
	}
	return opened, err
}

// openResource is an object that counts as activity until it is closed.
type openResource struct {
	*cas.Object
	end func()
}

// Close implements io.Closer.
func (r *openResource) Close() error {
	defer r.end()
	return r.Object.Close()
}

// Upload implements server.Backend: the bytes are durable and leased for preparationLife when it returns.
func (b *Backend) Upload(ctx context.Context, host server.HostIdentity, space protocol.ID, mediaType string, body io.Reader) (protocol.ResourcePreparation, error) {
	var none protocol.ResourcePreparation
	if err := b.gate(protocol.GateRunning); err != nil {
		return none, err
	}
	b.active.begin()
	defer b.active.end()
	uploader, err := b.findHost(ctx, host.ID)
	if err != nil {
		if domain := (*protocol.Error)(nil); errors.As(err, &domain) && domain.Reason == protocol.CodeClosed {
			return none, server.ErrUnknownHost
		}
		return none, err
	}
	store, err := b.store(ctx, space)
	if err != nil {
		return none, err
	}
	id, err := store.PutReader(ctx, body)
	if err != nil {
		return none, err
	}
	// Whoever comes with the key of a host that detached is a new host, to whom this does not belong.
	if now, err := b.findHost(ctx, host.ID); err != nil {
		return none, err
	} else if now != uploader {
		return none, protocol.Errorf(protocol.CodeClosed, "this host detached during its upload; upload again")
	}
	made := protocol.ResourcePreparation{
		ID:        b.newID(),
		Resource:  protocol.ResourceRef{SpaceID: space, ID: protocol.ID(id.String()), MediaType: mediaType},
		ExpiresAt: b.now() + protocol.Millis(preparationLife.Milliseconds()),
	}
	return made, store.Lease(ctx, cas.Owner{Kind: cas.OwnerLease, ID: string(made.ID)}, preparationLife, id)
}

// store finds the store of an open space, which is safe for concurrent use.
func (b *Backend) store(ctx context.Context, space protocol.ID) (*cas.Store, error) {
	return askSpace(ctx, b, space, func(r engine.Reply[*cas.Store]) spaceMessage { return giveStore{r} })
}

// findHost finds the actor of a host. Errors (codes): closed when it is not there.
func (b *Backend) findHost(ctx context.Context, id protocol.ID) (*engine.Ref[hostMessage], error) {
	return engine.Ask(ctx, b.coordinator, func(r engine.Reply[*engine.Ref[hostMessage]]) coordinatorMessage { return findHost{r, id} })
}
