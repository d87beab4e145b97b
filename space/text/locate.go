package text

import (
	"slices"
	"strings"
	"unicode"
)

// indexed is a text with its lines, which are cut when they are needed.
type indexed struct {
	s     string
	lines []Line
	start []int               // of each line in s, and the end of s
	plain map[string][]string // the lines as a way compares them, by the name of the way
}

func (x *indexed) cut() {
	if x.start != nil {
		return
	}
	x.lines = SplitLines(x.s)
	x.start = make([]int, 0, len(x.lines)+1)
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

// lineNumber is the number, from 1, of the line with a byte.
func lineNumber(s string, at int) int {
	before := s[:at]
	n := 1 + strings.Count(before, "\n") + strings.Count(before, "\r") - strings.Count(before, "\r\n")
	if strings.HasSuffix(before, "\r") && strings.HasPrefix(s[at:], "\n") {
		n-- // in the middle of a line end
	}
	return n
}

// maxOccurrences bounds how many places an error lists.
const maxOccurrences = 20

// A place is the bytes [at, end) of a text.
type place struct{ at, end int }

// ways to find text, the strictest first.
var ways = []struct {
	name string
	find func(x *indexed, name, old string) []place
}{
	{"exact", (*indexed).exact},
	{"line-ends", (*indexed).anyLineEnd},
	{"trailing-space", byLines(func(s string) string { return strings.TrimRightFunc(s, unicode.IsSpace) })},
	{"indent", byLines(strings.TrimSpace)},
	{"punctuation", byLines(Plain)},
}

// find finds the place of an edit.
func (x *indexed) find(n int, e Edit) (splice, string, error) {
	for _, way := range ways {
		places := way.find(x, way.name, e.Old)
		switch {
		case len(places) == 1:
			at, end := places[0].at, places[0].end
			return splice{at, end, x.withEnds(at, end, e.New)}, way.name, nil
		case len(places) > 1:
			return splice{}, "", &MatchError{Edit: n, Ambiguous: true, Strategy: way.name, Candidates: x.candidates(places)}
		}
	}
	return splice{}, "", &MatchError{Edit: n, Candidates: x.nearest(e.Old)}
}

func (x *indexed) candidates(places []place) (out []Candidate) {
	for _, p := range places {
		i := x.lineAt(p.at)
		out = append(out, Candidate{i + 1, shown(x.lines[i].Text, p.at-x.start[i]), 1})
	}
	return out
}

// exact finds up to maxOccurrences places, overlapping ones too: "aa" stands twice in "aaa".
func (x *indexed) exact(_, old string) (out []place) {
	for at := 0; len(out) < maxOccurrences; at++ {
		i := strings.Index(x.s[at:], old)
		if i < 0 {
			break
		}
		at += i
		out = append(out, place{at, at + len(old)})
	}
	return out
}

// anyLineEnd finds places where old's line ends stand for any: the end of a line, whole lines, the beginning of a line.
func (x *indexed) anyLineEnd(_, old string) (out []place) {
	if !strings.ContainsAny(old, "\r\n") {
		return nil // the exact way has looked
	}
	x.cut()
	want := SplitLines(old)
	head, whole := want[0].Text, make([]string, 0, len(want))
	tail := ""
	for _, w := range want[1:] {
		if w.End == "" {
			tail = w.Text
			break
		}
		whole = append(whole, w.Text)
	}
	search := newSequence(whole)
	for i := 0; i < len(x.lines) && len(out) < maxOccurrences; i++ {
		last := i - len(whole) // the line with the head when the whole lines end at line i
		if len(whole) > 0 && i > 0 && !search.next(x.lines[i].Text) || last < 0 {
			continue
		}
		if x.lines[i].End == "" || !strings.HasSuffix(x.lines[last].Text, head) {
			continue
		}
		p := place{x.start[last] + len(x.lines[last].Text) - len(head), x.start[i+1]}
		if tail != "" {
			if i+1 == len(x.lines) || !strings.HasPrefix(x.lines[i+1].Text, tail) {
				continue
			}
			p.end += len(tail)
		}
		out = append(out, p)
	}
	return out
}

// byLines finds whole lines that are the same once each is made plain. Nothing but blank lines is found nowhere.
func byLines(plain func(string) string) func(x *indexed, name, old string) []place {
	return func(x *indexed, name, old string) (out []place) {
		want := SplitLines(old)
		texts, blank := make([]string, len(want)), true
		for i, w := range want {
			texts[i] = plain(w.Text)
			blank = blank && texts[i] == ""
		}
		if blank {
			return nil
		}
		x.cut()
		if x.plain[name] == nil {
			lines := make([]string, len(x.lines))
			for i, l := range x.lines {
				lines[i] = plain(l.Text)
			}
			if x.plain == nil {
				x.plain = map[string][]string{}
			}
			x.plain[name] = lines
		}
		search := newSequence(texts)
		for i, l := range x.plain[name] {
			if !search.next(l) {
				continue
			}
			end := x.start[i] + len(x.lines[i].Text)
			if want[len(want)-1].End != "" {
				end = x.start[i+1]
			}
			if out = append(out, place{x.start[i+1-len(texts)], end}); len(out) == maxOccurrences {
				break
			}
		}
		return out
	}
}

// sequence finds lines one behind another, each line seen once (Knuth, Morris, Pratt): text with many equal lines costs no more than other text.
type sequence struct {
	want []string
	fall []int // how many of the first lines fit still when the line behind the first i does not
	have int
}

func newSequence(want []string) *sequence {
	q := &sequence{want: want, fall: make([]int, len(want)+1)}
	for i := 1; i < len(want); i++ {
		n := q.fall[i]
		for n > 0 && want[i] != want[n] {
			n = q.fall[n]
		}
		if want[i] == want[n] {
			n++
		}
		q.fall[i+1] = n
	}
	return q
}

// next takes the next line and reports whether the sequence ends with it.
func (q *sequence) next(line string) bool {
	if q.have == len(q.want) {
		q.have = q.fall[q.have]
	}
	for q.have > 0 && q.want[q.have] != line {
		q.have = q.fall[q.have]
	}
	if q.want[q.have] == line {
		q.have++
	}
	return q.have == len(q.want)
}

// Plain takes typographic dashes, quotes and spaces for the ones on a keyboard, and drops white space at both sides. It is only for finding.
func Plain(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r < 0x80:
			return r
		case r >= 0x2010 && r <= 0x2015, r == 0x2212:
			return '-'
		case r >= 0x2018 && r <= 0x201b:
			return '\''
		case r >= 0x201c && r <= 0x201f:
			return '"'
		case r == 0xa0, r >= 0x2002 && r <= 0x200a, r == 0x202f, r == 0x205f, r == 0x3000:
			return ' '
		}
		return r
	}, s))
}
