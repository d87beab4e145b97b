package search

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"math/bits"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/repa-app/repa/cas/vfs"
)

const (
	// maxFile: a larger file is data rather than a text to learn from.
	maxFile = 4 << 20
	// maxDepth ends a descent that no person made.
	maxDepth = 64
	// perFile bounds the lines that one file offers, so that one long file cannot hide the others.
	perFile = 8
	k1, b   = 1.2, 0.75
)

// Match is one line that answers a query.
type Match struct {
	Path  string // slash-separated, below the searched folder
	Line  int    // from 1
	Text  string // the line as written, without its line end
	Score float64
}

// Result of a search.
type Result struct {
	Matches []Match // the best first
	More    bool    // there were more than the limit
	Files   int     // text files read
	Skipped int     // files passed over: too large, no text, unreadable
}

// Files searches the tree below fsys. Errors: that of ctx, and of listing the root; what else cannot be read is counted.
func Files(ctx context.Context, fsys vfs.FS, query string, limit int) (Result, error) {
	terms, phrase := queryTerms(query)
	s := &scan{ctx: ctx, terms: map[string]int{}, phrase: phrase, found: make([]int, len(terms))}
	if len(terms) == 0 {
		return Result{}, nil
	}
	for i, t := range terms {
		s.terms[t] = i
	}
	if err := s.folder(fsys, "", 0); err != nil {
		return Result{}, err
	}
	matches := s.rank()
	r := Result{Matches: matches, Files: s.files, Skipped: s.skipped}
	if len(matches) > limit {
		r.Matches, r.More = matches[:limit], true
	}
	return r, nil
}

// scan gathers, in one pass, what ranking needs: per file the term counts, per line the set of its terms.
type scan struct {
	ctx     context.Context
	terms   map[string]int
	phrase  string
	found   []int // in how many files each term occurs
	files   int
	skipped int
	length  int // terms in all files
	hits    []file
}

type file struct {
	path   string
	length int
	counts []int
	lines  []line
}

type line struct {
	number int
	text   string
	terms  uint64 // of the line
	around uint64 // of the line, its heading and its neighbours
	phrase bool
}

func (s *scan) folder(fsys vfs.FS, prefix string, depth int) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	entries, err := fsys.ReadDir(".")
	if err != nil {
		if prefix == "" {
			return err
		}
		s.skipped++
		return nil
	}
	for _, e := range entries {
		name := e.Name()
		switch {
		case e.IsDir():
			if strings.HasPrefix(name, ".") || name == "node_modules" || depth == maxDepth {
				continue
			}
			sub, err := fsys.Sub(name)
			if err != nil {
				s.skipped++
				continue
			}
			if err := errors.Join(s.folder(sub, path.Join(prefix, name), depth+1), sub.Close()); err != nil {
				return err
			}
		case e.Type().IsRegular():
			s.file(fsys, name, path.Join(prefix, name))
		}
	}
	return nil
}

func (s *scan) file(fsys vfs.FS, name, full string) {
	data, err := vfs.ReadFile(fsys, name, maxFile)
	if err != nil || !utf8.Valid(data) || bytes.IndexByte(data[:min(len(data), 8192)], 0) >= 0 {
		s.skipped++
		return
	}
	s.files++
	f := file{path: full, counts: make([]int, len(s.found))}
	var inPath uint64
	eachTerm(normalize(full), func(t string) {
		if i, ok := s.terms[t]; ok {
			inPath |= 1 << i
			f.counts[i] += 2 // a name says what the whole file is about
		}
	})
	var all []line
	var heading uint64
	number := 0
	for text := range strings.Lines(string(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))) {
		number++
		text = strings.TrimRight(text, "\r\n")
		normal := normalize(text)
		l := line{number: number, text: text, phrase: len(s.phrase) > 0 && strings.Contains(normal, s.phrase)}
		eachTerm(normal, func(t string) {
			f.length++
			if i, ok := s.terms[t]; ok {
				l.terms |= 1 << i
				f.counts[i]++
			}
		})
		if strings.HasPrefix(text, "#") {
			heading = l.terms
		}
		l.around = l.terms | heading | inPath
		all = append(all, l)
	}
	s.length += f.length
	for i, n := range f.counts {
		if n > 0 {
			s.found[i]++
		}
	}
	for i := range all {
		if all[i].terms == 0 && !all[i].phrase {
			continue
		}
		for _, j := range []int{i - 1, i + 1} {
			if j >= 0 && j < len(all) {
				all[i].around |= all[j].terms
			}
		}
		f.lines = append(f.lines, all[i])
	}
	if len(f.lines) > 0 {
		s.hits = append(s.hits, f)
	}
}

func (s *scan) rank() []Match {
	weights := make([]float64, len(s.found))
	for i, n := range s.found {
		weights[i] = math.Log(1 + (float64(s.files)-float64(n)+0.5)/(float64(n)+0.5))
	}
	average := max(1, float64(s.length)/float64(max(1, s.files)))
	var out []Match
	for _, f := range s.hits {
		score := 0.0
		for i, n := range f.counts {
			tf := float64(n)
			score += weights[i] * tf * (k1 + 1) / (tf + k1*(1-b+b*float64(f.length)/average))
		}
		out = append(out, f.best(score, weights)...)
	}
	slices.SortStableFunc(out, func(a, b Match) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
	})
	return out
}

// best returns the file's best lines. A line counts for its own terms, half for those around it, and for its file.
func (f *file) best(fileScore float64, weights []float64) []Match {
	var out []Match
	for _, l := range f.lines {
		own, around := sum(l.terms, weights), sum(l.around, weights)
		m := Match{Path: f.path, Line: l.number, Text: l.text, Score: own + around/2 + fileScore}
		if strings.HasPrefix(l.text, "#") {
			m.Score -= own / 2 // a heading names the subject; the answer stands below it
		}
		if l.phrase {
			m.Score += 2 * sum(math.MaxUint64, weights)
		}
		out = append(out, m)
	}
	slices.SortStableFunc(out, func(a, b Match) int { return cmp.Compare(b.Score, a.Score) })
	return out[:min(len(out), perFile)]
}

func sum(set uint64, weights []float64) (total float64) {
	for set != 0 {
		i := bits.TrailingZeros64(set)
		set &^= 1 << i
		if i >= len(weights) {
			break
		}
		total += weights[i]
	}
	return total
}
