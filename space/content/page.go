package content

import (
	"context"
	"strings"

	"github.com/repa-app/repa/space/catalog"
	"github.com/repa-app/repa/space/internal/fault"
	"github.com/repa-app/repa/space/text"
)

// Limits of one page of text.
const (
	pageLines = 2000
	pageBytes = 50 << 10
)

// PageRequest asks for lines of a text file.
type PageRequest struct {
	Target   Target
	Offset   int    // first line, from 1; 0 is 1
	Limit    int    // number of lines; 0 is 2000
	Revision string // the body must still have it; "" does not matter
}

// Page is a piece of a text file, and where the whole of it is.
type Page struct {
	Info       Info
	Resource   string // id of the whole bytes in the store; "" for a folder
	IsText     bool
	Encoding   string // of the file; Text is UTF-8
	Text       string // whole lines with their ends; a byte order mark counts as text
	Offset     int
	TotalLines int
	Truncated  bool // there is more text than this page has
	NextOffset int  // 0: no further page
}

// Read reads a page of a target; its bytes are kept in the store for a while. What is no text has only a resource. Errors (codes): those of Get,
// invalid_input for an offset beyond the end, revision_conflict when the body is another, recovery_required.
func (e *Engine) Read(ctx context.Context, r PageRequest) (Page, error) {
	if r.Offset < 0 || r.Limit < 0 {
		return Page{}, fail(codeInput, "offset and limit count from 1")
	}
	l, seen, err := e.open(ctx, r.Target)
	if err != nil {
		return Page{}, err
	}
	defer seen.close()
	out := Page{Info: describe(l.item, l.at, seen.image, e.blocked(l.item, l.at.Path))}
	if actual := revisionText(seen.image); r.Revision != "" && r.Revision != actual {
		return Page{}, conflict(l.at.Path, r.Revision, actual, "it was changed since; begin again with what it is now")
	}
	if seen.image.Kind != kindFile {
		return out, nil
	}
	if err := e.noted(ctx, seen); err != nil {
		return Page{}, err
	}
	out.Resource = revisionText(seen.image)
	if seen.data == nil || !mayBeText(out.Info.MediaType) {
		return out, nil
	}
	s, encoding := string(seen.data), "utf-8"
	if !text.IsText(seen.data) {
		t, err := text.Decode(seen.data, "")
		if err != nil {
			return out, nil
		}
		s, encoding = t.String(), t.Encoding()
	}
	out.IsText, out.Encoding = true, encoding
	return out, out.cut(s, r)
}

// mayBeText leaves out what its own reader shows.
func mayBeText(mediaType string) bool {
	return mediaType != "application/pdf" && (!strings.HasPrefix(mediaType, "image/") || mediaType == "image/svg+xml")
}

// cut takes the lines of a page.
func (p *Page) cut(s string, r PageRequest) error {
	lines := text.SplitLines(s)
	p.TotalLines, p.Offset = len(lines), max(r.Offset, 1)
	if p.Offset > max(len(lines), 1) {
		return fail(codeInput, "offset %d is beyond the end of %s, which has %d lines", p.Offset, p.Info.Location.Path, len(lines))
	}
	limit := r.Limit
	if limit == 0 {
		limit = pageLines
	}
	end, size := p.Offset-1, 0
	for end < len(lines) && end-p.Offset+1 < limit {
		if size += len(lines[end].Text) + len(lines[end].End); size > pageBytes {
			break
		}
		end++
	}
	p.Text = text.JoinLines(lines[min(p.Offset-1, len(lines)):end])
	if p.Truncated = end < len(lines); p.Truncated && end >= p.Offset {
		p.NextOffset = end + 1
	}
	return nil
}

// open looks a target up and reads it.
func (e *Engine) open(ctx context.Context, t Target) (located, *look, error) {
	l, err := e.locate(t)
	if err != nil {
		return l, nil, err
	}
	switch {
	case l.at.Kind == catalog.External && l.item == nil:
		return l, nil, fail(codePermission, "%s is outside of this space; add it as a material first", l)
	case l.item != nil && l.item.State != catalog.Active:
		return l, nil, fail(codeNotFound, "content %s was removed", l.item.ID)
	}
	if t.ID != "" {
		if err := e.usable(l); err != nil {
			return l, nil, err
		}
	}
	read := e.read
	if l.at.Kind == catalog.External {
		read = e.lookExternal
	}
	seen, err := read(ctx, l.at.Path, maxDocument)
	if err != nil {
		return l, nil, err
	}
	if seen.image.Kind == kindAbsent {
		return l, nil, fail(codeNotFound, "%s does not exist", l)
	}
	return l, seen, nil
}

// Document is a text file that was read whole.
type Document struct {
	ID       string // of the registered item; "" for a plain file
	Path     string
	Text     string // UTF-8, without byte order mark
	Encoding string
	Revision string
	Size     int64 // of the bytes on disk
}

// ReadText reads a text file whole, in whatever encoding. Errors (codes): those of Read, content_limit above 16 MiB, unsupported_format for what is no
// text.
func (e *Engine) ReadText(ctx context.Context, t Target) (Document, error) {
	l, seen, err := e.open(ctx, t)
	if err != nil {
		return Document{}, err
	}
	defer seen.close()
	switch {
	case seen.image.Kind == kindDirectory:
		return Document{}, fail(codeInput, "%s is a folder, not a file", l)
	case seen.data == nil:
		return Document{}, fail(codeLimit, "%s is larger than %d MiB and cannot be read whole", l, maxDocument>>20)
	}
	s, err := text.Decode(seen.data, "")
	if err != nil {
		return Document{}, fault.Wrap(codeFormat, l.at.Path+": "+err.Error(), err)
	}
	if err := e.noted(ctx, seen); err != nil {
		return Document{}, err
	}
	out := Document{Path: l.at.Path, Text: s.String(), Encoding: s.Encoding(), Revision: revisionText(seen.image), Size: seen.image.Size}
	if l.item != nil {
		out.ID = l.item.ID
	}
	return out, nil
}

// Bytes is a file that was read whole, whatever it has.
type Bytes struct {
	ID        string // of the registered item; "" for a plain file
	Path      string
	MediaType string
	Data      []byte
	Revision  string
}

// ReadBytes reads a file of at most limit bytes whole. Errors (codes): those of Read, invalid_input for a folder, content_limit.
func (e *Engine) ReadBytes(ctx context.Context, t Target, limit int64) (Bytes, error) {
	l, seen, err := e.open(ctx, t)
	if err != nil {
		return Bytes{}, err
	}
	defer seen.close()
	switch {
	case seen.image.Kind == kindDirectory:
		return Bytes{}, fail(codeInput, "%s is a folder, not a file", l)
	case seen.data == nil || seen.image.Size > limit:
		return Bytes{}, fail(codeLimit, "%s has %d bytes, more than the %d that can be read at once", l, seen.image.Size, limit)
	}
	if err := e.noted(ctx, seen); err != nil {
		return Bytes{}, err
	}
	out := Bytes{Path: l.at.Path, MediaType: catalog.MediaType(l.at.Path), Data: seen.data, Revision: revisionText(seen.image)}
	if l.item != nil {
		out.ID, out.MediaType = l.item.ID, l.item.MediaType
	}
	return out, nil
}
