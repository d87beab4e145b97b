package actors

import (
	"context"
	"log/slog"
	"slices"

	"github.com/repa-app/repa/actors/ledger"
	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/protocol"
)

// reconcileRequests makes each request hold its input and nothing else, and ends the holds of requests that the journal does not know: their
// admission did not come to its end. It runs before anything is admitted. What cannot be changed now is tried again when the space is
// next opened.
func reconcileRequests(ctx context.Context, store *cas.Store, state *ledger.State, log *slog.Logger) {
	if state.Newer {
		return // records that cannot be read may tell of requests
	}
	for owner := range store.AllOwners(cas.OwnerRequest) {
		var want []cas.ID
		for _, t := range state.Texts[protocol.ID(owner.ID)] {
			if id, err := cas.ParseID(t.ID); err == nil && !slices.Contains(want, id) {
				want = append(want, id)
			}
		}
		if sameIDs(store.Held(owner), want) {
			continue
		}
		if err := store.Replace(ctx, owner, want...); err != nil {
			log.Warn("what a request holds cannot be put right", "owner", owner.String(), "error", err)
		}
	}
}

// sameIDs reports whether two lists without repetitions have the same members.
func sameIDs(a, b []cas.ID) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(id cas.ID) bool { return !slices.Contains(b, id) })
}

// releaseSessions ends the holds of those owners that have no session, given all session files. Owners must have been listed before the files
// were: a session has its file before it holds anything.
func (l *loadedSpace) releaseSessions(ctx context.Context, log *slog.Logger, owners []cas.Owner, known map[protocol.ID]bool) {
	for _, owner := range owners {
		if known[protocol.ID(owner.ID)] {
			continue
		}
		if err := l.space.Store().Release(ctx, owner); err != nil && ctx.Err() == nil {
			log.Warn("the holds of a session that is gone cannot be ended", "space", l.space.ID(), "owner", owner.String(), "error", err)
		}
	}
}
