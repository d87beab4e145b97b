package links

import (
	"unicode/utf8"

	"github.com/yuin/goldmark/util"
)

const (
	// The specification asks for at least 3; without a bound, hostile text costs quadratic time. This one is that of cmark, the reference implementation.
	maxParentheses = 32
	// Of the specification, in characters between the brackets.
	maxLabel = 999
)

// span is a destination as it stands in a text, without the angle brackets around it.
type span struct {
	start, end int
	angled     bool
}

// readDestination reads a link destination at t[at]. Without angle brackets it may be empty; what may follow it is the caller's to check.
func readDestination(t []byte, at int) (d span, next int, ok bool) {
	if at < len(t) && t[at] == '<' {
		for i := at + 1; i < len(t); i++ {
			switch t[i] {
			case '>':
				return span{at + 1, i, true}, i + 1, true
			case '<', '\n':
				return span{}, 0, false
			case '\\':
				if i+1 < len(t) && isPunctuation(t[i+1]) {
					i++
				}
			}
		}
		return span{}, 0, false
	}
	depth := 0
	i := at
	for ; i < len(t) && t[i] != ' ' && !isControl(t[i]); i++ {
		switch t[i] {
		case '\\':
			if i+1 < len(t) && isPunctuation(t[i+1]) {
				i++
			}
		case '(':
			if depth++; depth > maxParentheses {
				return span{}, 0, false
			}
		case ')':
			if depth == 0 {
				return span{start: at, end: i}, i, true
			}
			depth--
		}
	}
	return span{start: at, end: i}, i, depth == 0
}

// readTitle reads a link title at t[at] and gives the place behind it.
func readTitle(t []byte, at int) (next int, ok bool) {
	if at == len(t) {
		return 0, false
	}
	end := t[at]
	switch end {
	case '"', '\'':
	case '(':
		end = ')'
	default:
		return 0, false
	}
	for i := at + 1; i < len(t); i++ {
		switch c := t[i]; {
		case c == end:
			return i + 1, true
		case c == '\\':
			i++
		case c == '(' && end == ')':
			return 0, false
		}
	}
	return 0, false
}

// readLabel reads a link label at t[at], or the brackets of a label that is blank, and gives the place behind it.
func readLabel(t []byte, at int) (next int, blank, ok bool) {
	if at == len(t) || t[at] != '[' {
		return 0, false, false
	}
	blank = true
	count := 0
	for i := at + 1; i < len(t); i++ {
		c := t[i]
		if c == ']' {
			return i + 1, blank, true
		}
		if c == '[' {
			return 0, false, false
		}
		blank = blank && isWhite(c)
		if utf8.RuneStart(c) {
			count++
		}
		if c == '\\' && i+1 < len(t) && isPunctuation(t[i+1]) {
			i++
			count++
		}
		if count > maxLabel {
			return 0, false, false
		}
	}
	return 0, false, false
}

// normal gives the form of a label, without its brackets, by which labels are compared.
func normal(label []byte) string { return util.ToLinkReference(label) }

// definition is a link reference definition.
type definition struct {
	label       string // in the form that is compared
	destination string
	place       span // of the destination, in the source
	opens       bool // the destination begins its line
	bound       bool // the line may be no fence because of the destination, so this must stay
}

// readDefinition reads a link reference definition at t[at], which begins a line of a paragraph, and gives the beginning of the line behind it.
func readDefinition(t []byte, at int) (label string, d span, next int, ok bool) {
	i, blank, ok := readLabel(t, at)
	if !ok || blank || i == len(t) || t[i] != ':' {
		return "", span{}, 0, false
	}
	name := t[at+1 : i-1]
	d, i, ok = readDestination(t, skipBreak(t, i+1))
	if !ok || d.start == d.end && !d.angled {
		return "", span{}, 0, false
	}
	next, ok = lineEnd(t, i)
	if j := skipBreak(t, i); j > i {
		if k, titled := readTitle(t, j); titled {
			// What looks like a title and is none leaves a definition without one, if it stands on lines of its own.
			if l, ends := lineEnd(t, k); ends {
				next, ok = l, true
			}
		}
	}
	if !ok {
		return "", span{}, 0, false
	}
	return normal(name), d, next, true
}

// lineEnd gives the beginning of the next line if only spaces and tabs follow t[at].
func lineEnd(t []byte, at int) (next int, ok bool) {
	at = skip(t, at, isSpace)
	switch {
	case at == len(t):
		return at, true
	case t[at] == '\n':
		return at + 1, true
	}
	return 0, false
}
