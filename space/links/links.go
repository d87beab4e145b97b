package links

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// scheme begins every reference.
const scheme = "repa:"

// roles are the words behind the scheme. Which one a reference has is not checked against the content: its id alone counts.
var roles = []string{"document/", "material/"}

// place is a reference as it stands in a text: the id is at bytes [at, end).
type place struct{ at, end int }

// places finds everything that looks like a reference.
func places(src []byte) (out []place) {
	for at := 0; ; {
		i := bytes.Index(src[at:], []byte(scheme))
		if i < 0 {
			return out
		}
		at += i + len(scheme)
		for _, role := range roles {
			if !bytes.HasPrefix(src[at:], []byte(role)) {
				continue
			}
			from := at + len(role)
			end := from
			for end < len(src) && isID(src[end]) {
				end++
			}
			if end > from {
				out = append(out, place{from, end})
			}
		}
	}
}

func isID(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// Rewrite gives references other ids: change is called with the id of each link, image, autolink and link definition of CommonMark whose destination is a
// reference, alone or with a locator behind it, and where it answers true the bytes of the id are replaced. All else stays byte-identical, code spans
// and blocks among it. A new id must be one of letters, digits, - and _.
func Rewrite(src []byte, change func(id string) (string, bool)) []byte {
	found := places(src)
	if len(found) == 0 {
		return src
	}
	real := destinations(src, found)
	var out []byte
	at := 0
	for i, p := range found {
		if !real[i] {
			continue
		}
		if next, ok := change(string(src[p.at:p.end])); ok {
			out = append(append(out, src[at:p.at]...), next...)
			at = p.end
		}
	}
	if at == 0 {
		return src
	}
	return append(out, src[at:]...)
}

// Find lists the ids of the references of a text, in order, each as often as it stands there.
func Find(src []byte) (ids []string) {
	Rewrite(src, func(id string) (string, bool) {
		ids = append(ids, id)
		return "", false
	})
	return ids
}

// destinations says which places are destinations. The parser tells destinations without their places, so each place gets an id of its own first: those
// that come back as the whole id of a destination are real.
func destinations(src []byte, found []place) []bool {
	var marked []byte
	at := 0
	mark := unused(src)
	for i, p := range found {
		marked = append(append(marked, src[at:p.at]...), fmt.Sprintf("%s%d", mark, i)...)
		at = p.end
	}
	marked = append(marked, src[at:]...)
	real := make([]bool, len(found))
	take := func(destination []byte) {
		rest, ok := bytes.CutPrefix(destination, []byte(scheme))
		for _, role := range roles {
			if id, fits := bytes.CutPrefix(rest, []byte(role)); ok && fits {
				if i := bytes.IndexAny(id, "?#"); i >= 0 {
					id = id[:i]
				}
				var n int
				if _, err := fmt.Sscanf(string(id), mark+"%d", &n); err == nil && n >= 0 && n < len(found) && string(id) == fmt.Sprintf("%s%d", mark, n) {
					real[n] = true
				}
			}
		}
	}
	ctx := parser.NewContext()
	document := goldmark.DefaultParser().Parse(text.NewReader(marked), parser.WithContext(ctx))
	// Walk fails only when its function does.
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			take(n.Destination)
		case *ast.Image:
			take(n.Destination)
		case *ast.AutoLink:
			take(n.URL(marked))
		}
		return ast.WalkContinue, nil
	})
	for _, r := range ctx.References() {
		take(r.Destination())
	}
	return real
}

// unused is a beginning of ids that the text does not have.
func unused(src []byte) string {
	mark := "r"
	for bytes.Contains(src, []byte("/"+mark)) {
		mark += strings.Repeat("r", 3)
	}
	return mark
}
