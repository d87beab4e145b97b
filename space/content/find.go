package content

import (
	"context"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/repa-app/repa/space/catalog"
)

// Found is a content whose name or title fits what was looked for.
type Found struct {
	ID    string // of a registered item
	At    catalog.Location
	Title string  // of a Markdown file: its first heading
	Score float64 // 0 to 1
}

// maxWalk bounds the entries that one search goes over.
const maxWalk = 200_000

// Find looks for files, folders and items by their names and the titles of Markdown files: every letter of query must stand in the path in this order; whole words, beginnings and the
// file name itself count more. Upper and lower case, and compositions of one character, are the same. The best come first; limit 0 is 20. Errors:
// invalid_input for a blank query, that of ctx, of the disk.
func (e *Engine) Find(ctx context.Context, query string, limit int) ([]Found, error) {
	want := []rune(catalog.Fold(strings.Join(strings.Fields(query), "")))
	if len(want) == 0 {
		return nil, fail(codeInput, "there is nothing to look for; write a part of a name")
	}
	if limit <= 0 {
		limit = 20
	}
	out := []Found{}
	offer := func(at catalog.Location, id, title string) {
		score := fits(catalog.Fold(at.Path), want)
		if title != "" {
			score = max(score, fits(catalog.Fold(title), want))
		}
		if score > 0 {
			out = append(out, Found{id, at, title, score})
		}
	}
	left := maxWalk
	err := e.walk(ctx, ".", &left, func(name string, isFolder bool) {
		at, id, title := catalog.Here(name), "", ""
		if i := e.itemAt(at); i != nil {
			id = i.ID
		}
		if !isFolder {
			title = e.titles.of(e, name)
		}
		offer(at, id, title)
	})
	if err != nil {
		return nil, err
	}
	for _, i := range e.allItems() {
		if i.State == catalog.Active && i.Location.Kind == catalog.External {
			offer(i.Location, i.ID, "")
		}
	}
	slices.SortStableFunc(out, func(a, b Found) int {
		switch {
		case a.Score != b.Score && a.Score > b.Score:
			return -1
		case a.Score != b.Score:
			return 1
		}
		return strings.Compare(a.At.Path, b.At.Path)
	})
	return out[:min(len(out), limit)], nil
}

// skipped are folders of other programs, full of files that nobody wrote by hand.
var skipped = map[string]bool{".git": true, "node_modules": true}

// walk goes over the files and folders below one, as far as left goes. Symbolic links are not followed.
func (e *Engine) walk(ctx context.Context, folder string, left *int, visit func(name string, isFolder bool)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := e.root.ReadDir(folder)
	if err != nil {
		if folder != "." {
			return nil // gone, or closed to us: the rest can still be searched
		}
		return diskError("folder "+e.path, err)
	}
	for _, entry := range entries {
		if Hidden(entry.Name()) || *left <= 0 {
			continue
		}
		*left--
		name := path.Join(folder, entry.Name())
		if !entry.IsDir() {
			if entry.Type().IsRegular() {
				visit(name, false)
			}
			continue
		}
		visit(name, true)
		if skipped[entry.Name()] {
			continue
		}
		if err := e.walk(ctx, name, left, visit); err != nil {
			return err
		}
	}
	return nil
}

// fits scores a folded path: 0 when the letters do not stand in it in order.
func fits(name string, want []rune) float64 {
	base := path.Base(name)
	whole := string(want)
	switch i := strings.Index(base, whole); {
	case base == whole || strings.TrimSuffix(base, path.Ext(base)) == whole:
		return 1
	case i == 0:
		return 0.95
	case i > 0:
		return 0.9 - 0.05*float64(i)/float64(len(base))
	}
	if strings.Contains(strings.ReplaceAll(name, " ", ""), whole) {
		return 0.7
	}
	// Letters in order: fewer and shorter gaps are better.
	at, gaps, last := 0, 0, -1
	for n, r := range []rune(name) {
		if at < len(want) && r == want[at] {
			if last >= 0 && n > last+1 {
				gaps += n - last - 1
			}
			last = n
			at++
		}
	}
	if at < len(want) {
		return 0
	}
	return 0.6 * float64(len(want)) / float64(len(want)+gaps+utf8.RuneCountInString(name)/8)
}
