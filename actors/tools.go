package actors

import (
	"context"

	"github.com/repa-app/repa/actors/ledger"
	"github.com/repa-app/repa/agent/tool"
	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/cas/recordlog"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/space"
)

// sessionTools are the tools of one session over its space. They live as long as the session is loaded and remember what it read.
type sessionTools struct{ set *tool.Set }

func newSessionTools(b *Backend, s *space.Space, session protocol.ID) *sessionTools {
	f := spaceFiles{b, s}
	return &sessionTools{tool.NewSet(tool.Services{Reader: f, Searcher: f, Editor: f, Keeper: sessionShelf{s.Store(), sessionOwner(session)}})}
}

// sessionShelf keeps outputs in the space's store, held by the session.
type sessionShelf struct {
	store *cas.Store
	owner cas.Owner
}

// Keep implements tool.Keeper.
func (s sessionShelf) Keep(ctx context.Context, mediaType, text string) (tool.Kept, error) {
	ids, err := s.store.PutHeld(ctx, s.owner, []byte(text))
	if err != nil {
		return tool.Kept{}, err
	}
	return tool.Kept{ID: ids[0].String(), MediaType: mediaType, Size: int64(len(text))}, nil
}

// spaceFiles fills the interfaces of the tools with a space and tells front ends what changed.
type spaceFiles struct {
	backend *Backend
	space   *space.Space
}

// Read implements tool.Reader.
func (f spaceFiles) Read(ctx context.Context, path string) (tool.Document, error) {
	d, err := f.space.Read(ctx, path)
	return tool.Document{Path: d.Path, Text: d.Text, Revision: d.Revision, Size: d.Size}, err
}

// Search implements tool.Searcher.
func (f spaceFiles) Search(ctx context.Context, query string, limit int) ([]tool.Match, bool, error) {
	r, err := f.space.Search(ctx, query, limit)
	out := make([]tool.Match, len(r.Matches))
	for i, m := range r.Matches {
		out[i] = tool.Match{Path: m.Path, Line: m.Line, Text: m.Text}
	}
	return out, r.More, err
}

// Write implements tool.Editor.
func (f spaceFiles) Write(ctx context.Context, path, text string, base *string) (tool.Change, error) {
	return f.changed(f.space.Write(ctx, path, text, base))
}

// Edit implements tool.Editor.
func (f spaceFiles) Edit(ctx context.Context, path string, edits []tool.Edit) (tool.Change, error) {
	converted := make([]space.Edit, len(edits))
	for i, e := range edits {
		converted[i] = space.Edit(e)
	}
	return f.changed(f.space.Edit(ctx, path, converted))
}

func (f spaceFiles) changed(c space.Change, err error) (tool.Change, error) {
	if err != nil {
		return tool.Change{}, err
	}
	result := &protocol.ContentChangeResult{
		OperationID: protocol.ID(c.OperationID),
		Changes:     []protocol.ContentChange{{Path: c.Path, Before: revision(c.Before), After: revision(c.After)}},
		Contents:    []protocol.ContentInfo{},
	}
	f.backend.feed.Publish(protocol.Change{Type: protocol.ChangeContent, SpaceID: protocol.ID(f.space.ID()),
		Revision: string(f.backend.newID()), Paths: []string{c.Path}, Result: result})
	return tool.Change{OperationID: c.OperationID, Path: c.Path, Before: c.Before, After: c.After, Created: c.Before == nil, Diff: c.Diff}, nil
}

func revision(r *string) *protocol.Revision {
	if r == nil {
		return nil
	}
	out := protocol.Revision(*r)
	return &out
}

// appendFacts makes facts durable, as one.
func appendFacts(ctx context.Context, log *recordlog.Log, facts ...ledger.Fact) error {
	records, err := ledger.Records(facts...)
	if err != nil {
		return err
	}
	return log.Append(ctx, records...)
}
