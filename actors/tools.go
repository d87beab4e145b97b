package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/repa-app/repa/actors/ledger"
	"github.com/repa-app/repa/actors/wire"
	"github.com/repa-app/repa/agent/tool"
	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/cas/recordlog"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/space"
	"github.com/repa-app/repa/space/catalog"
	"github.com/repa-app/repa/space/content"
	"github.com/repa-app/repa/space/text"
)

// sessionTools are the tools of one session over its space. They live as long as the session is loaded and remember what it read.
type sessionTools struct{ set *tool.Set }

func newSessionTools(b *Backend, s *space.Space, session protocol.ID) *sessionTools {
	f := spaceFiles{b, s, session}
	return &sessionTools{tool.NewSet(tool.Services{Reader: f, Searcher: f, Editor: f, Inspector: f, Keeper: sessionShelf{s.Store(), sessionOwner(session)}})}
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

// runContext carries the run for which a tool works.
type runContext struct{}

func withRun(ctx context.Context, run protocol.Run) context.Context {
	return context.WithValue(ctx, runContext{}, run)
}

// spaceFiles fills the interfaces of the tools with a space and tells front ends what changed.
type spaceFiles struct {
	backend *Backend
	space   *space.Space
	session protocol.ID
}

// by says in whose name a tool changes something.
func (f spaceFiles) by(ctx context.Context) content.By {
	by := content.By{Actor: content.Agent, Session: string(f.session)}
	if run, ok := ctx.Value(runContext{}).(protocol.Run); ok {
		by.Run = string(run.ID)
		if len(run.RequestIDs) > 0 {
			by.Request = string(run.RequestIDs[0])
		}
	}
	return by
}

// targetOf reads what a model names: a path, or a reference to a registered content.
func targetOf(path string) content.Target {
	for _, prefix := range []string{"repa:document/", "repa:material/"} {
		if id, ok := strings.CutPrefix(path, prefix); ok && protocol.ID(id).Valid() {
			return content.Target{ID: id}
		}
	}
	return content.At(path)
}

// maxImage bounds an image that a model is shown: what the providers take.
const maxImage = 5 << 20

// images are the media types that models look at.
var images = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"}

// Read implements tool.Reader. A reference to a resource reads kept bytes.
func (f spaceFiles) Read(ctx context.Context, path string) (tool.Document, error) {
	if id, ok := strings.CutPrefix(path, "repa:resource/"); ok {
		return f.readResource(ctx, path, id)
	}
	if info, err := f.space.Content().Inspect(ctx, targetOf(path)); err == nil && slices.Contains(images, info.MediaType) {
		b, err := f.space.Content().ReadBytes(ctx, targetOf(path), maxImage)
		return tool.Document{ID: b.ID, Path: b.Path, Revision: b.Revision, Size: int64(len(b.Data)), Image: &tool.Image{MimeType: b.MediaType, Data: b.Data}}, err
	}
	d, err := f.space.Content().ReadText(ctx, targetOf(path))
	return tool.Document{ID: d.ID, Path: d.Path, Text: d.Text, Encoding: d.Encoding, Revision: d.Revision, Size: d.Size}, err
}

// maxResource bounds a kept text that a tool reads whole.
const maxResource = 16 << 20

func (f spaceFiles) readResource(ctx context.Context, path, id string) (tool.Document, error) {
	digest, err := cas.ParseID(id)
	if err != nil {
		return tool.Document{}, protocol.Errorf(protocol.CodeInvalidInput, "%s: want 64 hexadecimal digits after repa:resource/", path)
	}
	data, err := f.space.Store().Get(ctx, digest, maxResource)
	if errors.Is(err, cas.ErrNotFound) {
		return tool.Document{}, protocol.Errorf(protocol.CodeRevisionUnavailable, "%s is not kept", path)
	}
	if err != nil {
		return tool.Document{}, err
	}
	t, err := text.Decode(data, "")
	return tool.Document{Path: path, Text: t.String(), Encoding: t.Encoding(), Revision: id, Size: int64(len(data))}, err
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

// Inspect implements tool.Inspector.
func (f spaceFiles) Inspect(ctx context.Context, path string) (any, error) {
	info, err := f.space.Content().Inspect(ctx, targetOf(path))
	return wire.ContentInfo(protocol.ID(f.space.ID()), info), err
}

// Write implements tool.Editor. A byte order mark, which the model does not see, stays.
func (f spaceFiles) Write(ctx context.Context, path, text string, base *string) (tool.Change, error) {
	w := content.Write{ID: f.newID(), Target: targetOf(path), Text: text, KeepMark: true}
	if base != nil {
		w.Base.Revision = *base
	} else {
		w.Base.Absent = true
	}
	r, err := f.space.Content().Write(ctx, f.by(ctx), w)
	return f.changed(ctx, w.ID, r, nil, err)
}

// Edit implements tool.Editor.
func (f spaceFiles) Edit(ctx context.Context, path string, edits []tool.Edit) (tool.Change, error) {
	w := content.Edits{ID: f.newID(), Target: targetOf(path)}
	for _, e := range edits {
		w.Edits = append(w.Edits, text.Edit(e))
	}
	r, matches, err := f.space.Content().Edit(ctx, f.by(ctx), w)
	var notes []string
	for _, m := range matches {
		if m.Strategy != exactMatch {
			notes = append(notes, fmt.Sprintf("The place at line %d was found by comparing loosely (%s).", m.Line, m.Strategy))
		}
	}
	return f.changed(ctx, w.ID, r, notes, err)
}

// exactMatch is the strategy that needs no mention.
const exactMatch = "exact"

// Patch implements tool.Editor.
func (f spaceFiles) Patch(ctx context.Context, p tool.Patch) (tool.Change, error) {
	w := content.Patch{ID: f.newID(), Text: p.Text}
	for _, b := range p.Bases {
		base := content.Base{Absent: b.Base == nil}
		if b.Base != nil {
			base.Revision = *b.Base
		}
		w.Bases = append(w.Bases, content.PatchBase{Target: targetOf(b.Path), Base: base})
	}
	for _, r := range p.Registrations {
		w.Registrations = append(w.Registrations, content.Registration{Path: r.Path, Role: catalog.Role(r.Role), Item: r.ID, Members: members(r.Members)})
	}
	for _, c := range p.Compositions {
		info, err := f.space.Content().Inspect(ctx, content.Target{ID: c.ID})
		if err != nil {
			return tool.Change{}, err
		}
		w.Compositions = append(w.Compositions, content.Recompose{Item: c.ID, Base: c.Base, Members: members(c.Members), Resources: info.Resources})
	}
	r, reports, err := f.space.Content().ApplyPatch(ctx, f.by(ctx), w)
	var notes []string
	for _, report := range reports {
		for _, h := range report.Hunks {
			if h.Strategy != exactMatch {
				notes = append(notes, fmt.Sprintf("%s:%d was found by comparing loosely (%s).", report.Path, h.Line, h.Strategy))
			}
		}
	}
	return f.changed(ctx, w.ID, r, notes, err)
}

func members(list []tool.Member) []catalog.Member {
	out := []catalog.Member{}
	for _, m := range list {
		t := targetOf(m.Path)
		target := catalog.Target{ID: t.ID}
		if t.ID == "" {
			at := catalog.Here(t.Path)
			target.Location = &at
		}
		out = append(out, catalog.Member{Target: target, Name: m.Name})
	}
	return out
}

// Undo implements tool.Editor.
func (f spaceFiles) Undo(ctx context.Context, operationID string) (tool.Change, error) {
	id := f.newID()
	r, err := f.space.Content().Undo(ctx, f.by(ctx), operationID, id)
	return f.changed(ctx, id, r, nil, err)
}

// Operation implements tool.Editor.
func (f spaceFiles) Operation(_ context.Context, operationID string) (any, error) {
	o, pruned, err := f.space.Content().Operation(operationID)
	if err != nil {
		return nil, err
	}
	told := toldOperation{ID: operationID, Status: string(o.Status), Method: o.Method, Paths: o.Paths, UndoneBy: o.UndoneBy, Conflicts: o.Conflicts, Error: o.Error}
	if pruned {
		told.Status = "pruned"
	}
	return told, nil
}

// toldOperation is what a model is told of an operation.
type toldOperation struct {
	ID        string   `json:"operationId"`
	Status    string   `json:"status"`
	Method    string   `json:"method,omitempty"`
	Paths     []string `json:"paths,omitempty"`
	UndoneBy  string   `json:"undoneBy,omitempty"`
	Conflicts []string `json:"conflicts,omitempty"`
	Error     string   `json:"error,omitempty"`
}

func (f spaceFiles) newID() string { return string(f.backend.newID()) }

// operationError is the error of a save that has an operation in the journal.
type operationError struct {
	error
	id string
}

// OperationID names the operation for whoever asks what became of it.
func (e operationError) OperationID() string { return e.id }

// Unwrap returns the error itself.
func (e operationError) Unwrap() error { return e.error }

// changed tells front ends of a change, and the model what it did.
func (f spaceFiles) changed(ctx context.Context, id string, r content.Result, notes []string, err error) (tool.Change, error) {
	if err != nil {
		if _, _, unknown := f.space.Content().Operation(id); unknown == nil {
			err = operationError{err, id}
		}
		return tool.Change{}, err
	}
	publishContent(f.backend, f.space, r)
	c := tool.Change{OperationID: r.OperationID, Notes: notes, Diff: f.space.Content().UnifiedDiff(ctx, r)}
	for _, change := range r.Changes {
		if change.Before == nil && change.After == nil {
			continue // a folder
		}
		file := tool.FileChange{Path: change.Path, Before: change.Before, After: change.After}
		if i := slices.IndexFunc(r.Contents, func(i content.Info) bool { return i.Location.Path == change.Path }); i >= 0 {
			file.ID = r.Contents[i].ID
		}
		c.Files = append(c.Files, file)
	}
	if len(c.Files) == 0 { // nothing differs, and what is there was seen
		for _, i := range r.Contents {
			if i.Body != nil {
				c.Files = append(c.Files, tool.FileChange{ID: i.ID, Path: i.Location.Path, Before: i.Body, After: i.Body})
			}
		}
	}
	return c, nil
}

// publishContent tells front ends what an operation changed.
func publishContent(b *Backend, s *space.Space, r content.Result) {
	result := wire.ContentChangeResult(protocol.ID(s.ID()), r)
	paths := []string{}
	for _, c := range r.Changes {
		paths = append(paths, c.Path)
	}
	for _, i := range r.Contents {
		if !slices.Contains(paths, i.Location.Path) {
			paths = append(paths, i.Location.Path)
		}
	}
	b.feed.Publish(protocol.Change{Type: protocol.ChangeContent, SpaceID: protocol.ID(s.ID()), Revision: string(b.newID()), Paths: paths, Result: &result})
}

// appendFacts makes facts durable, as one.
func appendFacts(ctx context.Context, log *recordlog.Log, facts ...ledger.Fact) error {
	records, err := ledger.Records(facts...)
	if err != nil {
		return err
	}
	return log.Append(ctx, records...)
}
