package text

import (
	"fmt"
	"slices"
	"strings"
)

// Edit replaces one place of a text.
type Edit struct {
	Old string `json:"oldText"`
	New string `json:"newText"`
}

// Match says where an edit was made and how strictly its place was found.
type Match struct {
	Line     int    // from 1, in the text before
	Strategy string // exact, line-ends, trailing-space, indent or punctuation
}

// Candidate is a place that may have been meant.
type Candidate struct {
	Line       int     `json:"line"` // from 1
	Text       string  `json:"text"` // of the line, cut
	Similarity float64 `json:"similarity"`
}

// MatchError says that the place of an edit was not found, or found more than once.
type MatchError struct {
	Edit       int // its number, from 0
	Ambiguous  bool
	Strategy   string // of the places when there are several
	Candidates []Candidate
}

// Error implements error.
func (e *MatchError) Error() string {
	which := "the text to replace"
	if e.Edit > 0 {
		which = fmt.Sprintf("the text to replace in edit %d", e.Edit+1)
	}
	if e.Ambiguous {
		return fmt.Sprintf("%s stands in %d places, at lines %s; add surrounding text until it is unique", which, len(e.Candidates), listLines(e.Candidates))
	}
	if len(e.Candidates) == 0 {
		return which + " does not stand in it; read the file and copy the text exactly"
	}
	return fmt.Sprintf("%s does not stand in it; the nearest is at line %d: %q. Read the file and copy the text exactly", which, e.Candidates[0].Line, e.Candidates[0].Text)
}

// Code returns ambiguous_match or match_not_found.
func (e *MatchError) Code() string {
	if e.Ambiguous {
		return "ambiguous_match"
	}
	return "match_not_found"
}

// Details returns the candidates for programs.
func (e *MatchError) Details() any {
	lines := make([]int, len(e.Candidates))
	for i, c := range e.Candidates {
		lines[i] = c.Line
	}
	return map[string]any{"edit": e.Edit, "lines": lines, "candidates": append([]Candidate{}, e.Candidates...)}
}

func listLines(list []Candidate) string {
	var out []string
	for _, c := range list {
		out = append(out, fmt.Sprint(c.Line))
	}
	return strings.Join(out, ", ")
}

// splice replaces bytes of a text.
type splice struct {
	at, end int
	text    string
}

// Apply makes all edits. Each place is looked for in the text as it was, strictly first: byte by byte; with any line end for a line feed; by
// whole lines without trailing, then without any surrounding white space; then with typographic dashes, quotes and spaces taken for plain ones. The
// first way that finds one place is taken. Everything outside of the places keeps its bytes, and a line feed in New becomes the line end of the line that
// it replaces, or of the one before. Errors: *MatchError, *Error with code invalid_input for no edits, an empty Old and places that overlap.
func Apply(s string, edits []Edit) (string, []Match, error) {
	if len(edits) == 0 {
		return "", nil, fail("invalid_input", "no edit was given")
	}
	lines := &indexed{s: s}
	var splices []splice
	matches := make([]Match, len(edits))
	for i, e := range edits {
		if e.Old == "" {
			return "", nil, fail("invalid_input", "the text to replace in edit %d is empty", i+1)
		}
		sp, strategy, err := lines.find(i, e)
		if err != nil {
			return "", nil, err
		}
		splices = append(splices, sp)
		matches[i] = Match{1 + strings.Count(s[:sp.at], "\n"), strategy}
	}
	slices.SortFunc(splices, func(a, b splice) int { return a.at - b.at })
	var out strings.Builder
	end := 0
	for _, sp := range splices {
		if sp.at < end {
			return "", nil, fail("invalid_input", "two edits overlap at line %d; join them into one", 1+strings.Count(s[:sp.at], "\n"))
		}
		out.WriteString(s[end:sp.at])
		out.WriteString(sp.text)
		end = sp.end
	}
	out.WriteString(s[end:])
	return out.String(), matches, nil
}

// indexed is a text with its lines, which are cut when they are needed.
type indexed struct {
	s     string
	lines []Line
	start []int // of each line in s, and the end of s
}

func (x *indexed) cut() {
	if x.start != nil {
		return
	}
	x.lines = SplitLines(x.s)
	at := 0
	for _, l := range x.lines {
		x.start = append(x.start, at)
		at += len(l.Text) + len(l.End)
	}
	x.start = append(x.start, at)
}

// lineAt is the number, from 0, of the line with a byte.
func (x *indexed) lineAt(at int) int {
	x.cut()
	i, found := slices.BinarySearch(x.start, at)
	if !found {
		i--
	}
	return min(i, max(len(x.lines)-1, 0))
}

// maxOccurrences bounds how many places an error lists.
const maxOccurrences = 20

// find finds the place of an edit.
func (x *indexed) find(n int, e Edit) (splice, string, error) {
	passes := []struct {
		strategy string
		find     func(old string) [][2]int
	}{
		{"exact", x.exact},
		{"line-ends", x.anyLineEnd},
		{"trailing-space", func(old string) [][2]int {
			return x.byLines(old, func(s string) string { return strings.TrimRight(s, " \t") })
		}},
		{"indent", func(old string) [][2]int { return x.byLines(old, strings.TrimSpace) }},
		{"punctuation", func(old string) [][2]int {
			return x.byLines(old, func(s string) string { return Plain(s) })
		}},
	}
	for _, p := range passes {
		places := p.find(e.Old)
		switch {
		case len(places) == 1:
			at, end := places[0][0], places[0][1]
			return splice{at, end, x.withEnds(at, end, e.New)}, p.strategy, nil
		case len(places) > 1:
			return splice{}, "", &MatchError{Edit: n, Ambiguous: true, Strategy: p.strategy, Candidates: x.candidates(places)}
		}
	}
	return splice{}, "", &MatchError{Edit: n, Candidates: x.nearest(e.Old)}
}

// exact finds up to maxOccurrences places, overlapping ones too: "aa" stands twice in "aaa".
func (x *indexed) exact(old string) (out [][2]int) {
	for at := 0; len(out) < maxOccurrences; at++ {
		i := strings.Index(x.s[at:], old)
		if i < 0 {
			break
		}
		at += i
		out = append(out, [2]int{at, at + len(old)})
	}
	return out
}

// anyLineEnd finds places where old's line ends stand for any.
func (x *indexed) anyLineEnd(old string) (out [][2]int) {
	want := SplitLines(old)
	x.cut()
	if len(want) < 2 && (len(want) == 0 || want[0].End == "") {
		return nil // no line end: the exact way has looked
	}
	last := len(want) - 1
	for i := 0; i+last < len(x.lines) && len(out) < maxOccurrences; i++ {
		if !x.fits(i, want) {
			continue
		}
		at := x.start[i] + len(x.lines[i].Text) - len(want[0].Text)
		end := x.start[i+last] + len(want[last].Text)
		if want[last].End != "" {
			end = x.start[i+last+1]
		}
		out = append(out, [2]int{at, end})
	}
	return out
}

// fits reports whether lines from i on are as want says: the first ends so, those between are so, the last begins so.
func (x *indexed) fits(i int, want []Line) bool {
	last := len(want) - 1
	for k, w := range want {
		l := x.lines[i+k]
		whole := w.End != ""
		switch {
		case k == 0 && last > 0:
			if !strings.HasSuffix(l.Text, w.Text) || l.End == "" {
				return false
			}
		case k == 0 && whole:
			if !strings.HasSuffix(l.Text, w.Text) || l.End == "" {
				return false
			}
		case whole:
			if l.Text != w.Text || l.End == "" {
				return false
			}
		default:
			if !strings.HasPrefix(l.Text, w.Text) {
				return false
			}
		}
	}
	return true
}

// byLines finds whole lines that are the same once each is made plain. Blank lines at the ends of old are of no importance.
func (x *indexed) byLines(old string, plain func(string) string) (out [][2]int) {
	x.cut()
	want := SplitLines(old)
	texts := make([]string, len(want))
	blank := true
	for i, w := range want {
		texts[i] = plain(w.Text)
		blank = blank && texts[i] == ""
	}
	if blank {
		return nil
	}
	for i := 0; i+len(texts) <= len(x.lines) && len(out) < maxOccurrences; i++ {
		same := true
		for k := range texts {
			if plain(x.lines[i+k].Text) != texts[k] {
				same = false
				break
			}
		}
		if !same {
			continue
		}
		last := i + len(texts) - 1
		end := x.start[last] + len(x.lines[last].Text)
		if want[len(want)-1].End != "" {
			end = x.start[last+1]
		}
		out = append(out, [2]int{x.start[i], end})
	}
	return out
}

var typographic = strings.NewReplacer(
	"‐", "-", "‑", "-", "‒", "-", "–", "-", "—", "-", "―", "-", "−", "-",
	"‘", "'", "’", "'", "‚", "'", "‛", "'", "“", `"`, "”", `"`, "„", `"`, "‟", `"`,
	"\u00a0", " ", "\u2002", " ", "\u2003", " ", "\u2004", " ", "\u2005", " ", "\u2006", " ", "\u2007", " ", "\u2008", " ", "\u2009", " ",
	"\u200a", " ", "\u202f", " ", "\u205f", " ", "\u3000", " ")

// Plain takes typographic dashes, quotes and spaces for the ones on a keyboard. It is only for finding.
func Plain(s string) string { return strings.TrimSpace(typographic.Replace(s)) }

// withEnds gives the line feeds of a new text the line ends of what it replaces.
func (x *indexed) withEnds(at, end int, s string) string {
	if !strings.Contains(s, "\n") {
		return s
	}
	x.cut()
	var ends []string
	first := x.lineAt(at)
	for i := first; i < len(x.lines) && x.start[i] < max(end, at+1); i++ {
		if x.lines[i].End != "" {
			ends = append(ends, x.lines[i].End)
		}
	}
	if len(ends) == 0 && first > 0 {
		ends = append(ends, x.lines[first-1].End)
	}
	if len(ends) == 0 {
		return s
	}
	lines := SplitLines(s)
	for i := range lines {
		if lines[i].End == "\n" {
			lines[i].End = ends[min(i, len(ends)-1)]
		}
	}
	return JoinLines(lines)
}

// shown cuts a line for an error.
func shown(s string) string {
	if r := []rune(s); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return s
}

func (x *indexed) candidates(places [][2]int) (out []Candidate) {
	for _, p := range places {
		i := x.lineAt(p[0])
		out = append(out, Candidate{i + 1, shown(x.lines[i].Text), 1})
	}
	return out
}

const (
	// maxCompared bounds the lines that are compared for candidates, and maxCompare the bytes of each: an error should cost less than a read.
	maxCompared = 20_000
	maxCompare  = 400
	// leastSimilar is below what a line is no candidate.
	leastSimilar = 0.4
)

// nearest finds up to three lines that are most like the longest line of a text.
func (x *indexed) nearest(old string) (out []Candidate) {
	x.cut()
	longest := ""
	for _, l := range SplitLines(old) {
		if t := strings.TrimSpace(l.Text); len(t) > len(longest) {
			longest = t
		}
	}
	if longest == "" {
		return nil
	}
	want := pairs(longest)
	for i, l := range x.lines[:min(len(x.lines), maxCompared)] {
		if s := alike(want, pairs(strings.TrimSpace(l.Text))); s >= leastSimilar {
			out = append(out, Candidate{i + 1, shown(l.Text), s})
		}
	}
	slices.SortStableFunc(out, func(a, b Candidate) int {
		switch {
		case a.Similarity > b.Similarity:
			return -1
		case a.Similarity < b.Similarity:
			return 1
		}
		return 0
	})
	return out[:min(len(out), 3)]
}

// pairs counts the pairs of neighbouring characters.
func pairs(s string) map[[2]rune]int {
	out := map[[2]rune]int{}
	var last rune
	for _, r := range s[:min(len(s), maxCompare)] {
		out[[2]rune{last, r}]++
		last = r
	}
	return out
}

// alike is Dice's coefficient of two counts: 1 when they are the same.
func alike(a, b map[[2]rune]int) float64 {
	common, all := 0, 0
	for p, n := range a {
		common += min(n, b[p])
		all += n
	}
	for _, n := range b {
		all += n
	}
	if all == 0 {
		return 0
	}
	return 2 * float64(common) / float64(all)
}

// Nearest finds up to three lines of a text that are most like the longest line of another.
func Nearest(s, like string) []Candidate { return (&indexed{s: s}).nearest(like) }
