package links

import (
	"bytes"
	"slices"
	"sort"
)

// text is the text of a block: its lines, each but the last with a line feed, and where they are in the source.
type text struct {
	bytes  []byte
	lines  []line
	starts []int // of the lines in bytes
}

func join(src []byte, lines []line) text {
	t := text{lines: lines, starts: make([]int, len(lines))}
	first, last := lines[0], lines[len(lines)-1]
	apart := false
	for i := 1; i < len(lines); i++ {
		t.starts[i] = lines[i].start - first.start
		apart = apart || lines[i].start != lines[i-1].end+1 || src[lines[i-1].end] != '\n'
	}
	if !apart {
		t.bytes = src[first.start:last.end:last.end]
		return t
	}
	for i, l := range lines {
		if i > 0 {
			t.bytes = append(t.bytes, '\n')
		}
		t.starts[i] = len(t.bytes)
		t.bytes = append(t.bytes, src[l.start:l.end]...)
	}
	return t
}

// lineAt gives the index of the line that has a place.
func (t *text) lineAt(at int) int {
	return sort.SearchInts(t.starts, at+1) - 1
}

// source gives the place in the source of a place in the text.
func (t *text) source(at int) int {
	i := t.lineAt(at)
	return t.lines[i].start + at - t.starts[i]
}

// beginsLine reports whether a place is the beginning of a line that is not the first.
func (t *text) beginsLine(at int) bool {
	return at > 0 && t.bytes[at-1] == '\n'
}

// place turns a span of the text, which is within a line, into one of the source.
func (t *text) place(d span) span {
	start := t.source(d.start)
	return span{start, start + d.end - d.start, d.angled}
}

// fenceLike reports whether a line begins as fenced code does, and is none because there are more backticks in it.
func (t *text) fenceLike(i int) bool {
	end := len(t.bytes)
	if i+1 < len(t.starts) {
		end = t.starts[i+1]
	}
	rest, ok := bytes.CutPrefix(t.bytes[t.starts[i]:end], []byte("```"))
	return ok && bytes.IndexByte(bytes.TrimLeft(rest, "`"), '`') >= 0
}

// with gives the text with the edits. It has no places in the source.
func (t *text) with(edits []edit) text {
	out := text{bytes: apply(t.bytes, edits), starts: slices.Clone(t.starts)}
	move := movement(edits)
	for i := 1; i < len(out.starts); i++ {
		out.starts[i] = move(out.starts[i]-1) + 1
	}
	return out
}

// edit is a piece of a text and what takes its place. Edits come in order and apart, and none has a line end in it.
type edit struct {
	start, end int
	by         string
}

// apply gives the text with the edits.
func apply(t []byte, edits []edit) []byte {
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		out.Write(t[at:e.start])
		out.WriteString(e.by)
		at = e.end
	}
	out.Write(t[at:])
	return out.Bytes()
}

// movement gives the function that tells where edits move a place that is in none of them.
func movement(edits []edit) func(at int) int {
	by := make([]int, len(edits)+1)
	for i, e := range edits {
		by[i+1] = by[i] + len(e.by) - (e.end - e.start)
	}
	return func(at int) int {
		return at + by[sort.Search(len(edits), func(i int) bool { return edits[i].end > at })]
	}
}
