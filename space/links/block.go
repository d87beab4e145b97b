package links

import (
	"bytes"
	"strconv"
)

// block is a paragraph or a heading.
type block struct {
	definitions []definition // that a paragraph begins with
	lines       []line       // of the text behind them
}

// line is one line of a block without what precedes its text, in the source, and without its line end.
type line struct{ start, end, number int }

// container is a block quote or a list item.
type container struct {
	quote    bool
	indent   int  // columns that the lines of an item are indented by
	children bool // the item has content
}

type leaf int

const (
	noLeaf leaf = iota
	paragraph
	fenced
	indented
	htmlBlock
)

// codeIndent is the number of columns that makes a line code, and the distance of tab stops.
const codeIndent = 4

// blockReader reads the block structure of a text line by line, in the manner of the appendix of the specification. Lists are left out: their items alone matter.
type blockReader struct {
	src        []byte
	blocks     []block
	containers []container // open ones, the outermost first
	quotes     []int       // which of them are block quotes
	leaf       leaf        // the open block in the last container
	lines      []line      // of the paragraph
	fence      []byte      // of the fenced code
	html       htmlKind
	cursor
}

// cursor is a place in a line. A tab may be consumed in part: then column says how far.
type cursor struct {
	at, end, column  int
	next, nextColumn int // the first place from at on that is no space or tab
	number           int // of the line, from 1
	noBreak          int // no thematic break begins before this place
}

// readBlocks gives the paragraphs and headings of a text in order.
func readBlocks(src []byte) []block {
	r := &blockReader{src: src}
	at := 0
	if bytes.HasPrefix(src, []byte("\ufeff")) {
		at = len("\ufeff")
	}
	for at < len(src) {
		end, next := len(src), len(src)
		if i := bytes.IndexAny(src[at:], "\r\n"); i >= 0 {
			end, next = at+i, at+i+1
			if src[end] == '\r' && next < len(src) && src[next] == '\n' {
				next++
			}
		}
		r.readLine(at, end)
		at = next
	}
	r.close(0)
	return r.blocks
}

// readLine takes one line to the blocks that it continues or begins.
func (r *blockReader) readLine(start, end int) {
	r.cursor = cursor{at: start, end: end, next: -1, number: r.number + 1}
	r.find()
	open := r.matchContainers()
	switch {
	case open < len(r.containers):
		if r.leaf != paragraph || r.blank() {
			r.close(open)
		}
	case r.leaf == paragraph && r.blank():
		r.close(open)
	case r.leaf == fenced || r.leaf == indented || r.leaf == htmlBlock:
		if r.continueLeaf() {
			return
		}
		r.close(open)
	}
	for {
		switch r.begin(open) {
		case beganContainer:
			open = len(r.containers)
			continue
		case beganLeaf:
			return
		}
		break
	}
	if r.blank() {
		return
	}
	// An open paragraph in containers that the line does not continue is continued all the same: it is a lazy line.
	if r.leaf != paragraph {
		r.open(paragraph)
	}
	r.lines = append(r.lines, line{r.next, r.end, r.number})
}

// find looks for the next place that is no space or tab.
func (r *blockReader) find() {
	if r.next >= r.at {
		return
	}
	r.next, r.nextColumn = r.at, r.column
	for r.next < r.end && isSpace(r.src[r.next]) {
		if r.src[r.next] == '\t' {
			r.nextColumn += codeIndent - r.nextColumn%codeIndent
		} else {
			r.nextColumn++
		}
		r.next++
	}
}

func (r *blockReader) blank() bool { return r.next == r.end }

func (r *blockReader) indent() int { return r.nextColumn - r.column }

// rest is the line from its next place on.
func (r *blockReader) rest() []byte { return r.src[r.next:r.end] }

// skipColumns passes spaces and tabs, as many columns at most.
func (r *blockReader) skipColumns(columns int) {
	for columns > 0 && r.at < r.end && isSpace(r.src[r.at]) {
		width := 1
		if r.src[r.at] == '\t' {
			width = codeIndent - r.column%codeIndent
		}
		if width > columns {
			r.column += columns
			return
		}
		r.at++
		r.column += width
		columns -= width
	}
}

// pass goes behind n bytes that follow the next place and are no tabs.
func (r *blockReader) pass(n int) {
	r.at, r.column = r.next+n, r.nextColumn+n
	r.find()
}

// matchContainers passes the marks of the open containers and says how many of them the line continues.
func (r *blockReader) matchContainers() int {
	quotes := 0
	for i, c := range r.containers {
		switch {
		case r.blank():
			// It continues all items up to the next block quote, except one that has begun with a blank line. They are not looked at one by one, as
			// there may be very many of them.
			open := len(r.containers)
			if quotes < len(r.quotes) {
				open = r.quotes[quotes]
			} else if last := r.containers[open-1]; !last.children {
				open--
			}
			return max(open, i)
		case c.quote:
			if r.indent() >= codeIndent || r.src[r.next] != '>' {
				return i
			}
			r.passQuote()
			quotes++
		case r.indent() >= c.indent:
			r.skipColumns(c.indent)
		default:
			return i
		}
	}
	return len(r.containers)
}

// passQuote goes behind > and the space that belongs to it.
func (r *blockReader) passQuote() {
	r.pass(1)
	r.skipColumns(1)
}

// continueLeaf takes a line to the open code or HTML, and says false if it does not belong to it.
func (r *blockReader) continueLeaf() bool {
	switch r.leaf {
	case fenced:
		if r.indent() < codeIndent && !r.blank() && r.src[r.next] == r.fence[0] {
			n := skip(r.rest(), 0, func(c byte) bool { return c == r.fence[0] })
			if n >= len(r.fence) && skip(r.rest(), n, isSpace) == len(r.rest()) {
				r.leaf = noLeaf
			}
		}
	case indented:
		return r.indent() >= codeIndent || r.blank()
	case htmlBlock:
		if r.blank() && r.html >= htmlElement {
			return false
		}
		if htmlEndsIn(r.html, r.rest()) {
			r.leaf = noLeaf
		}
	}
	return true
}

// close ends the open leaf and the containers from the place on.
func (r *blockReader) close(open int) {
	if r.leaf == paragraph {
		r.finish()
	}
	r.leaf = noLeaf
	r.containers = r.containers[:open]
	for len(r.quotes) > 0 && r.quotes[len(r.quotes)-1] >= open {
		r.quotes = r.quotes[:len(r.quotes)-1]
	}
}

// open begins a leaf or, with noLeaf, something else in the last container.
func (r *blockReader) open(l leaf) {
	r.leaf = l
	if n := len(r.containers); n > 0 {
		r.containers[n-1].children = true
	}
}

// finish keeps what the paragraph has: its definitions and its text.
func (r *blockReader) finish() {
	b := block{lines: r.lines}
	r.lines = nil
	if len(b.lines) > 0 && r.src[b.lines[0].start] == '[' {
		t := join(r.src, b.lines)
		at, read := 0, 0
		for at < len(t.bytes) && t.bytes[at] == '[' {
			label, d, next, ok := readDefinition(t.bytes, at)
			if !ok {
				break
			}
			from := d.start
			if d.angled {
				from--
			}
			raw := t.bytes[d.start:d.end]
			b.definitions = append(b.definitions, definition{
				label: label, destination: resolve(raw, true), place: t.place(d), opens: t.beginsLine(from),
				bound: bytes.IndexByte(raw, '`') >= 0 && !t.beginsLine(from) && t.fenceLike(t.lineAt(from)),
			})
			at = next
		}
		if at == len(t.bytes) {
			read = len(b.lines)
		} else {
			read = t.lineAt(at)
		}
		b.lines = b.lines[read:]
	}
	if len(b.lines) > 0 || len(b.definitions) > 0 {
		r.blocks = append(r.blocks, b)
	}
}

// began is what a line begins at a place.
type began int

const (
	beganNothing began = iota
	beganContainer
	beganLeaf
)

// begin looks for the beginning of a block at the next place of the line, which continues the given number of containers.
func (r *blockReader) begin(open int) began {
	if r.blank() {
		return beganNothing
	}
	// A paragraph in an outer container is none that can be interrupted or underlined, only one that can be continued.
	within := r.leaf == paragraph && open == len(r.containers)
	if r.indent() >= codeIndent {
		if r.leaf == paragraph {
			return beganNothing
		}
		r.close(open)
		r.open(indented)
		return beganLeaf
	}
	switch c := r.src[r.next]; c {
	case '>':
		r.close(open)
		r.open(noLeaf)
		r.quotes = append(r.quotes, len(r.containers))
		r.containers = append(r.containers, container{quote: true})
		r.passQuote()
		return beganContainer
	case '#':
		return r.beginHeading(open)
	case '`', '~':
		return r.beginFence(open)
	case '<':
		return r.beginHTML(open)
	case '=', '-', '*', '_', '+', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		if within && (c == '=' || c == '-') && r.underline(c) {
			return beganLeaf
		}
		if c != '+' && c != '=' && !isDigit(c) && r.isBreak(c) {
			r.close(open)
			r.open(noLeaf)
			return beganLeaf
		}
		return r.beginItem(open, within)
	}
	return beganNothing
}

// underline makes the paragraph a heading if the line underlines it and there is more in it than definitions.
func (r *blockReader) underline(c byte) bool {
	n := skip(r.rest(), 0, func(d byte) bool { return d == c })
	if skip(r.rest(), n, isSpace) < len(r.rest()) {
		return false
	}
	before := len(r.blocks)
	r.finish()
	if len(r.blocks) == before || len(r.blocks[len(r.blocks)-1].lines) == 0 {
		return false
	}
	r.leaf = noLeaf
	return true
}

// isBreak reports whether the line is a thematic break of the character.
func (r *blockReader) isBreak(c byte) bool {
	if r.next < r.noBreak {
		return false
	}
	count := 0
	for i := r.next; i < r.end; i++ {
		if r.src[i] == c {
			count++
		} else if !isSpace(r.src[i]) {
			r.noBreak = i
			return false
		}
	}
	return count >= 3
}

func (r *blockReader) beginHeading(open int) began {
	rest := r.rest()
	n := skip(rest, 0, func(c byte) bool { return c == '#' })
	if n > 6 || n < len(rest) && !isSpace(rest[n]) {
		return beganNothing
	}
	r.close(open)
	r.open(noLeaf)
	start := skip(rest, n, isSpace)
	end := len(bytes.TrimRight(rest, " \t"))
	if text := bytes.TrimRight(rest[:end], "#"); len(text) <= start || isSpace(text[len(text)-1]) {
		end = len(text)
	}
	if end > start {
		r.blocks = append(r.blocks, block{lines: []line{{r.next + start, r.next + end, r.number}}})
	}
	return beganLeaf
}

func (r *blockReader) beginFence(open int) began {
	rest := r.rest()
	n := skip(rest, 0, func(c byte) bool { return c == rest[0] })
	if n < 3 || rest[0] == '`' && bytes.IndexByte(rest[n:], '`') >= 0 {
		return beganNothing
	}
	r.close(open)
	r.open(fenced)
	r.fence = rest[:n]
	return beganLeaf
}

func (r *blockReader) beginHTML(open int) began {
	kind := htmlStart(r.rest())
	if kind == 0 {
		if r.leaf == paragraph || !isTagLine(r.rest()) {
			return beganNothing
		}
		kind = htmlTag
	}
	r.close(open)
	r.open(htmlBlock)
	r.html = kind
	if htmlEndsIn(kind, r.rest()) {
		r.leaf = noLeaf
	}
	return beganLeaf
}

// beginItem begins a list item, if a list marker is there and, within a paragraph, may interrupt it.
func (r *blockReader) beginItem(open int, within bool) began {
	rest := r.rest()
	n := 1
	if isDigit(rest[0]) {
		n = skip(rest, 0, isDigit)
		if n > 9 || n == len(rest) || rest[n] != '.' && rest[n] != ')' {
			return beganNothing
		}
		if first, err := strconv.Atoi(string(rest[:n])); err != nil || within && first != 1 {
			return beganNothing
		}
		n++
	} else if rest[0] == '=' || rest[0] == '_' {
		return beganNothing
	}
	if n < len(rest) && !isSpace(rest[n]) || within && skip(rest, n, isSpace) == len(rest) {
		return beganNothing
	}
	r.close(open)
	r.open(noLeaf)
	c := container{indent: r.indent() + n}
	r.pass(n)
	if spaces := r.indent(); !r.blank() && spaces <= codeIndent {
		r.skipColumns(spaces)
		c.indent += spaces
	} else {
		r.skipColumns(1)
		c.indent++
	}
	r.containers = append(r.containers, c)
	return beganContainer
}
