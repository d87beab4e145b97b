package content

import (
	"context"
	"strings"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/space/catalog"
	"github.com/repa-app/repa/space/text"
)

// UnifiedDiff shows what an operation changed in texts; files that are no text are named only. Bytes that are not kept are left out: the
// change is saved, whether it can be shown or not.
func (e *Engine) UnifiedDiff(ctx context.Context, r Result) string {
	var out strings.Builder
	for _, c := range r.Changes {
		if c.Before != nil || c.After != nil {
			d, err := e.Diff(ctx, c.Path, c.Before, c.After)
			if err == nil {
				out.WriteString(d)
			}
		}
	}
	return out.String()
}

// Diff compares two revisions of a file as texts; nil is "not there". Errors (codes): invalid_input, revision_unavailable, content_limit.
func (e *Engine) Diff(ctx context.Context, name string, from, to *string) (string, error) {
	before, ok1, err := e.revisionText(ctx, from)
	if err != nil {
		return "", err
	}
	after, ok2, err := e.revisionText(ctx, to)
	if err != nil {
		return "", err
	}
	a, b := "a/"+name, "b/"+name
	if from == nil {
		a = "/dev/null"
	}
	if to == nil {
		b = "/dev/null"
	}
	switch {
	case ok1 && ok2:
		return text.Unified(a, b, before, after), nil
	case from != nil && to != nil && *from == *to:
		return "", nil
	}
	return "Binary files " + a + " and " + b + " differ\n", nil
}

// revisionText is the text of a revision; false when it is no text.
func (e *Engine) revisionText(ctx context.Context, revision *string) (string, bool, error) {
	if revision == nil {
		return "", true, nil
	}
	o, err := e.Revision(ctx, *revision)
	if err != nil {
		return "", false, err
	}
	defer o.Close()
	if o.Size() > maxDocument {
		return "", false, nil
	}
	id, err := cas.ParseID(*revision)
	if err != nil {
		return "", false, err
	}
	data, err := e.store.Get(ctx, id, maxDocument)
	if err != nil {
		return "", false, e.storeError(err)
	}
	t, err := text.Decode(data, "")
	if err != nil {
		return "", false, nil
	}
	return t.String(), true, nil
}

// Kept is a revision of a file that is kept.
type Kept struct {
	MediaType string
	Size      int64
	Text      *string // when it is a text that fits a page
}

// At tells of a revision of a target; any that is kept will do. Errors (codes): those of History and of Revision.
func (e *Engine) At(ctx context.Context, t Target, revision string) (Kept, error) {
	l, err := e.locate(t)
	if err != nil {
		return Kept{}, err
	}
	o, err := e.Revision(ctx, revision)
	if err != nil {
		return Kept{}, err
	}
	defer o.Close()
	out := Kept{MediaType: catalog.MediaType(l.at.Path), Size: o.Size()}
	if l.item != nil {
		out.MediaType = l.item.MediaType
	}
	if o.Size() > pageBytes || !mayBeText(out.MediaType) {
		return out, nil
	}
	s, ok, err := e.revisionText(ctx, &revision)
	if ok && err == nil {
		out.Text = &s
	}
	return out, err
}

// Comparison is the difference of two revisions; nil is "not there".
type Comparison struct {
	From, To *string
	Unified  string
}

// Compare shows what changed between two revisions of a target. An empty to is what is there now, an empty from the revision before to. Errors (codes):
// those of Get and Diff.
func (e *Engine) Compare(ctx context.Context, t Target, from, to string) (Comparison, error) {
	l, err := e.locate(t)
	if err != nil {
		return Comparison{}, err
	}
	out := Comparison{From: pointer(from), To: pointer(to)}
	if to == "" {
		info, err := e.Get(ctx, t)
		switch {
		case codeOf(err) == codeNotFound:
		case err != nil:
			return out, err
		default:
			out.To = info.Body
		}
	}
	if from == "" {
		out.From = e.before(l.at.Path, out.To)
	}
	out.Unified, err = e.Diff(ctx, l.at.Path, out.From, out.To)
	return out, err
}

func pointer(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// before is the revision of a path before another one. When that is not in the history yet, it is the newest there.
func (e *Engine) before(name string, revision *string) *string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	var states []*string // newest first, each different from the next
	for _, s := range e.trail(name) {
		for _, i := range []Image{s.file.After, s.file.Before} {
			if r := i.Revision(); len(states) == 0 || !same(states[len(states)-1], r) {
				states = append(states, r)
			}
		}
	}
	for n, r := range states {
		if same(r, revision) && n+1 < len(states) {
			return states[n+1]
		}
	}
	if len(states) == 0 || same(states[0], revision) {
		return nil
	}
	return states[0]
}

func same(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }
