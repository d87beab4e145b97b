package actors

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/repa-app/repa/actors/engine"
	"github.com/repa-app/repa/actors/wire"
	"github.com/repa-app/repa/agent/connection"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/server"
)

// answer works on one call of a host. It runs on a worker of the socket.
func (b *Backend) answer(ctx context.Context, host protocol.ID, call *server.Call) (any, error) {
	if result, ok, err := b.answerContent(ctx, call.Method, call.Params); ok {
		return result, err
	}
	if result, ok, err := b.answerHold(ctx, host, call.Method, call.Params); ok {
		return result, err
	}
	switch p := call.Params.(type) {
	case protocol.SpaceOpenParams:
		return engine.Ask(ctx, b.coordinator, func(r engine.Reply[protocol.Space]) coordinatorMessage { return openSpaceRequest{r, p.Path} })
	case protocol.SpaceParams:
		switch call.Method {
		case protocol.SessionCreate.Name:
			return askSpace(ctx, b, p.SpaceID, func(r engine.Reply[protocol.SessionView]) spaceMessage { return createSession{r} })
		case protocol.ResourceCollect.Name:
			return b.collect(ctx, p.SpaceID)
		}
		return askSpace(ctx, b, p.SpaceID, func(r engine.Reply[[]protocol.SessionSummary]) spaceMessage { return listSessions{r} })
	case protocol.SessionKey:
		return b.sessionView(ctx, p)
	case protocol.HistoryParams:
		key := protocol.SessionKey{SpaceID: p.SpaceID, SessionID: p.SessionID}
		return askSession(ctx, b, key, func(r engine.Reply[protocol.HistoryResult]) sessionMessage { return readHistory{r, p} })
	case protocol.Submit:
		return b.submit(ctx, host, p)
	case protocol.RunSubmitParams:
		return b.submit(ctx, host, p.Submit())
	case protocol.RequestGetParams:
		if p.SpaceID == "" {
			return unknownRequest(p.RequestID), nil
		}
		return b.request(ctx, p)
	case protocol.RunParams:
		if call.Method == protocol.RunCancel.Name {
			found, err := askSpace(ctx, b, p.SpaceID, func(r engine.Reply[foundRun]) spaceMessage { return cancelRun{r, p} })
			if err != nil {
				return nil, err
			}
			return found.whole(ctx)
		}
		return b.run(ctx, p)
	case protocol.StateParams:
		if err := b.loadScope(ctx, p.Scope); err != nil {
			return nil, err
		}
		return b.feed.Snapshot(p.Scope), nil
	case protocol.LendParams:
		id, err := askHost(ctx, b, host, func(r engine.Reply[protocol.ID]) hostMessage { return lendConnection{r, p} })
		return protocol.LendResult{ConnectionID: id}, err
	case protocol.ModelListParams:
		lent, err := b.connection(ctx, host, p.ConnectionID)
		if err != nil {
			return nil, err
		}
		return wire.Catalog(lent.Definition), nil
	}
	switch call.Method {
	case protocol.SpaceList.Name:
		return b.listSpaces(ctx)
	case protocol.ConnectionList.Name:
		return b.listConnections(ctx, host)
	}
	return nil, protocol.NewFault(protocol.NumberUnknownMethod, "Method not found")
}

func (b *Backend) findSpace(ctx context.Context, id protocol.ID) (*openSpace, error) {
	return engine.Ask(ctx, b.coordinator, func(r engine.Reply[*openSpace]) coordinatorMessage { return findSpace{r, id} })
}

func askSpace[R any](ctx context.Context, b *Backend, id protocol.ID, build func(engine.Reply[R]) spaceMessage) (R, error) {
	s, err := b.findSpace(ctx, id)
	if err != nil {
		var none R
		return none, err
	}
	return engine.Ask(ctx, s.ref, build)
}

// askSession asks the actor of a session, loading it when needed. A session that was unloaded in between is asked again.
func askSession[R any](ctx context.Context, b *Backend, key protocol.SessionKey, build func(engine.Reply[R]) sessionMessage) (R, error) {
	for {
		ref, err := askSpace(ctx, b, key.SpaceID, func(r engine.Reply[*engine.Ref[sessionMessage]]) spaceMessage {
			return findSession{r, key.SessionID}
		})
		if err != nil {
			var none R
			return none, err
		}
		result, err := engine.Ask(ctx, ref, build)
		if err != engine.ErrStopped || b.state() == protocol.LifecycleStopped {
			return result, err
		}
	}
}

func (b *Backend) sessionView(ctx context.Context, key protocol.SessionKey) (protocol.SessionView, error) {
	return askSession(ctx, b, key, func(r engine.Reply[protocol.SessionView]) sessionMessage { return viewSession{r} })
}

// loadScope waits until everything that a scope shows is in the feed. An unknown space or session shows nothing.
func (b *Backend) loadScope(ctx context.Context, scope protocol.Scope) error {
	if scope.SessionID != "" {
		_, err := b.sessionView(ctx, protocol.SessionKey{SpaceID: scope.SpaceID, SessionID: scope.SessionID})
		return ignoreNotFound(err)
	}
	spaces, err := engine.Ask(ctx, b.coordinator, func(r engine.Reply[[]*openSpace]) coordinatorMessage { return listSpaces{r} })
	if err != nil {
		return err
	}
	for _, s := range spaces {
		if scope.SpaceID != "" && s.info.ID != scope.SpaceID {
			continue
		}
		_, err := engine.Ask(ctx, s.ref, func(r engine.Reply[[]protocol.SessionSummary]) spaceMessage { return listSessions{r} })
		if err != nil && err != engine.ErrStopped {
			return err
		}
	}
	return nil
}

func ignoreNotFound(err error) error {
	if coded, ok := err.(interface{ Code() string }); ok && coded.Code() == string(protocol.CodeNotFound) {
		return nil
	}
	return err
}

func (b *Backend) listSpaces(ctx context.Context) ([]protocol.Space, error) {
	all, err := engine.Ask(ctx, b.coordinator, func(r engine.Reply[[]*openSpace]) coordinatorMessage { return listSpaces{r} })
	out := []protocol.Space{}
	for _, s := range all {
		out = append(out, s.info)
	}
	slices.SortFunc(out, func(a, b protocol.Space) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(string(a.ID), string(b.ID)))
	})
	return out, err
}

func (b *Backend) connection(ctx context.Context, host, id protocol.ID) (connection.Lent, error) {
	return askHost(ctx, b, host, func(r engine.Reply[connection.Lent]) hostMessage { return findConnection{r, id} })
}

func (b *Backend) listConnections(ctx context.Context, host protocol.ID) ([]protocol.ModelConnection, error) {
	all, err := askHost(ctx, b, host, func(r engine.Reply[[]connection.Lent]) hostMessage { return listConnections{r} })
	if err != nil {
		return nil, err
	}
	out := []protocol.ModelConnection{}
	for _, l := range all {
		out = append(out, wire.Connection(l.Definition))
	}
	return out, nil
}

// submit hands a submission to its space together with the connection it is bound to. What the connection is decides only a new
// request: a repeated one gets its stored record whatever became of the connection.
func (b *Backend) submit(ctx context.Context, host protocol.ID, p protocol.Submit) (protocol.Request, error) {
	m := submitRequest{submit: p, texts: longTexts(p.Input), host: host}
	var err error
	if m.fingerprint, err = fingerprint(p.Submission(), m.texts); err != nil {
		return protocol.Request{}, err
	}
	m.bound, m.unbound = b.bind(ctx, host, p)
	found, err := askSpace(ctx, b, p.Target.SpaceID, func(r engine.Reply[foundRequest]) spaceMessage {
		m.Reply = r
		return m
	})
	if err != nil {
		return protocol.Request{}, err
	}
	return found.whole(ctx)
}

func unknownRequest(id protocol.ID) protocol.RequestRecord {
	return protocol.RequestRecord{Unknown: &protocol.UnknownRequest{RequestID: id, Status: protocol.Unknown}}
}

func (b *Backend) request(ctx context.Context, p protocol.RequestGetParams) (protocol.RequestRecord, error) {
	found, err := askSpace(ctx, b, p.SpaceID, func(r engine.Reply[*foundRequest]) spaceMessage { return getRequest{r, p.RequestID} })
	if err != nil {
		return protocol.RequestRecord{}, err
	}
	if found == nil {
		return unknownRequest(p.RequestID), nil
	}
	r, err := found.whole(ctx)
	return protocol.RequestRecord{Request: &r}, err
}

func (b *Backend) run(ctx context.Context, p protocol.RunParams) (protocol.RunRecord, error) {
	found, err := askSpace(ctx, b, p.SpaceID, func(r engine.Reply[*foundRun]) spaceMessage { return getRun{r, p} })
	if err != nil {
		return protocol.RunRecord{}, err
	}
	if found == nil {
		return protocol.RunRecord{Unknown: &protocol.UnknownRun{ID: cmp.Or(p.RunID, p.RequestID), Status: protocol.Unknown}}, nil
	}
	run, err := found.whole(ctx)
	return protocol.RunRecord{Run: &run}, err
}

// bind resolves the model of a submission.
func (b *Backend) bind(ctx context.Context, host protocol.ID, p protocol.Submit) (connection.Bound, error) {
	if p.Selection == nil || p.Selection.Model == nil {
		return b.opts.Default, nil
	}
	lent, err := b.connection(ctx, host, p.Selection.Model.ConnectionID)
	if err != nil {
		return connection.Bound{}, err
	}
	return lent.Bind(p.Selection.Model.ID)
}
