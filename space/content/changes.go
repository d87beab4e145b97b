package content

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/repa-app/repa/space/catalog"
)

// Unresolved is an operation that needs recovery.
type Unresolved struct {
	Operation string
	Status    Status
	Conflicts []string
	Error     string
}

// OutsideChange is a file that another program changed last.
type OutsideChange struct {
	Path     string
	Revision *string // nil: it is gone, or too large to be read
	Time     int64   // ms since 1970
}

// MissingContent is an item whose file is gone, with the files that have the bytes it last had.
type MissingContent struct {
	Item      string
	Path      string
	Proposals []string
}

// ConflictCopy is a file that a program which synchronises folders made beside another.
type ConflictCopy struct{ Path, Of string }

// Report is what in a space wants somebody's attention.
type Report struct {
	Unresolved     []Unresolved
	Outside        []OutsideChange
	Missing        []MissingContent
	ConflictCopies []ConflictCopy
	Twins          [][2]string // paths that some disk or eye takes for one
}

// maxReported bounds each list of a report.
const maxReported = 1000

// Report looks through the space for what wants attention. Errors: that of ctx, of the disk.
func (e *Engine) Report(ctx context.Context) (Report, error) {
	out := Report{Unresolved: []Unresolved{}, Outside: []OutsideChange{}, Missing: []MissingContent{}, ConflictCopies: []ConflictCopy{}, Twins: [][2]string{}}
	e.mu.RLock()
	seen := map[string]bool{}
	for _, o := range slices.Backward(e.order) {
		if o.status == NeedsRecovery {
			out.Unresolved = append(out.Unresolved, Unresolved{o.id, o.status, o.conflicts, o.err})
		}
		if o.status != Committed {
			continue
		}
		for _, f := range o.files {
			if seen[f.Path] {
				continue
			}
			seen[f.Path] = true
			if o.by.Actor == Outside && len(out.Outside) < maxReported {
				out.Outside = append(out.Outside, OutsideChange{f.Path, f.After.Revision(), o.time})
			}
		}
	}
	e.mu.RUnlock()
	names := map[string]string{}
	files := map[string]bool{}
	left := maxWalk
	err := e.walk(ctx, ".", &left, func(name string, isFolder bool) {
		if !isFolder {
			files[name] = true
		}
		key := catalog.Fold(name)
		if other, twice := names[key]; twice && len(out.Twins) < maxReported {
			out.Twins = append(out.Twins, [2]string{other, name})
		}
		names[key] = name
	})
	if err != nil {
		return out, err
	}
	for _, name := range sortedKeys(files) {
		if of := conflictCopyOf(name); of != "" && files[of] && len(out.ConflictCopies) < maxReported {
			out.ConflictCopies = append(out.ConflictCopies, ConflictCopy{name, of})
		}
	}
	return out, e.reportMissing(ctx, files, &out)
}

// reportMissing lists the items whose file is gone; a file that no item claims and that has the last known bytes is proposed.
func (e *Engine) reportMissing(ctx context.Context, files map[string]bool, out *Report) error {
	for _, i := range e.allItems() {
		if i.State != catalog.Active || i.Location.Kind != catalog.Relative || len(out.Missing) >= maxReported {
			continue
		}
		l, err := e.stat(i.Location.Path)
		if err != nil || l.image.Kind != kindAbsent {
			continue
		}
		m := MissingContent{i.ID, i.Location.Path, []string{}}
		if known, ok := e.lastFile(i.Location.Path); ok && known.Body != nil {
			for _, name := range sortedKeys(files) {
				if err := ctx.Err(); err != nil {
					return err
				}
				if l, err := e.stat(name); err != nil || l.image.Size != known.Size || e.itemAt(catalog.Here(name)) != nil {
					continue
				}
				if body, err := e.sum(ctx, name); err == nil && body == *known.Body {
					m.Proposals = append(m.Proposals, name)
				}
			}
		}
		out.Missing = append(out.Missing, m)
	}
	return nil
}

// lastFile is the newest file that the history knows at a path.
func (e *Engine) lastFile(name string) (Image, bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, s := range e.trail(name) {
		for _, i := range []Image{s.file.After, s.file.Before} {
			if i.Body != nil {
				return i, true
			}
		}
	}
	return Image{}, false
}

// conflictForms are the names that programs give to the second version of a file: Syncthing, Dropbox and Nextcloud, OneDrive and Google Drive leave
// only a number or the computer's name, which many other files have too, so those are not taken.
var conflictForms = []*regexp.Regexp{
	regexp.MustCompile(`^(.+)\.sync-conflict-\d{8}-\d{6}(?:-[A-Z0-9]+)?(\.[^./]*)?$`),
	regexp.MustCompile(`^(.+) \([^()]*(?:conflicted copy|conflict|冲突的?副本|競合コピー|충돌된 사본)[^()]*\)(\.[^./]*)?$`),
}

// conflictCopyOf is the path of the file that a conflict copy belongs to, "" for other files.
func conflictCopyOf(name string) string {
	base := path.Base(name)
	for _, form := range conflictForms {
		if m := form.FindStringSubmatch(base); m != nil {
			return path.Join(path.Dir(name), m[1]+m[2])
		}
	}
	return ""
}

func sortedKeys(m map[string]bool) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.SortFunc(out, strings.Compare)
	return out
}
