package links

import (
	"bytes"
	"html"
	"strconv"
	"strings"
	"unicode/utf8"
)

// replacement stands for NUL in everything that is read, as CommonMark asks.
const replacement = "\ufffd"

func isSpace(c byte) bool { return c == ' ' || c == '\t' }

func isWhite(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

// isControl tells ASCII control characters; NUL is none because U+FFFD stands for it.
func isControl(c byte) bool { return c < ' ' && c != 0 || c == 0x7f }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

func isPunctuation(c byte) bool {
	return '!' <= c && c <= '~' && !isLetter(c) && !isDigit(c)
}

// skip gives the first place from at on whose byte is not of the kind.
func skip(t []byte, at int, kind func(byte) bool) int {
	for at < len(t) && kind(t[at]) {
		at++
	}
	return at
}

// skipBreak passes spaces and tabs with at most one line end among them.
func skipBreak(t []byte, at int) int {
	at = skip(t, at, isSpace)
	if at < len(t) && t[at] == '\n' {
		at = skip(t, at+1, isSpace)
	}
	return at
}

// The longest name of HTML5 is CounterClockwiseContourIntegral.
const maxEntityName = 31

// entity reads the entity or the numeric character reference at t[at], which is &, and gives the place behind it.
func entity(t []byte, at int) (value string, next int, ok bool) {
	at++
	if at < len(t) && t[at] == '#' {
		return numeric(t, at+1)
	}
	end := skip(t, at, func(c byte) bool { return isLetter(c) || isDigit(c) })
	if end == at || end-at > maxEntityName || end == len(t) || t[end] != ';' {
		return "", 0, false
	}
	name := string(t[at:end])
	// Package html also resolves beginnings of unknown names, and leaves the rest.
	value = html.UnescapeString("&" + name + ";")
	if name != "semi" && strings.HasSuffix(value, ";") {
		return "", 0, false
	}
	return value, end + 1, true
}

// numeric reads what follows &#: up to 7 digits, or x and up to 6 hexadecimal ones.
func numeric(t []byte, at int) (value string, next int, ok bool) {
	base, kind, most := 10, isDigit, 7
	if at < len(t) && t[at]|0x20 == 'x' {
		at, base, kind, most = at+1, 16, isHex, 6
	}
	end := skip(t, at, kind)
	if end == at || end-at > most || end == len(t) || t[end] != ';' {
		return "", 0, false
	}
	n, err := strconv.ParseUint(string(t[at:end]), base, 32)
	if err != nil || n == 0 || !utf8.ValidRune(rune(n)) {
		n = utf8.RuneError
	}
	return string(rune(n)), end + 1, true
}

// resolve gives the string that raw stands for: with entities resolved and, if wanted, backslash escapes.
func resolve(raw []byte, escapes bool) string {
	if bytes.IndexByte(raw, '&') < 0 && bytes.IndexByte(raw, 0) < 0 && (!escapes || bytes.IndexByte(raw, '\\') < 0) {
		return string(raw)
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == 0:
			out = append(out, replacement...)
			i++
			continue
		case c == '\\' && escapes && i+1 < len(raw) && isPunctuation(raw[i+1]):
			out = append(out, raw[i+1])
			i += 2
			continue
		case c == '&':
			if value, next, ok := entity(raw, i); ok {
				out = append(out, value...)
				i = next
				continue
			}
		}
		out = append(out, raw[i])
		i++
	}
	return string(out)
}
