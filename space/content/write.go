package content

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/space/catalog"
	"github.com/repa-app/repa/space/internal/fault"
	"github.com/repa-app/repa/space/text"
)

// Base is what a change relies on: that nothing is there, or a body revision.
type Base struct {
	Absent   bool   `json:"absent,omitzero"`
	Revision string `json:"revision,omitzero"`
}

// check compares a base with what is there.
func (b Base) check(name string, l *look) error {
	actual := revisionText(l.image)
	switch {
	case b.Absent && l.image.Kind != kindAbsent:
		return conflict(name, "", actual, "it exists already; read it first, then write or edit it")
	case !b.Absent && l.image.Kind == kindAbsent:
		return conflict(name, b.Revision, "", "it no longer exists")
	case !b.Absent && actual != b.Revision:
		return conflict(name, b.Revision, actual, "it was changed since it was read; read it again")
	}
	return nil
}

// Write makes a file or replaces the whole of it.
type Write struct {
	ID       string
	Target   Target
	Text     string
	Resource string // id of bytes in the store, instead of Text
	Base     Base
	KeepMark bool // a byte order mark stays, although Text has none
	Merge    bool // when the base is older, join both changes if they do not overlap
}

type writeInput struct {
	Target   Target
	Text     string
	Resource string
	Base     Base
	KeepMark bool
	Merge    bool
}

// Write carries out a Write. A file keeps its mode and its encoding; folders on the way are made. Errors (codes): invalid_input, not_found for
// an item that was removed, permission_required, revision_conflict when the file is not at the base (with Merge, when the changes overlap),
// unsupported_format for text that the file's encoding has not, content_limit above 16 MiB of text, revision_unavailable for a resource that is not
// in the store, recovery_required, those of repeated ids (operation_id_conflict, history_pruned), storage.
func (e *Engine) Write(ctx context.Context, by By, w Write) (Result, error) {
	input := writeInput{w.Target, w.Text, w.Resource, w.Base, w.KeepMark, w.Merge}
	return e.do(ctx, request{id: w.ID, method: "content.write", input: input, by: by}, func(p *plan) error {
		l, before, err := p.subject(w.Target)
		if err != nil {
			return err
		}
		if before.image.Kind == kindDirectory {
			return fail(codeInput, "%s is a folder, not a file", l)
		}
		mode := before.image.Mode
		if before.image.Kind == kindAbsent {
			mode = 0o644
		}
		if w.Resource != "" {
			if err := w.Base.check(l.at.Path, before); err != nil {
				return err
			}
			return p.setResource(l, w.Resource, mode)
		}
		data, err := p.encodeLike(l, before, w)
		if err != nil {
			return err
		}
		if err := w.Base.check(l.at.Path, before); err != nil {
			if !w.Merge || w.Base.Absent || before.image.Kind != kindFile {
				return err
			}
			if data, err = p.merge(l, w.Base.Revision, before, data, err); err != nil {
				return err
			}
		}
		p.notes = append(p.notes, l.at.Path)
		return p.setText(l, data, mode)
	})
}

// subject looks up the file that an operation is to change.
func (p *plan) subject(t Target) (located, *look, error) {
	l, err := p.e.locate(t)
	if err != nil {
		return l, nil, err
	}
	if l.at.Kind == catalog.External {
		return l, nil, fail(codePermission, "%s is outside of this space and is never changed; collect it into the space first", l)
	}
	if l.item != nil && l.item.State != catalog.Active {
		return l, nil, fail(codeNotFound, "content %s was removed; restore it first", l.item.ID)
	}
	if t.ID != "" {
		if err := p.e.usable(l); err != nil {
			return l, nil, err
		}
	}
	if l.at.Path == "." {
		return l, nil, fail(codeInput, "the space itself is no file")
	}
	before, err := p.look(l.at.Path)
	return l, before, err
}

func (p *plan) setText(l located, data []byte, mode fs.FileMode) error {
	if len(data) > maxDocument {
		return fail(codeLimit, "%s was not changed: the new text is larger than %d MiB", l, maxDocument>>20)
	}
	if data == nil {
		data = []byte{}
	}
	return p.set(l.at.Path, file(cas.Sum(data), int64(len(data)), mode), data)
}

func (p *plan) setResource(l located, resource string, mode fs.FileMode) error {
	id, err := cas.ParseID(resource)
	if err != nil {
		return fail(codeInput, "resource %q: want 64 hexadecimal digits", resource)
	}
	info, err := p.e.store.Stat(id)
	if err != nil {
		return fault.Wrap(codeGone, fmt.Sprintf("the bytes %s are not in the store; upload them again", resource), err)
	}
	p.notes = append(p.notes, l.at.Path)
	return p.set(l.at.Path, file(id, info.Size, mode), nil)
}

var utf8Mark = []byte("\xef\xbb\xbf")

// encodeLike turns new text into bytes as the file has them: a file in another encoding than UTF-8 keeps that.
func (p *plan) encodeLike(l located, before *look, w Write) ([]byte, error) {
	data := []byte(w.Text)
	if !text.IsText(data) {
		return nil, fail(codeFormat, "%s was not changed: the new text is not valid UTF-8 or contains a NUL character", l)
	}
	if len(before.data) == 0 {
		return data, nil
	}
	old, err := text.Decode(before.data, "")
	if err != nil || old.Encoding() == "utf-8" {
		if w.KeepMark && bytes.HasPrefix(before.data, utf8Mark) && !bytes.HasPrefix(data, utf8Mark) {
			data = append(bytes.Clone(utf8Mark), data...)
		}
		return data, nil
	}
	return encodeText(l, old, w.Text)
}

func encodeText(l located, as text.Text, s string) ([]byte, error) {
	data, err := as.Encode(s)
	if err != nil {
		return nil, fault.Wrap(codeFormat, fmt.Sprintf("%s was not changed: %v", l, err), err)
	}
	return data, nil
}

// merge joins a save whose base is older with what is there now. stale is the answer when that cannot be done.
func (p *plan) merge(l located, base string, current *look, data []byte, stale error) ([]byte, error) {
	id, err := cas.ParseID(base)
	if err != nil {
		return nil, stale
	}
	old, err := p.e.store.Get(p.ctx, id, maxDocument)
	if err != nil {
		return nil, stale
	}
	was, err1 := text.Decode(old, "")
	now, err2 := text.Decode(current.data, "")
	mine, err3 := text.Decode(data, now.Encoding())
	if err1 != nil || err2 != nil || err3 != nil {
		return nil, stale
	}
	joined, conflicts := text.Merge(was.String(), now.String(), mine.String())
	if len(conflicts) > 0 {
		return nil, p.keepBoth(l, base, current, data, len(conflicts))
	}
	return encodeText(l, now, joined)
}

// keepBoth refuses a save that overlaps with what somebody else wrote: both texts are in the store, and the answer names them.
func (p *plan) keepBoth(l located, base string, current *look, data []byte, overlaps int) error {
	for _, d := range [][]byte{current.data, data} {
		if _, err := p.e.store.Put(p.ctx, d); err != nil {
			return p.e.storeError(err)
		}
	}
	c := conflict(l.at.Path, base, revisionText(current.image), fmt.Sprintf("it was changed since it was read, in %d of the same places; both versions are kept, choose or join them", overlaps))
	return c.With(map[string]any{"yours": cas.Sum(data).String(), "overlaps": overlaps})
}

// Edits replaces places of a text file.
type Edits struct {
	ID     string
	Target Target
	Edits  []text.Edit
}

type editInput struct {
	Target Target
	Edits  []text.Edit
}

// Edit carries out Edits: each place must be found exactly once, and everything outside of them keeps its bytes, whatever the encoding. The
// matches say where and how strictly. Errors (codes): those of Write, not_found when there is no file, ambiguous_match and match_not_found with
// candidates, unsupported_format for what is no text.
func (e *Engine) Edit(ctx context.Context, by By, w Edits) (Result, []text.Match, error) {
	var matches []text.Match
	r, err := e.do(ctx, request{id: w.ID, method: "content.edit", input: editInput{w.Target, w.Edits}, by: by}, func(p *plan) error {
		l, before, err := p.subject(w.Target)
		if err != nil {
			return err
		}
		old, err := p.decode(l, before)
		if err != nil {
			return err
		}
		next, found, err := text.Apply(old.String(), w.Edits)
		if err != nil {
			return about(l.at.Path, err)
		}
		matches = found
		data, err := encodeText(l, old, next)
		if err != nil {
			return err
		}
		p.notes = append(p.notes, l.at.Path)
		return p.setText(l, data, before.image.Mode)
	})
	return r, matches, err
}

// decode is the text of a file that an operation changes.
func (p *plan) decode(l located, before *look) (text.Text, error) {
	switch {
	case before.image.Kind == kindAbsent:
		return text.Text{}, fail(codeNotFound, "%s does not exist", l)
	case before.image.Kind == kindDirectory:
		return text.Text{}, fail(codeInput, "%s is a folder, not a file", l)
	case before.data == nil:
		return text.Text{}, fail(codeLimit, "%s is larger than %d MiB and cannot be edited", l, maxDocument>>20)
	}
	t, err := text.Decode(before.data, "")
	if err != nil {
		return text.Text{}, fault.Wrap(codeFormat, fmt.Sprintf("%s was not changed: %v", l, err), err)
	}
	return t, nil
}
