package actors

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"

	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/space"
	"github.com/repa-app/repa/space/watch"
)

const (
	// maxOutside is how large a text may be whose bytes are kept when another program changed it.
	maxOutside = 4 << 20
	// observeChunk is how many paths are looked at before a save in between gets its turn.
	observeChunk = 64

	cacheFolder = "cache"
	seenFile    = "seen"
	// cacheTag marks a folder that backups may leave out (bford.info/cachedir).
	cacheTag = "Signature: 8a477f597d28d172789f06886806bc55\n# Repa can make everything in this folder again.\n"
)

// outside follows what other programs do in one space. What it knows of the files is kept in the cache from one opening to the next.
type outside struct {
	backend *Backend
	space   *space.Space
	cache   vfs.FS // nil: it cannot be kept
	tree    *watch.Tree
	watched *watch.Space
}

// followOutside begins to watch a space. What keeps the table from being used is logged: it is made anew.
func followOutside(b *Backend, s *space.Space) *outside {
	o := &outside{backend: b, space: s, tree: watch.NewTree(s.Root())}
	var err error
	if o.cache, err = s.Cache(cacheFolder, cacheTag); err == nil {
		err = o.tree.Load(o.cache, seenFile)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.log.Warn("what was known of the files is not used", "space", s.ID(), "error", err)
	}
	o.watched = b.watcher.Follow(s.Path(), o.tree, o.report)
	return o
}

// report writes down what is new and tells front ends. The first report of a space is what there is, and a fresh file looks as it did: of these only what
// the history knows otherwise is a change.
func (o *outside) report(ctx context.Context, r watch.Report) {
	changed := r.Changed
	if r.First {
		changed = o.space.Content().Remembered(changed)
	}
	changed = append(changed, o.space.Content().Remembered(r.Fresh)...)
	for paths := range slices.Chunk(changed, observeChunk) {
		found, err := o.space.Content().Observe(ctx, maxOutside, paths...)
		if err != nil {
			if ctx.Err() == nil {
				o.backend.log.Warn("changes by other programs cannot be noted", "space", o.space.ID(), "error", err)
			}
			return
		}
		if len(found.Changed) > 0 {
			o.backend.feed.Publish(protocol.Change{Type: protocol.ChangeContent, SpaceID: protocol.ID(o.space.ID()),
				Revision: string(o.backend.newID()), Paths: found.Changed})
		}
		for _, result := range found.Relinked {
			publishContent(o.backend, o.space, result)
		}
	}
}

// close ends watching and keeps the table.
func (o *outside) close(log *slog.Logger) {
	o.watched.Close()
	if o.cache == nil {
		return
	}
	if err := errors.Join(o.tree.Save(o.cache, seenFile), o.cache.Close()); err != nil {
		log.Warn("what is known of the files is not kept", "space", o.space.ID(), "error", err)
	}
}
