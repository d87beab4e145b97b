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
	Line       int     `json:"line"`       // from 1, where the place begins
	Text       string  `json:"text"`       // of the line, of a long one 200 characters around the place
	Similarity float64 `json:"similarity"` // from 0 to 1, which is the same
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
		number := fmt.Sprint(len(e.Candidates))
		if len(e.Candidates) >= maxOccurrences {
			number += " or more"
		}
		return fmt.Sprintf("%s stands in %s places, at lines %s; add surrounding text until it is unique", which, number, listLines(e.Candidates))
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

// Apply makes all edits. Each place is looked for in the text as it was, strictly first:
//
//   - exact: byte by byte;
//   - line-ends: with any line end for any other;
//   - trailing-space: by whole lines, without white space at their ends;
//   - indent: by whole lines, without white space at either side;
//   - punctuation: so too, with typographic dashes, quotes and spaces taken for plain ones.
//
// The first way that finds a place decides: one place is taken, several are refused. What is found loosely is replaced as it stands in the text, a whole line with its
// indentation; all bytes outside of the places stay. Line ends of New become those of the lines that it replaces, line by line, and behind these that of the
// last one; where it replaces none, that of the line before. The time is linear in the text for each edit. Errors: *MatchError; *Error with code
// invalid_input for no edits, an empty Old and places that overlap.
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
		matches[i] = Match{lineNumber(s, sp.at), strategy}
	}
	slices.SortFunc(splices, func(a, b splice) int { return a.at - b.at })
	var out strings.Builder
	end := 0
	for _, sp := range splices {
		if sp.at < end {
			return "", nil, fail("invalid_input", "two edits overlap at line %d; join them into one", lineNumber(s, sp.at))
		}
		out.WriteString(s[end:sp.at])
		out.WriteString(sp.text)
		end = sp.end
	}
	out.WriteString(s[end:])
	return out.String(), matches, nil
}

// withEnds gives the lines of a new text the line ends of what it replaces.
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
		if strings.HasSuffix(lines[i].End, "\n") {
			lines[i].End = ends[min(i, len(ends)-1)]
		}
	}
	return JoinLines(lines)
}
