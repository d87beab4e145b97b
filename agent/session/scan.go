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

// object walks the members of one JSON object:
//
//	for o := walk(line); o.next(); {
//		use(o.key, o.value)
//	}
//
// Values are raw and, like keys without escapes, substrings of the text.
type object struct {
	scanner
	key, value string
	state      uint8
}

const (
	atStart uint8 = iota
	inside
	complete // the object ended and nothing but space follows
	invalid
)

func walk(s string) object { return object{scanner: scanner{s: s}} }

// next moves to the next member. After it returned false the state is complete or invalid.
func (o *object) next() bool {
	o.space()
	switch {
	case o.state == atStart:
		if !o.take('{') {
			return o.end(invalid)
		}
		o.space()
		if o.take('}') {
			return o.end(complete)
		}
	case o.take('}'):
		return o.end(complete)
	case !o.take(','):
		return o.end(invalid)
	}
	o.state = inside
	o.space()
	from := o.i
	if !o.string() {
		return o.end(invalid)
	}
	var ok bool
	if o.key, ok = text(o.s[from:o.i]); !ok || !o.colon() {
		return o.end(invalid)
	}
	from = o.i
	if !o.scanner.value(1) {
		return o.end(invalid)
	}
	o.value = o.s[from:o.i]
	return true
}

func (o *object) end(state uint8) bool {
	if o.space(); state == complete && o.i < len(o.s) {
		state = invalid
	}
	o.state = state
	return false
}

// member returns the first member of that name of the object s; "" when there is none.
func member(s, name string) string {
	for o := walk(s); o.next(); {
		if o.key == name {
			return o.value
		}
	}
	return ""
}

// text decodes a raw JSON string; ok is false for any other value.
func text(raw string) (value string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if inner := raw[1 : len(raw)-1]; strings.IndexByte(inner, '\\') < 0 {
		return inner, true
	}
	return unescape(raw)
}

// unescape stands apart because taking the address of its result makes each call allocate.
func unescape(raw string) (value string, ok bool) {
	err := json.Unmarshal([]byte(raw), &value)
	return value, err == nil
}

func (p *scanner) space() {
	for p.i < len(p.s) && (p.s[p.i] == ' ' || p.s[p.i] == '\t' || p.s[p.i] == '\n' || p.s[p.i] == '\r') {
		p.i++
	}
}

func (p *scanner) take(c byte) bool {
	if p.i < len(p.s) && p.s[p.i] == c {
		p.i++
		return true
	}
	return false
}

// colon reads the colon of a member and the space around it.
func (p *scanner) colon() bool {
	p.space()
	if !p.take(':') {
		return false
	}
	p.space()
	return true
}

func (p *scanner) object(depth int) bool {
	if depth > maxDepth {
		return false
	}
	p.i++
	p.space()
	if p.take('}') {
		return true
	}
	for {
		p.space()
		if !p.string() || !p.colon() || !p.value(depth) {
			return false
		}
		p.space()
		if p.take(',') {
			continue
		}
		return p.take('}')
	}
}

func (p *scanner) array(depth int) bool {
	if depth > maxDepth {
		return false
	}
	p.i++
	p.space()
	if p.take(']') {
		return true
	}
	for {
		p.space()
		if !p.value(depth) {
			return false
		}
		p.space()
		if p.take(',') {
			continue
		}
		return p.take(']')
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
		return p.object(depth + 1)
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
	p.take('-')
	if !p.take('0') && !p.digits() {
		return false
	}
	if p.take('.') && !p.digits() {
		return false
	}
	if p.take('e') || p.take('E') {
		if !p.take('+') {
			p.take('-')
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
	if !p.take('"') {
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
