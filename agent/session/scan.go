package session

import (
	"encoding/json"
	"strings"
)

// maxDepth is the nesting that encoding/json accepts too: deeper lines could not be decoded later.
const maxDepth = 10000

// scanner walks one JSON text without decoding it. It accepts exactly what json.Valid accepts.
type scanner struct {
	s string
	i int
}

// members calls yield for each member of the JSON object s, with the raw value, and reports whether s is one valid object.
// The values are substrings of s.
func members(s string, yield func(key, value string)) bool {
	p := scanner{s: s}
	p.space()
	if !p.object(1, yield) {
		return false
	}
	p.space()
	return p.i == len(s)
}

// member returns the first member of that name of the valid object s.
func member(s, name string) string {
	p := scanner{s: s}
	p.space()
	p.i++
	for {
		p.space()
		key, ok := p.key()
		if !ok {
			return ""
		}
		from := p.i
		if !p.value(1) {
			return ""
		}
		if key == name {
			return s[from:p.i]
		}
		p.space()
		if !p.next(',') {
			return ""
		}
	}
}

// text decodes a raw JSON string; ok is false for any other value.
func text(raw string) (value string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if inner := raw[1 : len(raw)-1]; strings.IndexByte(inner, '\\') < 0 {
		return inner, true
	}
	return value, json.Unmarshal([]byte(raw), &value) == nil
}

func (p *scanner) space() {
	for p.i < len(p.s) && (p.s[p.i] == ' ' || p.s[p.i] == '\t' || p.s[p.i] == '\n' || p.s[p.i] == '\r') {
		p.i++
	}
}

func (p *scanner) next(c byte) bool {
	if p.i < len(p.s) && p.s[p.i] == c {
		p.i++
		return true
	}
	return false
}

// key reads a member name, its colon and the space up to the value.
func (p *scanner) key() (string, bool) {
	from := p.i
	if !p.string() {
		return "", false
	}
	key, ok := text(p.s[from:p.i])
	p.space()
	if !ok || !p.next(':') {
		return "", false
	}
	p.space()
	return key, true
}

func (p *scanner) object(depth int, yield func(key, value string)) bool {
	if depth > maxDepth || !p.next('{') {
		return false
	}
	p.space()
	if p.next('}') {
		return true
	}
	for {
		p.space()
		key, from := "", 0
		if yield == nil {
			if !p.string() {
				return false
			}
			p.space()
			if !p.next(':') {
				return false
			}
			p.space()
		} else {
			var ok bool
			if key, ok = p.key(); !ok {
				return false
			}
			from = p.i
		}
		if !p.value(depth) {
			return false
		}
		if yield != nil {
			yield(key, p.s[from:p.i])
		}
		p.space()
		if p.next(',') {
			continue
		}
		return p.next('}')
	}
}

func (p *scanner) array(depth int) bool {
	if depth > maxDepth {
		return false
	}
	p.i++
	p.space()
	if p.next(']') {
		return true
	}
	for {
		p.space()
		if !p.value(depth) {
			return false
		}
		p.space()
		if p.next(',') {
			continue
		}
		return p.next(']')
	}
}

func (p *scanner) value(depth int) bool {
	if p.i >= len(p.s) {
		return false
	}
	switch c := p.s[p.i]; {
	case c == '"':
		return p.string()
	case c == '{':
		return p.object(depth+1, nil)
	case c == '[':
		return p.array(depth + 1)
	case c == 't':
		return p.word("true")
	case c == 'f':
		return p.word("false")
	case c == 'n':
		return p.word("null")
	default:
		return p.number()
	}
}

func (p *scanner) word(w string) bool {
	if !strings.HasPrefix(p.s[p.i:], w) {
		return false
	}
	p.i += len(w)
	return true
}

func (p *scanner) number() bool {
	p.next('-')
	if !p.next('0') && !p.digits() {
		return false
	}
	if p.next('.') && !p.digits() {
		return false
	}
	if p.next('e') || p.next('E') {
		if !p.next('+') {
			p.next('-')
		}
		return p.digits()
	}
	return true
}

func (p *scanner) digits() bool {
	from := p.i
	for p.i < len(p.s) && p.s[p.i] >= '0' && p.s[p.i] <= '9' {
		p.i++
	}
	return p.i > from
}

// plain marks the bytes that a JSON string may hold as they are.
var plain = func() (t [256]bool) {
	for c := ' '; c < 256; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

func (p *scanner) string() bool {
	if !p.next('"') {
		return false
	}
	s, i := p.s, p.i
	for {
		for i < len(s) && plain[s[i]] {
			i++
		}
		if i >= len(s) || s[i] < ' ' {
			return false
		}
		if s[i] == '"' {
			p.i = i + 1
			return true
		}
		n := escape(s[i+1:])
		if n == 0 {
			return false
		}
		i += 1 + n
	}
}

// escape returns the length of the escape sequence that s begins with, after its backslash; 0 when there is none.
func escape(s string) int {
	if s == "" {
		return 0
	}
	if s[0] != 'u' {
		if strings.IndexByte(`"\/bfnrt`, s[0]) < 0 {
			return 0
		}
		return 1
	}
	if len(s) < 5 {
		return 0
	}
	for _, c := range []byte(s[1:5]) {
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
			return 0
		}
	}
	return 5
}
