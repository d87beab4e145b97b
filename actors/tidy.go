package actors

import (
	"context"
	"time"

	"github.com/repa-app/repa/actors/engine"
	"github.com/repa-app/repa/cas"
)

const (
	// A space collects by itself when so many bytes, and this part of what is stored, would be given free: less is not worth the writing.
	tidyBytes = 16 << 20
	tidyShare = 4
	// tidyLater is when what could not be collected yet is looked at again: a little more than the store's usual grace.
	tidyLater = 11 * time.Minute
)

// tidiness is when a space collects by itself.
type tidiness struct {
	due     bool      // something happened since it was last looked at
	again   time.Time // look again then, whatever happens; zero: no need
	running bool
}

// tidied: a worker looked whether collecting is worth it, and did if so.
type tidied struct{ again time.Time }

func (tidied) forSpace() {}

// Idle implements engine.Idle: a space in which nothing runs collects when that is worth it. Its end ends the collection.
func (s *spaceActor) Idle(ctx *engine.Context[spaceMessage]) {
	now := s.backend.opts.Clock.Now()
	if s.tidy.running || !s.tidy.due && (s.tidy.again.IsZero() || now.Before(s.tidy.again)) || s.runs() {
		return
	}
	s.tidy = tidiness{running: true}
	store, log, id := s.space.Store(), s.backend.log, s.info.ID
	ctx.Go(func(work context.Context) spaceMessage {
		if !worthCollecting(work, store) {
			log.Debug("nothing is worth collecting", "space", id)
			return tidied{}
		}
		c, err := store.Collect(work)
		if err != nil {
			if work.Err() == nil {
				log.Warn("the space cannot give disk free", "space", id, "error", err)
			}
			return tidied{}
		}
		log.Info("unused objects were removed", "space", id, "objects", c.Objects, "bytes", c.Bytes, "waiting", c.Waiting)
		if c.Waiting > 0 {
			return tidied{now.Add(tidyLater)}
		}
		return tidied{}
	}, func(*engine.PanicError) spaceMessage { return tidied{} })
}

// runs reports whether a run of the space is not over.
func (s *spaceActor) runs() bool {
	for _, r := range s.state.Runs {
		if !r.Status.Terminal() {
			return true
		}
	}
	return len(s.admitting) > 0
}

// worthCollecting adds to what the store knows to be dead the objects that nobody holds any more; those that wait for their grace to pass
// are among them.
func worthCollecting(ctx context.Context, store *cas.Store) bool {
	stats := store.Stats()
	if stats.InDoubt != "" {
		return false
	}
	dead, enough := stats.Dead, max(tidyBytes, (stats.Stored+tidyShare-1)/tidyShare)
	for o := range store.All() {
		if dead >= enough || ctx.Err() != nil {
			break
		}
		if len(store.Owners(o.ID)) == 0 {
			dead += o.Stored
		}
	}
	return dead >= enough && ctx.Err() == nil
}
