package actors

import (
	"context"
	"errors"

	"github.com/repa-app/repa/actors/engine"
	"github.com/repa-app/repa/actors/wire"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/space"
	"github.com/repa-app/repa/space/content"
)

// giveSpace asks for the space itself, whose contents are safe for concurrent use.
type giveSpace struct{ engine.Reply[*space.Space] }

func (giveSpace) forSpace() {}

// giveOutside asks for what follows other programs in the space, which is safe for concurrent use.
type giveOutside struct{ engine.Reply[*outside] }

func (giveOutside) forSpace() {}

// contents finds the contents of a space. They are worked on from the worker of the socket, beside everything else that the space does.
func (b *Backend) contents(ctx context.Context, id protocol.ID) (*space.Space, error) {
	return askSpace(ctx, b, id, func(r engine.Reply[*space.Space]) spaceMessage { return giveSpace{r} })
}

// learner is in whose name front ends change contents.
var learner = content.By{Actor: content.Learner}

// answerContent works on a call of the families content and operation; false when it is of another.
func (b *Backend) answerContent(ctx context.Context, method string, params any) (any, bool, error) {
	switch p := params.(type) {
	case protocol.ContentListParams:
		return answered(b.listContent(ctx, p))
	case protocol.ContentGetParams:
		return answered(b.getContent(ctx, p))
	case protocol.ContentReadParams:
		return answered(b.readContent(ctx, p))
	case protocol.ContentHistoryParams, protocol.ContentAtParams, protocol.ContentDiffParams, protocol.ContentFindParams, protocol.ContentChangesParams:
		return answered(b.lookBack(ctx, p))
	case protocol.OperationParams, protocol.OperationPruneParams, protocol.OperationListParams, protocol.OperationResolveParams,
		protocol.OperationPrunePreviewParams, protocol.OperationUndoRunParams:
		return answered(b.answerOperation(ctx, method, p))
	case protocol.ContentRestoreParams:
		id, target := wire.DomainTarget(p.Target)
		return answered(b.changeDetailed(ctx, id, func(e *content.Engine) (content.Result, error) {
			return e.Restore(ctx, learner, content.Bring{ID: string(p.OperationID), Target: target, Revision: string(p.Revision)})
		}))
	case protocol.ContentSaveParams:
		id, target := wire.DomainTarget(p.Target)
		return answered(b.changeDetailed(ctx, id, func(e *content.Engine) (content.Result, error) {
			return e.Write(ctx, learner, content.Write{ID: string(p.OperationID), Target: target, Text: p.Text, Base: content.Base{Revision: string(p.Base)}, Merge: true})
		}))
	}
	change, id := contentChange(ctx, method, params)
	if change == nil {
		return nil, false, nil
	}
	s, r, err := b.changeContent(ctx, id, change)
	if err != nil {
		return nil, true, err
	}
	return wire.ContentChangeResult(protocol.ID(s.ID()), r), true, nil
}

func answered[R any](r R, err error) (any, bool, error) { return r, true, err }

// changeContent carries out a change, and tells front ends of one that was not told before.
func (b *Backend) changeContent(ctx context.Context, id protocol.ID, change func(*content.Engine) (content.Result, error)) (*space.Space, content.Result, error) {
	s, err := b.contents(ctx, id)
	if err != nil {
		return nil, content.Result{}, err
	}
	b.active.begin()
	defer b.active.end()
	r, err := change(s.Content())
	if err == nil && !r.Repeated {
		publishContent(b, s, r)
	}
	return s, r, err
}

// changeDetailed is changeContent with what changed in texts.
func (b *Backend) changeDetailed(ctx context.Context, id protocol.ID, change func(*content.Engine) (content.Result, error)) (protocol.DetailedChangeResult, error) {
	s, r, err := b.changeContent(ctx, id, change)
	if err != nil {
		return protocol.DetailedChangeResult{}, err
	}
	return b.detailed(ctx, s, r), nil
}

// detailed adds what changed in texts.
func (b *Backend) detailed(ctx context.Context, s *space.Space, r content.Result) protocol.DetailedChangeResult {
	var diffs []protocol.FileDiff
	for _, c := range r.Changes {
		if d, err := s.Content().Diff(ctx, c.Path, c.Before, c.After); err == nil && d != "" {
			diffs = append(diffs, protocol.FileDiff{Path: c.Path, Unified: d})
		}
	}
	return wire.ContentChangeResult(protocol.ID(s.ID()), r).Detailed(diffs...)
}

func (b *Backend) listContent(ctx context.Context, p protocol.ContentListParams) ([]protocol.ContentInfo, error) {
	s, err := b.contents(ctx, p.SpaceID)
	if err != nil {
		return nil, err
	}
	infos, err := s.Content().List(ctx, p.Path)
	out := []protocol.ContentInfo{}
	for _, i := range infos {
		out = append(out, wire.ContentInfo(p.SpaceID, i))
	}
	return out, err
}

func (b *Backend) getContent(ctx context.Context, p protocol.ContentGetParams) (protocol.ContentInfo, error) {
	id, target := wire.DomainTarget(p.Target)
	s, err := b.contents(ctx, id)
	if err != nil {
		return protocol.ContentInfo{}, err
	}
	i, err := s.Content().Get(ctx, target)
	return wire.ContentInfo(id, i), err
}

func (b *Backend) readContent(ctx context.Context, p protocol.ContentReadParams) (protocol.ContentReadResult, error) {
	id, target := wire.DomainTarget(p.Target)
	s, err := b.contents(ctx, id)
	if err != nil {
		return protocol.ContentReadResult{}, err
	}
	page, err := s.Content().Read(ctx, content.PageRequest{Target: target, Offset: int(p.Offset), Limit: int(p.Limit), Revision: string(p.Revision)})
	if err != nil {
		return protocol.ContentReadResult{}, err
	}
	out := protocol.ContentReadResult{Content: wire.ContentInfo(id, page.Info), Truncated: page.Truncated}
	if page.Resource != "" {
		ref := protocol.ResourceRef{SpaceID: id, ID: protocol.ID(page.Resource), MediaType: page.Info.MediaType}
		prepared, err := b.prepare(ctx, s, ref)
		if err != nil {
			return out, err
		}
		out.Resource, out.Preparation = &ref, &protocol.Preparation{ID: prepared.ID, ExpiresAt: prepared.ExpiresAt}
	}
	if page.IsText {
		out.Offset, out.NextOffset = protocol.Int(page.Offset), protocol.Int(page.NextOffset)
		total := protocol.Int(page.TotalLines)
		out.TotalLines = &total
		if !page.Truncated || page.NextOffset > 0 { // a first line that is too long has no page
			out.Text = &page.Text
		}
	}
	return out, nil
}

// lookBack answers what a document was and what became of it.
func (b *Backend) lookBack(ctx context.Context, params any) (any, error) {
	switch p := params.(type) {
	case protocol.ContentHistoryParams:
		id, target := wire.DomainTarget(p.Target)
		s, err := b.contents(ctx, id)
		if err != nil {
			return nil, err
		}
		h, err := s.Content().History(ctx, target, int(p.Limit), p.Cursor)
		return wire.History(h), err
	case protocol.ContentAtParams:
		return b.contentAt(ctx, p)
	case protocol.ContentDiffParams:
		return b.diffContent(ctx, p)
	case protocol.ContentFindParams:
		s, err := b.contents(ctx, p.SpaceID)
		if err != nil {
			return nil, err
		}
		found, err := s.Content().Find(ctx, p.Query, int(p.Limit))
		out := []protocol.FoundContent{}
		for _, f := range found {
			out = append(out, protocol.FoundContent{Target: wire.Target(p.SpaceID, f.ID, f.At), Path: f.At.Path, Title: f.Title, Score: f.Score})
		}
		return out, err
	case protocol.ContentChangesParams:
		o, err := askSpace(ctx, b, p.SpaceID, func(r engine.Reply[*outside]) spaceMessage { return giveOutside{r} })
		if err == nil {
			err = o.watched.Sync(ctx) // what happened while nobody watched is found first
		}
		if err != nil {
			return nil, err
		}
		r, err := o.space.Content().Report(ctx)
		return wire.Report(p.SpaceID, r), err
	}
	return nil, errors.New("no content method takes these params")
}

// contentAt answers with a revision: its resource and, when it is a text that fits a page, the text.
func (b *Backend) contentAt(ctx context.Context, p protocol.ContentAtParams) (protocol.ContentAtResult, error) {
	id, target := wire.DomainTarget(p.Target)
	s, err := b.contents(ctx, id)
	if err != nil {
		return protocol.ContentAtResult{}, err
	}
	r, err := s.Content().At(ctx, target, string(p.Revision))
	if err != nil {
		return protocol.ContentAtResult{}, err
	}
	out := protocol.ContentAtResult{MediaType: r.MediaType, Size: protocol.Int(r.Size), Text: r.Text,
		Resource: protocol.ResourceRef{SpaceID: id, ID: protocol.ID(p.Revision), MediaType: r.MediaType}}
	_, err = b.prepare(ctx, s, out.Resource)
	return out, err
}

func (b *Backend) diffContent(ctx context.Context, p protocol.ContentDiffParams) (protocol.ContentDiffResult, error) {
	id, target := wire.DomainTarget(p.Target)
	s, err := b.contents(ctx, id)
	if err != nil {
		return protocol.ContentDiffResult{}, err
	}
	d, err := s.Content().Compare(ctx, target, string(p.From), string(p.To))
	return wire.Comparison(d), err
}

// answerOperation works on a call about operations.
func (b *Backend) answerOperation(ctx context.Context, method string, params any) (any, error) {
	switch p := params.(type) {
	case protocol.OperationParams:
		s, err := b.contents(ctx, p.SpaceID)
		if err != nil {
			return nil, err
		}
		if method == protocol.OperationReconcile.Name {
			o, err := s.Content().Reconcile(ctx, string(p.OperationID))
			if err == nil {
				b.publishAll(s)
			}
			return wire.Operation(p.SpaceID, o), err
		}
		return operationRecord(s, p.OperationID)
	case protocol.OperationResolveParams:
		s, err := b.contents(ctx, p.SpaceID)
		if err != nil {
			return nil, err
		}
		choices := map[string]content.Choice{}
		for _, c := range p.Choices {
			choices[c.Path] = content.Choice(c.Choice)
		}
		o, err := s.Content().Resolve(ctx, string(p.OperationID), choices)
		if err == nil {
			b.publishAll(s)
		}
		return wire.Operation(p.SpaceID, o), err
	case protocol.OperationPruneParams:
		s, err := b.contents(ctx, p.SpaceID)
		if err != nil {
			return nil, err
		}
		ids := make([]string, len(p.OperationIDs))
		for i, id := range p.OperationIDs {
			ids[i] = string(id)
		}
		pruned, err := s.Content().Prune(ctx, ids...)
		return append([]protocol.ID{}, wire.IDs(pruned)...), err
	case protocol.OperationListParams:
		s, err := b.contents(ctx, p.SpaceID)
		if err != nil {
			return nil, err
		}
		list, cursor, err := s.Content().Operations(content.Filter{Path: p.Path, Item: string(p.ID), Session: string(p.SessionID), Run: string(p.RunID),
			After: int64(p.After), Before: int64(p.Before), Limit: int(p.Limit), Cursor: p.Cursor})
		out := protocol.OperationListResult{Operations: []protocol.OperationSummary{}, Cursor: cursor}
		for _, o := range list {
			out.Operations = append(out.Operations, wire.OperationSummary(o))
		}
		return out, err
	case protocol.OperationPrunePreviewParams:
		return b.previewPrune(ctx, p)
	case protocol.OperationUndoRunParams:
		return b.undoRun(ctx, p)
	}
	return nil, errors.New("no operation method takes these params")
}

func (b *Backend) previewPrune(ctx context.Context, p protocol.OperationPrunePreviewParams) (protocol.OperationPrunePreviewResult, error) {
	s, err := b.contents(ctx, p.SpaceID)
	if err != nil {
		return protocol.OperationPrunePreviewResult{}, err
	}
	var target *content.Target
	if p.Target != nil {
		_, t := wire.DomainTarget(*p.Target)
		target = &t
	}
	keep := int64(0)
	if p.KeepBytes != nil {
		keep = int64(*p.KeepBytes)
	}
	ids, bytes, err := s.Content().Prunable(int64(p.Before), keep, target)
	return protocol.OperationPrunePreviewResult{OperationIDs: append([]protocol.ID{}, wire.IDs(ids)...), Bytes: protocol.Int(bytes)}, err
}

func (b *Backend) undoRun(ctx context.Context, p protocol.OperationUndoRunParams) (protocol.OperationUndoRunResult, error) {
	var undone content.RunUndone
	s, r, err := b.changeContent(ctx, p.SpaceID, func(e *content.Engine) (content.Result, error) {
		var err error
		undone, err = e.UndoRun(ctx, learner, string(p.RunID), string(p.UndoOperationID))
		return undone.Result, err
	})
	if err != nil {
		return protocol.OperationUndoRunResult{}, err
	}
	out := protocol.OperationUndoRunResult{OperationIDs: append([]protocol.ID{}, wire.IDs(undone.Operations)...), Result: b.detailed(ctx, s, r), Conflicts: []protocol.OperationConflict{}}
	for _, c := range undone.Conflicts {
		out.Conflicts = append(out.Conflicts, protocol.OperationConflict{OperationID: protocol.ID(c.Operation), Paths: c.Paths})
	}
	return out, nil
}

// operationRecord is the answer to operation.get.
func operationRecord(s *space.Space, id protocol.ID) (protocol.OperationRecord, error) {
	o, pruned, err := s.Content().Operation(string(id))
	var coded interface{ Code() string }
	switch {
	case errors.As(err, &coded) && coded.Code() == string(protocol.CodeNotFound):
		return protocol.OperationRecord{Absent: &protocol.AbsentOperation{OperationID: id, Status: protocol.AbsenceUnknown}}, nil
	case err != nil:
		return protocol.OperationRecord{}, err
	case pruned:
		return protocol.OperationRecord{Absent: &protocol.AbsentOperation{OperationID: id, Status: protocol.AbsencePruned}}, nil
	}
	record := wire.Operation(protocol.ID(s.ID()), o)
	return protocol.OperationRecord{Operation: &record}, nil
}

// publishAll tells front ends that anything in a space may have changed.
func (b *Backend) publishAll(s *space.Space) {
	b.feed.Publish(protocol.Change{Type: protocol.ChangeContent, SpaceID: protocol.ID(s.ID()), Revision: string(b.newID()), Paths: []string{"."}})
}
