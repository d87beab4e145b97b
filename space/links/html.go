package links

import (
	"bytes"
	"slices"
	"strings"
)

// htmlKind is a kind of HTML block by its number in the specification; 0 is none.
type htmlKind int

const (
	htmlText    htmlKind = 1 // script, pre, style, textarea
	htmlElement htmlKind = 6 // ends at a blank line, as does the last
	htmlTag     htmlKind = 7 // any tag alone on its line; does not interrupt a paragraph
)

// htmlEnds are the texts that end blocks of the kinds 2 to 5.
var htmlEnds = map[htmlKind][]byte{2: []byte("-->"), 3: []byte("?>"), 4: []byte(">"), 5: []byte("]]>")}

var htmlTexts = []string{"pre", "script", "style", "textarea"}

var htmlElements = strings.Fields(`address article aside base basefont blockquote body caption center col colgroup dd details dialog dir div dl dt fieldset
	figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr html iframe legend li link main menu menuitem nav noframes ol optgroup
	option p param search section summary table tbody td tfoot th thead title tr track ul`)

// htmlStart gives the kind of HTML block that a line begins, which starts with <, leaving out kind 7.
func htmlStart(line []byte) htmlKind {
	switch {
	case bytes.HasPrefix(line, []byte("<!--")):
		return 2
	case bytes.HasPrefix(line, []byte("<?")):
		return 3
	case len(line) > 2 && line[1] == '!' && isLetter(line[2]):
		return 4
	case bytes.HasPrefix(line, []byte("<![CDATA[")):
		return 5
	}
	at := 1
	closing := len(line) > 1 && line[1] == '/'
	if closing {
		at++
	}
	end := skip(line, at, func(c byte) bool { return isLetter(c) || isDigit(c) })
	if end-at > len("figcaption") {
		return 0
	}
	name := strings.ToLower(string(line[at:end]))
	ends := end == len(line) || isSpace(line[end]) || line[end] == '>'
	switch {
	case ends && !closing && slices.Contains(htmlTexts, name):
		return htmlText
	case (ends || bytes.HasPrefix(line[end:], []byte("/>"))) && slices.Contains(htmlElements, name):
		return htmlElement
	}
	return 0
}

// isTagLine reports whether a line is nothing but one tag, which begins an HTML block of kind 7.
func isTagLine(line []byte) bool {
	next, ok := readTag(line, 0)
	return ok && skip(line, next, isSpace) == len(line)
}

// htmlEndsIn reports whether an HTML block ends with this line of it.
func htmlEndsIn(kind htmlKind, line []byte) bool {
	if kind != htmlText {
		end, ok := htmlEnds[kind]
		return ok && bytes.Contains(line, end)
	}
	for {
		_, rest, ok := bytes.Cut(line, []byte("</"))
		if !ok {
			return false
		}
		for _, name := range htmlTexts {
			if len(rest) > len(name) && rest[len(name)] == '>' && strings.EqualFold(string(rest[:len(name)]), name) {
				return true
			}
		}
		line = rest
	}
}

func isTagName(c byte) bool { return isLetter(c) || isDigit(c) || c == '-' }

func isAttributeName(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '_' || c == '.' || c == ':' || c == '-'
}

func isUnquoted(c byte) bool {
	return !isWhite(c) && c != '"' && c != '\'' && c != '=' && c != '<' && c != '>' && c != '`'
}

// readTag reads an opening or closing tag at t[at], which is <, and gives the place behind it.
func readTag(t []byte, at int) (next int, ok bool) {
	at++
	closing := at < len(t) && t[at] == '/'
	if closing {
		at++
	}
	if at == len(t) || !isLetter(t[at]) {
		return 0, false
	}
	at = skip(t, at, isTagName)
	for {
		space := skip(t, at, isWhite)
		if closing || space == at || space == len(t) || !isAttributeName(t[space]) || isDigit(t[space]) || t[space] == '.' || t[space] == '-' {
			at = space
			break
		}
		at = skip(t, space, isAttributeName)
		if at, ok = readAttributeValue(t, at); !ok {
			return 0, false
		}
	}
	if !closing && at < len(t) && t[at] == '/' {
		at++
	}
	if at == len(t) || t[at] != '>' {
		return 0, false
	}
	return at + 1, true
}

// readAttributeValue reads the value of an attribute whose name ends at t[at], if it has one.
func readAttributeValue(t []byte, at int) (next int, ok bool) {
	i := skip(t, at, isWhite)
	if i == len(t) || t[i] != '=' {
		return at, true
	}
	i = skip(t, i+1, isWhite)
	if i == len(t) {
		return 0, false
	}
	if q := t[i]; q == '"' || q == '\'' {
		n := bytes.IndexByte(t[i+1:], q)
		return i + 1 + n + 1, n >= 0
	}
	end := skip(t, i, isUnquoted)
	return end, end > i
}
