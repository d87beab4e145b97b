package content

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/space/internal/fault"
)

// Derived is a patch that is computed from what the space has when its turn comes.
type Derived struct {
	ID      string
	Request any // what the id stands for: it alone is compared when the id comes again. It encodes as JSON without loss.
}

// Scope is what a derivation may look at. It ends with the derivation.
type Scope struct {
	p     *plan
	ended bool
	kept  []cas.ID
}

var errScopeEnded = fail("closed", "the derivation of the patch has ended; nothing more can be read for it")

// Read reads a text file, as the patch will find it. Errors (codes): closed, those of ReadText.
func (s *Scope) Read(t Target) (Document, error) {
	if s.ended {
		return Document{}, errScopeEnded
	}
	l, before, err := s.p.subject(t)
	if err != nil {
		return Document{}, err
	}
	decoded, err := s.p.decode(l, before)
	if err != nil {
		return Document{}, err
	}
	out := Document{Path: l.at.Path, Text: decoded.String(), Encoding: decoded.Encoding(), Revision: revisionText(before.image), Size: before.image.Size}
	if l.item != nil {
		out.ID = l.item.ID
	}
	return out, nil
}

// Resource reads kept bytes of at most limit. Errors (codes): closed, revision_unavailable, content_limit.
func (s *Scope) Resource(id string, limit int64) ([]byte, error) {
	if s.ended {
		return nil, errScopeEnded
	}
	object, err := cas.ParseID(id)
	if err != nil {
		return nil, fail(codeInput, "resource %q: want 64 hexadecimal digits", id)
	}
	data, err := s.p.e.store.Get(s.p.ctx, object, limit)
	switch {
	case errors.Is(err, cas.ErrNotFound):
		return nil, fail(codeGone, "the bytes %s are not kept", id)
	case errors.Is(err, cas.ErrTooLarge):
		return nil, fail(codeLimit, "the bytes %s are more than %d", id, limit)
	}
	return data, s.p.e.storeError(err)
}

// Keep stores bytes that the patch will name, and returns their id: the operation holds them, so that no collection comes in between. Errors (codes):
// closed, storage.
func (s *Scope) Keep(data []byte) (string, error) {
	if s.ended {
		return "", errScopeEnded
	}
	id, err := s.p.e.store.Put(s.p.ctx, data)
	if err != nil {
		return "", s.p.e.storeError(err)
	}
	s.kept = append(s.kept, id)
	return id.String(), nil
}

// ApplyDerived lets derive compute a patch and applies it, all in one turn of the space: nothing changes in between. When the id comes again, derive is not
// called, so what it took from the clock or from chance stays as it was. A failure of derive leaves no record and may be tried again. Errors (codes):
// invalid_input for a request that JSON does not carry, those of derive and of ApplyPatch.
func (e *Engine) ApplyDerived(ctx context.Context, by By, d Derived, derive func(*Scope) (Patch, error)) (Result, error) {
	input, err := lossless(d.Request)
	if err != nil {
		return Result{}, err
	}
	return e.do(ctx, request{id: d.ID, method: "derived-patch", input: input, by: by}, func(p *plan) error {
		s := &Scope{p: p}
		w, err := derive(s)
		s.ended = true
		if err != nil {
			return err
		}
		w.ID = d.ID
		p.kept = s.kept
		_, err = p.patch(w)
		return err
	})
}

// lossless is a request as JSON, when reading that gives the same JSON again.
func lossless(v any) (json.RawMessage, error) {
	data, err := json.Marshal(v)
	if err == nil {
		var back any
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber()
		err = decoder.Decode(&back)
	}
	if err != nil {
		return nil, fault.Wrap(codeInput, fmt.Sprintf("the request of a derived patch is no JSON: %v", err), err)
	}
	return data, nil
}
