package actors

import (
	"context"
	"errors"

	"github.com/repa-app/repa/actors/engine"
	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/protocol"
)

// giveStore asks for the space's store, which is safe for concurrent use.
type giveStore struct{ engine.Reply[*cas.Store] }

func (giveStore) forSpace() {}

// collect frees what nobody holds in a space's store. It runs on a worker of the socket, beside everything else that the space does.
func (b *Backend) collect(ctx context.Context, id protocol.ID) (protocol.CollectResult, error) {
	store, err := askSpace(ctx, b, id, func(r engine.Reply[*cas.Store]) spaceMessage { return giveStore{r} })
	if err != nil {
		return protocol.CollectResult{}, err
	}
	c, err := store.Collect(ctx)
	switch {
	case errors.Is(err, cas.ErrClosed):
		return protocol.CollectResult{}, protocol.Errorf(protocol.CodeSpaceBusy, "the space was closed during the collection; what was freed stays freed")
	case err != nil && ctx.Err() == nil:
		return protocol.CollectResult{}, protocol.Errorf(protocol.CodeInvalidStorage, "%v", err)
	}
	return protocol.CollectResult{Removed: protocol.Int(c.Objects), Bytes: protocol.Int(max(0, c.Bytes))}, err
}
