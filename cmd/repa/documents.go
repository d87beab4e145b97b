package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/repa-app/repa/cmd/repa/messages"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/client"
)

// spaceFlags are the flags of a command that works on the documents of a space.
type spaceFlags struct {
	Space  string `help:"${flag_space}" placeholder:"DIR" default:"."`
	Output string `help:"${flag_output} ${enum}." enum:"text,json" default:"text"`
}

// visit is a command at work in an open space.
type visit struct {
	*terminal
	ctx    context.Context
	client *client.Client
	space  protocol.Space
	dir    string // of the space, as the person named it
	json   bool
}

// visit opens the space for a command. A refusal is printed as JSON when the output shall be.
func (f *spaceFlags) visit(ctx context.Context, t *terminal, work func(*visit) error) error {
	err := f.enter(ctx, t, work)
	var ended *exit
	if err == nil || f.Output != outputJSON || errors.As(err, &ended) {
		return err
	}
	printJSON(t.out, map[string]callError{"error": describe(err)})
	return &exit{code: exitFailed}
}

func (f *spaceFlags) enter(ctx context.Context, t *terminal, work func(*visit) error) error {
	dir, err := filepath.Abs(f.Space)
	if err != nil {
		return err
	}
	cl, s, err := t.enterDir(ctx, f.Space)
	if err != nil {
		return err
	}
	defer leave(cl)
	return work(&visit{terminal: t, ctx: ctx, client: cl, space: s, dir: dir, json: f.Output == outputJSON})
}

// ask makes a call for a visit.
func ask[P, R any](v *visit, method *protocol.Call[P, R], params P) (R, error) {
	return client.Call(v.ctx, v.client, method, params)
}

// target reads what a person named: a path relative to the space, an absolute one inside it, or a reference to a registered content. Paths that lead
// elsewhere are left to the backend, which refuses them.
func (v *visit) target(name string) (protocol.ContentTarget, error) {
	for _, prefix := range []string{"repa:document/", "repa:material/"} {
		if id, ok := strings.CutPrefix(name, prefix); ok && protocol.ID(id).Valid() {
			return protocol.ContentTarget{Kind: "content", Ref: &protocol.ContentRef{SpaceID: v.space.ID, ID: protocol.ID(id)}}, nil
		}
	}
	if name == "" {
		return protocol.ContentTarget{}, v.fail(exitUsage, messages.NoPath)
	}
	if filepath.IsAbs(name) {
		for _, root := range []string{v.space.Path, v.dir} { // they differ when a symbolic link leads to the space
			if below, err := filepath.Rel(root, name); err == nil && filepath.IsLocal(below) {
				name = filepath.ToSlash(below)
				break
			}
		}
	}
	return protocol.ContentTarget{Kind: "file", SpaceID: v.space.ID, Location: &protocol.FileLocation{Kind: "relative", Path: name}}, nil
}

// note lets the backend look at a document now, so that what another program has just done to it is part of its history. A document that cannot be
// read, or is gone, has a history all the same.
func (v *visit) note(t protocol.ContentTarget) {
	_, _ = ask(v, protocol.ContentGet, protocol.ContentGetParams{Target: t})
}

// revisions reads the history of a document, newest first; limit 0 is all of it.
func (v *visit) revisions(t protocol.ContentTarget, limit int) (protocol.ContentHistoryResult, error) {
	p := protocol.ContentHistoryParams{Target: t}
	all := protocol.ContentHistoryResult{Revisions: []protocol.ContentRevision{}}
	for {
		p.Limit = protocol.PageLimitMax
		if limit > 0 {
			p.Limit = protocol.Int(min(protocol.PageLimitMax, limit-len(all.Revisions)))
		}
		page, err := ask(v, protocol.ContentHistory, p)
		if err != nil {
			return all, err
		}
		all.Document = page.Document
		all.Revisions = append(all.Revisions, page.Revisions...)
		if limit > 0 && len(all.Revisions) >= limit {
			all.Revisions = all.Revisions[:limit] // a page may end with what its last operation replaced
			return all, nil
		}
		if page.Cursor == "" {
			return all, nil
		}
		p.Cursor = page.Cursor
	}
}

// fullRevision is how long a revision is that is not abbreviated.
const fullRevision = 64

// revision completes a revision of a document that may be abbreviated to its beginning. An empty one stays empty.
func (v *visit) revision(t protocol.ContentTarget, given string) (protocol.Revision, error) {
	if given == "" || len(given) >= fullRevision {
		return protocol.Revision(given), nil
	}
	h, err := v.revisions(t, 0)
	if err != nil {
		return "", err
	}
	found := matches{}
	for _, r := range h.Revisions {
		if r.Revision != nil && strings.HasPrefix(string(*r.Revision), strings.ToLower(given)) {
			found[string(*r.Revision)] = true
		}
	}
	full, err := found.one(v.terminal, given, messages.RevisionUnknown, h.Document.Path)
	return protocol.Revision(full), err
}

// operation completes the id of an operation that may be abbreviated to its beginning or end. Other ids are left as they are for the backend to refuse.
func (v *visit) operation(given string) (protocol.ID, error) {
	id := protocol.ID(given)
	if id.Valid() {
		r, err := ask(v, protocol.OperationGet, protocol.OperationParams{SpaceID: v.space.ID, OperationID: id})
		if err != nil {
			return "", err
		}
		if r.Operation != nil || r.Absent.Status == protocol.AbsencePruned {
			return id, nil
		}
	}
	return v.search(given, messages.OperationUnknown, func(o protocol.OperationSummary) protocol.ID { return o.OperationID })
}

// run completes the id of a run that changed something, as operation does.
func (v *visit) run(given string) (protocol.ID, error) {
	id := protocol.ID(given)
	if id.Valid() {
		r, err := ask(v, protocol.OperationList, protocol.OperationListParams{SpaceID: v.space.ID, RunID: id, Limit: 1})
		if err != nil || len(r.Operations) > 0 {
			return id, err
		}
	}
	return v.search(given, messages.RunUnknown, func(o protocol.OperationSummary) protocol.ID { return o.RunID })
}

// search looks through all operations of the space for the one id that an abbreviation means.
func (v *visit) search(given string, unknown messages.Message, id func(protocol.OperationSummary) protocol.ID) (protocol.ID, error) {
	found := matches{}
	p := protocol.OperationListParams{SpaceID: v.space.ID, Limit: protocol.PageLimitMax}
	for {
		page, err := ask(v, protocol.OperationList, p)
		if err != nil {
			return "", err
		}
		for _, o := range page.Operations {
			if full := string(id(o)); given != "" && full != "" && (strings.HasPrefix(full, given) || strings.HasSuffix(full, given)) {
				found[full] = true
			}
		}
		if page.Cursor == "" {
			full, err := found.one(v.terminal, given, unknown, v.space.Path)
			return protocol.ID(full), err
		}
		p.Cursor = page.Cursor
	}
}

// matches are the ids that an abbreviation fits.
type matches map[string]bool

func (m matches) one(t *terminal, given string, unknown messages.Message, where string) (string, error) {
	if len(m) > 1 {
		return "", &coded{protocol.CodeInvalidInput, t.text(messages.Ambiguous, given, len(m))}
	}
	for full := range m {
		return full, nil
	}
	return "", &coded{protocol.CodeNotFound, t.text(unknown, given, where)}
}

// shortID is what people are shown of an id or revision.
const shortID = 8

// shortRevision is the beginning of a revision: all its digits are chance.
func shortRevision(r protocol.NullRevision) string {
	if r == nil {
		return nothing
	}
	return string(*r)[:min(shortID, len(*r))]
}

// shortOf is the end of an id: ids that are made at about the same time begin alike.
func shortOf(id protocol.ID) string {
	if id == "" {
		return nothing
	}
	return string(id)[max(0, len(id)-shortID):]
}

// nothing stands where a table has no value.
const nothing = "-"
