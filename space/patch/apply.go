package patch

import (
	"fmt"
	"strings"

	"github.com/repa-app/repa/space/text"
)

// Located says where a hunk was applied and how strictly its place was found.
type Located struct {
	Line     int    // from 1, in the text after
	Strategy string // exact, trailing-space, indent or punctuation
}

// Report tells of the hunks of one action, in their order.
type Report []Located

// MatchError says that the place of a hunk was not found, or found more than once.
type MatchError struct {
	Path       string
	Hunk       int // its number, from 1
	Ambiguous  bool
	Candidates []text.Candidate
}

// Error implements error.
func (e *MatchError) Error() string {
	if e.Ambiguous {
		var lines []string
		for _, c := range e.Candidates {
			lines = append(lines, fmt.Sprint(c.Line))
		}
		return fmt.Sprintf("hunk %d fits in %d places, at lines %s; give more lines around it, or an anchor", e.Hunk, len(e.Candidates), strings.Join(lines, ", "))
	}
	if len(e.Candidates) == 0 {
		return fmt.Sprintf("hunk %d does not fit anywhere behind the one before; read the file and copy its lines exactly", e.Hunk)
	}
	return fmt.Sprintf("hunk %d does not fit anywhere behind the one before; the nearest is at line %d: %q. Read the file and copy its lines exactly",
		e.Hunk, e.Candidates[0].Line, e.Candidates[0].Text)
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
	return map[string]any{"path": e.Path, "hunk": e.Hunk, "lines": lines, "candidates": append([]text.Candidate{}, e.Candidates...)}
}

// passes are the ways to compare lines, the strictest first: lines are the same when their keys are.
var passes = []struct {
	strategy string
	key      func(string) string
}{
	{"exact", func(s string) string { return s }},
	{"trailing-space", func(s string) string { return strings.TrimRight(s, " \t") }},
	{"indent", strings.TrimSpace},
	{"punctuation", text.Plain},
}

// file is the lines of a text with their keys, which are made when a pass needs them.
type file struct {
	lines []text.Line
	keys  [][]string // by pass
}

func (f *file) key(pass int) []string {
	if f.keys == nil {
		f.keys = make([][]string, len(passes))
	}
	if f.keys[pass] == nil {
		f.keys[pass] = make([]string, len(f.lines))
		for i, l := range f.lines {
			f.keys[pass][i] = passes[pass].key(l.Text)
		}
	}
	return f.keys[pass]
}

// maxPlaces bounds how many places an error lists.
const maxPlaces = 20

// Apply makes the hunks of an update. Errors: *MatchError.
func (a Action) Apply(before string) (string, Report, error) {
	lines := text.SplitLines(before)
	keyed := &file{lines: lines}
	var out []text.Line
	var report Report
	from := 0
	for n, h := range a.Hunks {
		at, strategy, err := locate(keyed, from, h)
		if err != nil {
			err.Path, err.Hunk = a.Path, n+1
			if !err.Ambiguous {
				err.Candidates = text.Nearest(before, h.before())
			}
			return "", nil, err
		}
		out = append(out, lines[from:at]...)
		report = append(report, Located{len(out) + 1, strategy})
		taken := h.taken()
		out = append(out, h.write(lines[at:at+taken], around(lines, at))...)
		from = at + taken
	}
	out = append(out, lines[from:]...)
	return finish(out, lines), report, nil
}

// taken is how many lines of the file a hunk covers.
func (h Hunk) taken() (n int) {
	for _, l := range h.Lines {
		if l.Op != '+' {
			n++
		}
	}
	return n
}

// before is what the file has where the hunk fits.
func (h Hunk) before() string {
	var out strings.Builder
	for _, l := range h.Lines {
		if l.Op != '+' {
			out.WriteString(l.Text + "\n")
		}
	}
	if out.Len() == 0 && len(h.Anchors) > 0 {
		return h.Anchors[len(h.Anchors)-1]
	}
	return out.String()
}

// locate finds the line where a hunk begins.
func locate(f *file, from int, h Hunk) (int, string, *MatchError) {
	var want []string
	for _, l := range h.Lines {
		if l.Op != '+' {
			want = append(want, l.Text)
		}
	}
	for i, p := range passes {
		places := find(f.key(i), from, mapped(want, p.key), mapped(h.Anchors, p.key), h)
		switch {
		case len(places) == 1:
			return places[0], p.strategy, nil
		case len(places) > 1:
			e := &MatchError{Ambiguous: true}
			for _, at := range places {
				c := text.Candidate{Line: at + 1, Similarity: 1}
				if at < len(f.lines) {
					c.Text = f.lines[at].Text
				}
				e.Candidates = append(e.Candidates, c)
			}
			return 0, "", e
		}
	}
	return 0, "", &MatchError{}
}

func mapped(list []string, key func(string) string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = key(s)
	}
	return out
}

// find lists the places of a hunk: those behind any line that its anchors fit.
func find(lines []string, from int, want, anchors []string, h Hunk) (out []int) {
	start := from // the first line behind the first fit of the anchors: what is behind a later fit is behind this one too
	for _, anchor := range anchors {
		for start < len(lines) && lines[start] != anchor {
			start++
		}
		if start++; start > len(lines) {
			return nil
		}
	}
	if len(want) == 0 {
		return insertions(lines, start, anchors, h)
	}
	for at := start; at+len(want) <= len(lines) && len(out) < maxPlaces; at++ {
		if h.EndOfFile {
			at = max(at, len(lines)-len(want))
		}
		fits := true
		for i, w := range want {
			if lines[at+i] != w {
				fits = false
				break
			}
		}
		if fits {
			out = append(out, at)
		}
	}
	return out
}

// insertions lists where a hunk of nothing but new lines can go: behind its anchor, or to the end.
func insertions(lines []string, start int, anchors []string, h Hunk) []int {
	if len(anchors) == 0 || h.EndOfFile {
		return []int{len(lines)}
	}
	out := []int{start}
	last := anchors[len(anchors)-1]
	for at := start; at < len(lines) && len(out) < maxPlaces; at++ {
		if lines[at] == last {
			out = append(out, at+1)
		}
	}
	return out
}

// around is the line end of the neighbours of a place: of the line before it, else of the one at it, else a line feed.
func around(lines []text.Line, at int) string {
	if at > 0 && lines[at-1].End != "" {
		return lines[at-1].End
	}
	if at < len(lines) && lines[at].End != "" {
		return lines[at].End
	}
	return "\n"
}

// write makes the lines of a hunk. Those that stay come from the file; one that comes takes the end of the one that it replaces, or of the line before.
func (h Hunk) write(lines []text.Line, end string) (out []text.Line) {
	var gone []string // ends of lines that went and are not replaced yet
	for _, l := range h.Lines {
		switch l.Op {
		case ' ':
			out = append(out, lines[0])
			if lines[0].End != "" {
				end = lines[0].End
			}
			lines, gone = lines[1:], nil
		case '-':
			gone, lines = append(gone, lines[0].End), lines[1:]
		case '+':
			if len(gone) > 0 {
				if gone[0] != "" {
					end = gone[0]
				}
				gone = gone[1:]
			}
			out = append(out, text.Line{Text: l.Text, End: end})
		}
	}
	return out
}

// finish joins lines: only the last may be without an end, and it is when the file's last line was.
func finish(out, before []text.Line) string {
	bare := len(before) > 0 && before[len(before)-1].End == ""
	for i := range out {
		last := i == len(out)-1
		switch {
		case last && bare:
			out[i].End = ""
		case out[i].End == "":
			out[i].End = around(out, i)
		}
	}
	return text.JoinLines(out)
}
