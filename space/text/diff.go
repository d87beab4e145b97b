package text

import (
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"
)

// maxDiffed bounds the text that is compared line by line; the time of a comparison grows with the square of what differs.
const maxDiffed = 1 << 20

// Unified shows the difference of two texts in the unified format, "" when there is none. Very large ones are only said to differ.
func Unified(fromName, toName, before, after string) string {
	if before == after {
		return ""
	}
	if len(before)+len(after) > 2*maxDiffed {
		return "Files " + fromName + " and " + toName + " differ\n"
	}
	return udiff.Unified(fromName, toName, before, after)
}

// change is lines [at, end) of a text that became others.
type change struct {
	at, end int
	lines   []string
}

// keepEnds cuts a text into lines that keep their ends; they share its memory.
func keepEnds(s string) []string {
	var out []string
	for _, l := range SplitLines(s) {
		n := len(l.Text) + len(l.End)
		out, s = append(out, s[:n]), s[n:]
	}
	return out
}

// changes are what turns lines a into lines b, in order and apart from each other.
func changes(a, b []string) (out []change) {
	n := &numbering{known: map[string]int{}}
	from, to := n.of(a), n.of(b)
	start := 0
	for start < len(from) && start < len(to) && from[start] == to[start] {
		start++
	}
	endA, endB := len(from), len(to)
	for endA > start && endB > start && from[endA-1] == to[endB-1] {
		endA, endB = endA-1, endB-1
	}
	if start == endA && start == endB {
		return nil
	}
	for _, e := range udiff.Lines(numbers(from[start:endA]), numbers(to[start:endB])) {
		c := change{at: start + e.Start/numberLen, end: start + e.End/numberLen}
		for at := 0; at < len(e.New); at += numberLen {
			c.lines = append(c.lines, n.lines[parseNumber(e.New[at:at+numberLen-1])])
		}
		if last := len(out) - 1; last >= 0 && out[last].end == c.at {
			out[last].end, out[last].lines = c.end, append(out[last].lines, c.lines...)
			continue
		}
		out = append(out, c)
	}
	return out
}

// numberLen is the length of a line's number as a line.
const numberLen = 9

// numbering gives equal lines equal numbers, so that lines with any ends can be compared as lines.
type numbering struct {
	known map[string]int
	lines []string // by number
}

func (n *numbering) of(list []string) []int {
	out := make([]int, len(list))
	for i, l := range list {
		k, ok := n.known[l]
		if !ok {
			k = len(n.lines)
			n.known[l] = k
			n.lines = append(n.lines, l)
		}
		out[i] = k
	}
	return out
}

func numbers(list []int) string {
	var out strings.Builder
	for _, n := range list {
		out.WriteString(numbered(n))
	}
	return out.String()
}

// numbered is a number as a line of numberLen bytes.
func numbered(n int) string {
	line := []byte("00000000\n")
	for i := numberLen - 2; i >= 0; i-- {
		line[i] = "0123456789abcdef"[n&15]
		n >>= 4
	}
	return string(line)
}

func parseNumber(s string) (n int) {
	for _, c := range []byte(s) {
		n = n<<4 + strings.IndexByte("0123456789abcdef", c)
	}
	return n
}
