package actors

import (
	"context"
	"slices"
	"strings"

	"github.com/repa-app/repa/actors/engine"
	"github.com/repa-app/repa/actors/wire"
	"github.com/repa-app/repa/agent/session"
	"github.com/repa-app/repa/protocol"
)

// history answers session.history on the session's worker: an older position is found in the store, which only the worker may ask.
func (s *sessionActor) history(ctx *engine.Context[sessionMessage], m readHistory) {
	if s.loadErr != nil {
		m.Fail(s.loadErr)
		return
	}
	store, key := s.store, s.key
	ctx.Go(func(context.Context) sessionMessage {
		m.Done(readPage(store, key, m.params))
		return nothingToDo{}
	}, func(err *engine.PanicError) sessionMessage {
		m.Fail(err)
		return nothingToDo{}
	})
}

// emptyLeaf stands in a revision for a session without entries.
const emptyLeaf = "empty"

func revisionOf(key protocol.SessionKey, leaf *session.Entry) protocol.Revision {
	id := emptyLeaf
	if leaf != nil {
		id = leaf.ID
	}
	return protocol.Revision("history-v1:" + string(key.SessionID) + ":" + id)
}

// readPage returns a page of the history at a revision, the newest page when nothing else is asked for.
func readPage(store *session.Store, key protocol.SessionKey, p protocol.HistoryParams) (protocol.HistoryResult, error) {
	snapshot := store.Snapshot()
	branch, revision := snapshot.Branch, revisionOf(key, snapshot.Leaf)
	if p.Revision != "" && p.Revision != revision {
		leaf, ok := strings.CutPrefix(string(p.Revision), "history-v1:"+string(key.SessionID)+":")
		at, found := store.At(leaf)
		switch {
		case ok && leaf == emptyLeaf:
			branch = nil
		case ok && found:
			branch = at.Branch
		default:
			return protocol.HistoryResult{}, protocol.Errorf(protocol.CodeRevisionUnavailable, "the history has no position %s", p.Revision)
		}
		revision = p.Revision
	}
	messages := wire.Messages(branch)
	limit := int(p.Limit)
	if limit == 0 {
		limit = protocol.HistoryLimitDefault
	}
	end := len(messages)
	if cursor := max(p.Before, p.Around); cursor != "" {
		i := slices.IndexFunc(messages, func(m protocol.Message) bool { return m.ID == string(cursor) })
		if i < 0 {
			return protocol.HistoryResult{}, protocol.Errorf(protocol.CodeInvalidCursor, "message %s is not in this history", cursor)
		}
		end = i
		if p.Around != "" {
			end = min(len(messages), max(i+(limit+1)/2, limit))
		}
	}
	start := max(0, end-limit)
	out := protocol.HistoryResult{Revision: revision, Messages: messages[start:end]}
	if start > 0 && end > start {
		out.Before = protocol.ID(messages[start].ID)
	}
	return out, nil
}
