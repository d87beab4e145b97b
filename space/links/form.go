package links

import (
	"strconv"
	"strings"
)

// form says how a destination is to be written.
type form struct {
	angled bool // it stands in angle brackets already
	opens  bool // it begins a line, so it must not look like the beginning of a block
	needed bool // it must not be the empty text
	plain  bool // only letters, digits, slashes and entities
}

// destination writes the destination of an inline link or a definition; if it stands in angle brackets already, what belongs between them.
func (f form) destination(d string) string {
	angled := f.angled || d == "" && f.needed || !f.plain && strings.Contains(d, " ")
	raw := ""
	if !angled && balanced(d) {
		raw = "()"
	}
	var out strings.Builder
	for i := 0; i < len(d); i++ {
		c := d[i]
		switch {
		case f.isPlain(c):
			out.WriteByte(c)
		case f.plain || isControl(c):
			writeEntity(&out, c)
		case c == '&' && isEntity(d[i:]):
			out.WriteString("&amp;")
		case c == '\\' && (i+1 == len(d) || isPunctuation(d[i+1]) || isControl(d[i+1])),
			c == '<', c == '>' && angled, (c == '(' || c == ')') && !strings.Contains(raw, string(c)) && !angled:
			out.WriteByte('\\')
			out.WriteByte(c)
		default:
			out.WriteByte(c)
		}
	}
	s := out.String()
	if f.opens {
		s = guarded(s, angled)
	}
	if angled && !f.angled {
		return "<" + s + ">"
	}
	return s
}

// isPlain tells the bytes that have no meaning of their own anywhere but at the beginning of a line.
func (f form) isPlain(c byte) bool { return isLetter(c) || isDigit(c) || c == '/' || c >= 0x80 }

// guarded changes the first character of a written destination if a line that begins with it would begin a block.
func guarded(s string, angled bool) string {
	if s == "" {
		return s
	}
	c := s[0]
	switch {
	case angled && htmlStart([]byte("<"+s+">")) == 0, !angled && !isDigit(c) && strings.IndexByte("#>~`=-*_+", c) < 0:
		return s
	case !angled && !isDigit(c):
		return `\` + s
	}
	var out strings.Builder
	writeEntity(&out, c)
	return out.String() + s[1:]
}

// autolink writes what stands between the angle brackets of an autolink, and says false for a destination without a scheme.
func (f form) autolink(d string) (string, bool) {
	at := skipScheme(d, 0)
	if at < 0 {
		return "", false
	}
	var out strings.Builder
	out.WriteString(d[:at])
	for i := at; i < len(d); i++ {
		c := d[i]
		switch {
		case f.isPlain(c):
			out.WriteByte(c)
		case f.plain || isControl(c) || c == ' ' || c == '<' || c == '>':
			writeEntity(&out, c)
		case c == '&' && isEntity(d[i:]):
			out.WriteString("&amp;")
		default:
			out.WriteByte(c)
		}
	}
	return out.String(), true
}

// link writes a whole inline link.
func (f form) link(label, d string) string {
	var out strings.Builder
	out.WriteByte('[')
	for i := 0; i < len(label); i++ {
		c := label[i]
		switch {
		case f.isPlain(c):
			out.WriteByte(c)
		case f.plain || isControl(c):
			writeEntity(&out, c)
		case strings.IndexByte("\\`*_[]<&!~", c) >= 0:
			out.WriteByte('\\')
			out.WriteByte(c)
		default:
			out.WriteByte(c)
		}
	}
	out.WriteString("](")
	out.WriteString(form{plain: f.plain}.destination(d))
	out.WriteByte(')')
	return out.String()
}

// isPlainEmail reports whether a destination may be written as an email autolink: not everything that may be one is.
func isPlainEmail(d string) bool {
	address, ok := strings.CutPrefix(d, mailto)
	if !ok || address == "" || !isLetter(address[0]) && !isDigit(address[0]) || strings.ContainsAny(address, "!#$%&'*/=?^`{|}") {
		return false
	}
	t := []byte("<" + address + ">")
	end, ok := readEmail(t, 0)
	return ok && end == len(t)
}

// balanced reports whether the parentheses of a destination need no escapes.
func balanced(d string) bool {
	depth := 0
	for i := 0; i < len(d) && depth >= 0 && depth <= maxParentheses; i++ {
		switch d[i] {
		case '(':
			depth++
		case ')':
			depth--
		}
	}
	return depth == 0
}

func isEntity(s string) bool {
	_, _, ok := entity([]byte(s[:min(len(s), maxEntityName+2)]), 0)
	return ok
}

func writeEntity(out *strings.Builder, c byte) {
	out.WriteString("&#" + strconv.Itoa(int(c)) + ";")
}
