package shape

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Problem is the first place where a text leaves its shape.
type Problem struct {
	path   []string // innermost first
	reason string
}

// Error says where and what, for example "input.parts[0]: member text is missing".
func (p *Problem) Error() string {
	var b strings.Builder
	for i := len(p.path) - 1; i >= 0; i-- {
		if b.Len() > 0 && !strings.HasPrefix(p.path[i], "[") {
			b.WriteByte('.')
		}
		b.WriteString(p.path[i])
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	return b.String() + p.reason
}

func problem(format string, args ...any) error { return &Problem{reason: fmt.Sprintf(format, args...)} }

func at(step string, err error) error {
	var p *Problem
	if errors.As(err, &p) {
		p.path = append(p.path, step)
	}
	return err
}

// reader is a decoder that is used again: what it remembers of names costs more to make than a small text costs to read.
type reader struct {
	buffer bytes.Buffer
	dec    jsontext.Decoder
}

// keepReader is the largest text after which a reader is kept: above it, making one is no longer what costs.
const keepReader = 64 << 10

var readers = sync.Pool{New: func() any { return new(reader) }}

// over reads a copy of text, so that nothing of the caller's stays in the pool.
func (r *reader) over(text []byte) *jsontext.Decoder {
	r.buffer.Reset()
	r.buffer.Write(text)
	r.dec.Reset(&r.buffer)
	return &r.dec
}

// Check returns a *Problem for the first departure of text from the shape, nil when there is none.
func (s *Shape) Check(text []byte) error {
	reader := readers.Get().(*reader)
	if len(text) <= keepReader {
		defer readers.Put(reader)
	}
	dec := reader.over(text)
	if err := s.walk(dec); err != nil {
		var p *Problem
		if errors.As(err, &p) {
			return p
		}
		return problem("not acceptable JSON: %v", err)
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return problem("more than one JSON value")
	}
	return nil
}

func (s *Shape) walk(dec *jsontext.Decoder) error {
	kind := dec.PeekKind()
	if kind == 0 { // the syntax error itself comes from the next read
		_, err := dec.ReadToken()
		return err
	}
	if kind == 'n' && s.null {
		return dec.SkipValue()
	}
	switch s.form {
	case formAny:
		return dec.SkipValue()
	case formNull:
		return skipAs(dec, kind == 'n', "null")
	case formBool:
		return skipAs(dec, kind == 't' || kind == 'f', "true or false")
	case formString:
		return s.walkString(dec, kind)
	case formNumber, formInteger:
		return s.walkNumber(dec, kind)
	case formArray:
		return s.walkArray(dec, kind)
	case formRecord:
		return s.walkRecord(dec, kind)
	case formChoice:
		return s.walkChoice(dec)
	}
	if s.twins {
		return s.walkTwins(dec, kind)
	}
	return s.walkObject(dec, kind, -1)
}

func skipAs(dec *jsontext.Decoder, right bool, want string) error {
	if !right {
		return problem("must be %s", want)
	}
	return dec.SkipValue()
}

// plain returns the text of a JSON string without copying where nothing is escaped.
func plain(raw jsontext.Value) ([]byte, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], nil
	}
	return jsontext.AppendUnquote(nil, raw)
}

func (s *Shape) walkString(dec *jsontext.Decoder, kind jsontext.Kind) error {
	if kind != '"' {
		return problem("must be text")
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if s.values == nil && s.text.Min == 0 && s.text.Max == 0 && s.text.Match == nil {
		return nil
	}
	text, err := plain(raw)
	if err != nil {
		return err
	}
	if s.values != nil {
		for _, value := range s.values {
			if value == string(text) {
				return nil
			}
		}
		return problem("must be one of %s", strings.Join(s.values, ", "))
	}
	switch length := utf8.RuneCount(text); {
	case length < s.text.Min:
		return problem("must have at least %d characters", s.text.Min)
	case s.text.Max > 0 && length > s.text.Max:
		return problem("must have at most %d characters", s.text.Max)
	case s.text.Match != nil && !s.text.Match(text):
		return problem("must match %s", s.text.Pattern)
	}
	return nil
}

func (s *Shape) walkNumber(dec *jsontext.Decoder, kind jsontext.Kind) error {
	if kind != '0' {
		return problem("must be a number")
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return problem("number is too large")
	}
	if s.form == formInteger && n != math.Trunc(n) {
		return problem("must be a whole number")
	}
	if s.limited && n < s.min {
		return problem("must be at least %v", s.min)
	}
	if s.limited && n > s.max {
		return problem("must be at most %v", s.max)
	}
	return nil
}

func (s *Shape) walkArray(dec *jsontext.Decoder, kind jsontext.Kind) error {
	if kind != '[' {
		return problem("must be an array")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	var seen []jsontext.Value
	count := 0
	for ; dec.PeekKind() != ']'; count++ {
		if dec.PeekKind() == 0 {
			_, err := dec.ReadToken()
			return err
		}
		walk := s.elem.walk
		if s.unique {
			walk = func(dec *jsontext.Decoder) (err error) { seen, err = s.walkUnique(dec, seen); return err }
		}
		if err := walk(dec); err != nil {
			return at("["+strconv.Itoa(count)+"]", err)
		}
	}
	if s.limited && float64(count) < s.min {
		return problem("must have at least %v items", s.min)
	}
	if s.limited && float64(count) > s.max {
		return problem("must have at most %v items", s.max)
	}
	_, err := dec.ReadToken()
	return err
}

func (s *Shape) walkUnique(dec *jsontext.Decoder, seen []jsontext.Value) ([]jsontext.Value, error) {
	raw, err := dec.ReadValue()
	if err != nil {
		return seen, err
	}
	item := raw.Clone()
	if err := s.elem.Check(item); err != nil {
		return seen, err
	}
	if err := item.Canonicalize(); err != nil {
		return seen, err
	}
	for _, other := range seen {
		if bytes.Equal(other, item) {
			return seen, problem("must not repeat an earlier item")
		}
	}
	return append(seen, item), nil
}

func (s *Shape) walkRecord(dec *jsontext.Decoder, kind jsontext.Kind) error {
	if kind != '{' {
		return problem("must be an object")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() == '"' {
		raw, err := dec.ReadValue()
		if err != nil {
			return err
		}
		name := string(raw)
		if err := s.elem.walk(dec); err != nil {
			return at(name, err)
		}
	}
	_, err := dec.ReadToken()
	return err
}

func (s *Shape) walkChoice(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	_, err = s.choose(raw)
	return err
}

// choose returns the first form of a choice that text fits.
func (s *Shape) choose(text jsontext.Value) (int, error) {
	text = text.Clone()
	var reasons []string
	for i, m := range s.members {
		err := m.shape.Check(text)
		if err == nil {
			return i, nil
		}
		reasons = append(reasons, err.Error())
	}
	return -1, problem("fits none of its forms (%s)", strings.Join(reasons, "; "))
}

// walkTwins handles a union in which one name means two types: the kind must be known before the members are read.
func (s *Shape) walkTwins(dec *jsontext.Decoder, kind jsontext.Kind) error {
	if kind != '{' {
		return problem("must be an object")
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	text := raw.Clone()
	v, err := s.variantOf(text)
	if err != nil {
		return err
	}
	return s.walkObject(jsontext.NewDecoder(bytes.NewBuffer(text)), kind, v)
}

// variantOf reads only the kind of a union.
func (s *Shape) variantOf(text []byte) (int, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(text))
	if _, err := dec.ReadToken(); err != nil {
		return -1, err
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return -1, err
		}
		if name.String() != s.members[s.kind].name {
			if err := dec.SkipValue(); err != nil {
				return -1, err
			}
			continue
		}
		value, err := dec.ReadToken()
		if err != nil {
			return -1, err
		}
		if value.Kind() == '"' {
			return s.variant(value.String())
		}
		break
	}
	return s.variant("")
}

func (s *Shape) variant(name string) (int, error) {
	for i, v := range s.variants {
		if v.name == name {
			return i, nil
		}
	}
	names := make([]string, len(s.variants))
	for i, v := range s.variants {
		names[i] = v.name
	}
	return -1, problem("%s must be one of %s", s.members[s.kind].name, strings.Join(names, ", "))
}

func (s *Shape) walkObject(dec *jsontext.Decoder, kind jsontext.Kind, v int) error {
	if kind != '{' {
		return problem("must be an object")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	var present uint64
	for dec.PeekKind() == '"' {
		raw, err := dec.ReadValue()
		if err != nil {
			return err
		}
		name, err := plain(raw)
		if err != nil {
			return err
		}
		i := s.member(name, v)
		if i < 0 && s.member(name, -1) >= 0 {
			return problem("member %s does not belong to %s", name, s.variants[v].name)
		}
		if i < 0 {
			return problem("unknown member %s", raw)
		}
		present |= 1 << i
		if i == s.kind {
			if v, err = s.walkKind(dec); err != nil {
				return err
			}
			continue
		}
		if err := s.members[i].shape.walk(dec); err != nil {
			return at(s.members[i].name, err)
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	return s.fits(v, present)
}

func (s *Shape) walkKind(dec *jsontext.Decoder) (int, error) {
	token, err := dec.ReadToken()
	if err != nil {
		return -1, err
	}
	if token.Kind() != '"' {
		return -1, problem("%s must be text", s.members[s.kind].name)
	}
	return s.variant(token.String())
}

// fits compares the members that are there with those of the variant, or of any variant when none is named.
func (s *Shape) fits(v int, present uint64) error {
	if v < 0 && s.kind >= 0 {
		return problem("member %s is missing", s.members[s.kind].name)
	}
	if v < 0 {
		for i, candidate := range s.variants {
			if present&candidate.required == candidate.required && present&^candidate.allowed == 0 {
				return nil
			}
			if v < 0 && present&^candidate.allowed == 0 {
				v = i
			}
		}
		if v < 0 {
			return problem("members do not go together")
		}
	}
	for i, m := range s.members {
		bit := uint64(1) << i
		if s.variants[v].required&bit != 0 && present&bit == 0 {
			return problem("member %s is missing", m.name)
		}
		if present&bit != 0 && s.variants[v].allowed&bit == 0 {
			return problem("member %s does not belong to %s", m.name, s.variants[v].name)
		}
	}
	return nil
}
