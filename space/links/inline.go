package links

import (
	"bytes"
	"cmp"
	"slices"
)

type useKind int

const (
	inlineUse useKind = iota
	referenceUse
	autolink
	emailAutolink
)

// use is a use in the text of a block.
type use struct {
	kind       useKind
	image      bool
	start, end int
	place      span // of the destination, unless it is a reference
	titled     bool
	fragile    bool // an autolink that what stands around may be part of: it is in brackets or behind ! or ]
	definition *definition
}

// destination gives what a use of the text leads to.
func (u *use) destination(t []byte) string {
	switch u.kind {
	case referenceUse:
		return u.definition.destination
	case autolink:
		return resolve(t[u.place.start:u.place.end], false)
	case emailAutolink:
		return mailto + string(t[u.place.start:u.place.end])
	}
	return resolve(t[u.place.start:u.place.end], true)
}

const mailto = "mailto:"

// definitions are those that count, by label.
type definitions map[string]*definition

// bracket is a [ or ![ that may begin a link or an image.
type bracket struct {
	at     int // of the [
	image  bool
	nested bool // there is another bracket behind this one, so no label begins here
}

// inlineReader finds the uses in the text of a block.
type inlineReader struct {
	text        []byte
	definitions definitions
	uses        []use
	brackets    []bracket
	dead        int           // brackets before this one are no links, because there is a link in them
	ticks       map[int]int   // the last run of backticks of each length, once one was read
	missing     map[byte]bool // ends of raw HTML that the rest of the text does not have, by the byte behind <! or <
}

// readUses gives the uses of a text in order.
func readUses(t []byte, known definitions) []use {
	if bytes.IndexByte(t, '<') < 0 && bytes.IndexByte(t, '[') < 0 {
		return nil
	}
	r := &inlineReader{text: t, definitions: known}
	for at := 0; at < len(t); {
		switch t[at] {
		case '\\':
			at++
			if at < len(t) && isPunctuation(t[at]) {
				at++
			}
		case '`':
			at = r.code(at)
		case '<':
			at = r.angle(at)
		case '!':
			at++
			if at < len(t) && t[at] == '[' {
				r.push(at, true)
				at++
			}
		case '[':
			r.push(at, false)
			at++
		case ']':
			at = r.closeBracket(at)
		default:
			at++
		}
	}
	slices.SortFunc(r.uses, func(a, b use) int { return cmp.Compare(a.start, b.start) })
	return r.uses
}

// code gives the place behind the code span, or else the run of backticks, at the place.
func (r *inlineReader) code(at int) int {
	isTick := func(c byte) bool { return c == '`' }
	if r.ticks == nil {
		r.ticks = map[int]int{}
		for i := at; i < len(r.text); i++ {
			if r.text[i] == '`' {
				end := skip(r.text, i, isTick)
				r.ticks[end-i] = i
				i = end
			}
		}
	}
	begin := skip(r.text, at, isTick)
	n := begin - at
	if r.ticks[n] < begin {
		return begin
	}
	for i := begin; ; {
		i += bytes.IndexByte(r.text[i:], '`')
		end := skip(r.text, i, isTick)
		if end-i == n {
			return end
		}
		i = end
	}
}

// angle gives the place behind the autolink, the raw HTML or else the < at the place.
func (r *inlineReader) angle(at int) int {
	kind := autolink
	end, ok := readAutolink(r.text, at)
	if !ok {
		kind = emailAutolink
		end, ok = readEmail(r.text, at)
	}
	if ok {
		r.uses = append(r.uses, use{kind: kind, start: at, end: end, place: span{at + 1, end - 1, true},
			fragile: len(r.brackets) > 0 || at > 0 && (r.text[at-1] == '!' || r.text[at-1] == ']')})
		return end
	}
	if end, ok := readTag(r.text, at); ok {
		return end
	}
	if end, ok := r.markup(at); ok {
		return end
	}
	return at + 1
}

// markup reads a comment, processing instruction, declaration or CDATA section.
func (r *inlineReader) markup(at int) (next int, ok bool) {
	t := r.text[at:]
	switch {
	case bytes.HasPrefix(t, []byte("<!-->")):
		return at + len("<!-->"), true
	case bytes.HasPrefix(t, []byte("<!--->")):
		return at + len("<!--->"), true
	case bytes.HasPrefix(t, []byte("<!--")):
		return r.until(at, len("<!--"), "-->")
	case bytes.HasPrefix(t, []byte("<?")):
		return r.until(at, len("<?"), "?>")
	case bytes.HasPrefix(t, []byte("<![CDATA[")):
		return r.until(at, len("<![CDATA["), "]]>")
	case len(t) > 2 && t[1] == '!' && isLetter(t[2]):
		return r.until(at, len("<!"), ">")
	}
	return 0, false
}

// until gives the place behind the end of what begins at the place with n bytes. What is missing once is not looked for again.
func (r *inlineReader) until(at, n int, end string) (next int, ok bool) {
	if r.missing[end[0]] {
		return 0, false
	}
	i := bytes.Index(r.text[at+n:], []byte(end))
	if i < 0 {
		if r.missing == nil {
			r.missing = map[byte]bool{}
		}
		r.missing[end[0]] = true
		return 0, false
	}
	return at + n + i + len(end), true
}

func (r *inlineReader) push(at int, image bool) {
	if n := len(r.brackets); n > 0 {
		r.brackets[n-1].nested = true
	}
	r.brackets = append(r.brackets, bracket{at: at, image: image})
}

// closeBracket gives the place behind the use that the ] at the place ends, or else behind the ].
func (r *inlineReader) closeBracket(at int) int {
	n := len(r.brackets) - 1
	if n < 0 {
		return at + 1
	}
	b := r.brackets[n]
	r.brackets = r.brackets[:n]
	alive := b.image || n >= r.dead
	r.dead = min(r.dead, n)
	if !alive {
		return at + 1
	}
	u, ok := r.inline(at + 1)
	if !ok {
		u, ok = r.reference(b, at+1)
	}
	if !ok {
		return at + 1
	}
	u.image = b.image
	u.start = b.at
	if b.image {
		u.start--
	} else {
		r.dead = n
	}
	r.uses = append(r.uses, u)
	return u.end
}

// inline reads the destination in parentheses behind a link text.
func (r *inlineReader) inline(at int) (u use, ok bool) {
	t := r.text
	if at == len(t) || t[at] != '(' {
		return u, false
	}
	u.place, at, ok = readDestination(t, skipBreak(t, at+1))
	if !ok {
		return u, false
	}
	if i := skipBreak(t, at); i > at {
		at = i
		if end, titled := readTitle(t, at); titled {
			u.titled = true
			at = skipBreak(t, end)
		}
	}
	u.end = at + 1
	return u, at < len(t) && t[at] == ')'
}

// reference reads what may follow the text of a reference, whose closing bracket is before the place, and looks its definition up.
func (r *inlineReader) reference(b bracket, at int) (u use, ok bool) {
	if len(r.definitions) == 0 {
		return u, false
	}
	u.kind, u.end = referenceUse, at
	end, blank, ok := readLabel(r.text, at)
	if ok && !blank {
		u.end = end
		u.definition, ok = r.definitions[normal(r.text[at+1:end-1])]
		return u, ok
	}
	if ok && end == at+len("[]") {
		u.end = end
	}
	if b.nested {
		return u, false
	}
	if end, blank, ok = readLabel(r.text, b.at); !ok || blank || end != at {
		return u, false
	}
	u.definition, ok = r.definitions[normal(r.text[b.at+1:at-1])]
	return u, ok
}

// readAutolink reads an absolute URI in angle brackets.
func readAutolink(t []byte, at int) (next int, ok bool) {
	at = skipScheme(t, at+1)
	if at < 0 {
		return 0, false
	}
	at = skip(t, at, func(c byte) bool { return !isControl(c) && c != ' ' && c != '<' && c != '>' })
	return at + 1, at < len(t) && t[at] == '>'
}

// skipScheme gives the place behind a scheme with its colon, or -1. A scheme has 2 to 32 characters.
func skipScheme[T string | []byte](t T, at int) int {
	i := at
	for i < len(t) && i-at <= 32 && (isLetter(t[i]) || i > at && (isDigit(t[i]) || t[i] == '+' || t[i] == '.' || t[i] == '-')) {
		i++
	}
	if n := i - at; n < 2 || n > 32 || i == len(t) || t[i] != ':' {
		return -1
	}
	return i + 1
}

// readEmail reads an email address in angle brackets, by the regular expression of HTML5.
func readEmail(t []byte, at int) (next int, ok bool) {
	i := skip(t, at+1, func(c byte) bool {
		return isLetter(c) || isDigit(c) || c < 0x80 && bytes.IndexByte([]byte(".!#$%&'*+/=?^_`{|}~-"), c) >= 0
	})
	if i == at+1 || i == len(t) || t[i] != '@' {
		return 0, false
	}
	for {
		label := i + 1
		i = skip(t, label, isTagName)
		if i == label || i-label > 63 || t[label] == '-' || t[i-1] == '-' || i == len(t) {
			return 0, false
		}
		switch t[i] {
		case '>':
			return i + 1, true
		case '.':
		default:
			return 0, false
		}
	}
}
