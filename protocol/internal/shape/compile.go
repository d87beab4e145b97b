package shape

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// maxExact is the largest integer that every JSON reader keeps exactly (IEEE double, 2^53-1).
const maxExact = 1<<53 - 1

// Text is what a named string type says about its values.
type Text struct {
	Min, Max int               // length in code points; Max 0 means unlimited
	Pattern  string            // the same rule as Match, for the schema
	Match    func([]byte) bool // nil: every text
}

// A string type implements Ruled to limit its values and Listed to enumerate them.
type (
	Ruled  interface{ ShapeText() Text }
	Listed interface{ ShapeValues() []string }
)

// A type implements Standin when another type's shape, or null, stands for it on the wire.
type Standin interface{ ShapeOf() reflect.Type }

type form uint8

const (
	formAny form = iota
	formNull
	formString
	formNumber
	formInteger
	formBool
	formArray
	formRecord
	formObject
	formUnion
	formChoice
)

// Shape is the compiled form of one Go type.
type Shape struct {
	name     string // of the definition in a schema; empty for what is written in place
	form     form
	null     bool
	text     Text
	values   []string
	min, max float64
	limited  bool // min and max count (length for arrays, value for numbers)
	unique   bool
	elem     *Shape
	members  []member
	byName   map[string][]int
	kind     int // index of the member that names the variant, -1 if none
	twins    bool
	variants []variant
}

type member struct {
	name     string
	shape    *Shape
	index    int // of the Go field
	optional bool
	in, may  []string
}

// variant is a set of members as bits in the order of Shape.members.
type variant struct {
	name              string
	required, allowed uint64
}

var (
	compiled sync.Map // reflect.Type → *Shape
	rawType  = reflect.TypeFor[jsontext.Value]()
)

// For returns the shape of T. It panics when the tags of T contradict themselves: that is a mistake in this program.
func For[T any]() *Shape { return of(reflect.TypeFor[T]()) }

func of(t reflect.Type) *Shape {
	if s, ok := compiled.Load(t); ok {
		return s.(*Shape)
	}
	s, _ := compiled.LoadOrStore(t, compile(t))
	return s.(*Shape)
}

func compile(t reflect.Type) *Shape {
	zero := reflect.Zero(t).Interface()
	if standin, ok := zero.(Standin); ok {
		target := standin.ShapeOf()
		if target == nil {
			return &Shape{form: formNull}
		}
		s := *of(target)
		s.null, s.name = true, ""
		return &s
	}
	if t == rawType {
		return &Shape{form: formAny}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return of(t.Elem())
	case reflect.String:
		s := &Shape{form: formString}
		if ruled, ok := zero.(Ruled); ok {
			s.name, s.text = t.Name(), ruled.ShapeText()
		}
		if listed, ok := zero.(Listed); ok {
			s.name, s.values = t.Name(), listed.ShapeValues()
		}
		return s
	case reflect.Bool:
		return &Shape{form: formBool}
	case reflect.Float64:
		return &Shape{form: formNumber}
	case reflect.Int64:
		return &Shape{form: formInteger, limited: true, min: -maxExact, max: maxExact}
	case reflect.Slice:
		return &Shape{form: formArray, elem: of(t.Elem())}
	case reflect.Array:
		n := float64(t.Len())
		return &Shape{form: formArray, elem: of(t.Elem()), limited: true, min: n, max: n}
	case reflect.Map:
		return &Shape{form: formRecord, elem: of(t.Elem())}
	case reflect.Struct:
		return compileStruct(t)
	}
	panic(fmt.Sprintf("shape: %v has no wire form", t))
}

func compileStruct(t reflect.Type) *Shape {
	s := &Shape{name: t.Name(), form: formObject, kind: -1, byName: map[string][]int{}}
	for i := range t.NumField() {
		field := t.Field(i)
		tag := parseTag(field.Tag.Get("shape"))
		if field.Name == "_" {
			s.head(tag)
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if tag.has("name") {
			name, s.twins = tag["name"], true
		}
		if s.form != formChoice && (name == "" || name == "-") {
			panic(fmt.Sprintf("shape: %v.%s has no wire name", t, field.Name))
		}
		m := member{name: name, index: i, optional: strings.Contains(options, "omitzero"), shape: tag.limit(of(field.Type)), in: tag.list("in"), may: tag.list("may")}
		if tag.has("kind") {
			s.kind = len(s.members)
		}
		s.byName[name] = append(s.byName[name], len(s.members))
		s.members = append(s.members, m)
	}
	if len(s.members) > 64 {
		panic(fmt.Sprintf("shape: %v has more members than a set holds", t))
	}
	if s.form == formObject {
		s.variants = []variant{{}}
	}
	for v := range s.variants {
		s.fill(&s.variants[v])
	}
	return s
}

// head reads the blank field that makes a struct a union or a choice.
func (s *Shape) head(tag tagOptions) {
	if tag.has("choice") {
		s.form, s.null = formChoice, tag.has("null")
		return
	}
	s.form = formUnion
	for _, name := range tag.list("union") {
		s.variants = append(s.variants, variant{name: name})
	}
}

func (s *Shape) fill(v *variant) {
	for i, m := range s.members {
		bit := uint64(1) << i
		everywhere := m.in == nil && m.may == nil
		required := everywhere && !m.optional || contains(m.in, v.name)
		if required {
			v.required |= bit
		}
		if required || everywhere || contains(m.may, v.name) {
			v.allowed |= bit
		}
	}
}

// member finds the member of that name in a variant; variant -1 stands for any.
func (s *Shape) member(name []byte, variant int) int {
	for _, i := range s.byName[string(name)] {
		if variant < 0 || s.variants[variant].allowed>>i&1 == 1 {
			return i
		}
	}
	return -1
}

func contains(list []string, word string) bool {
	for _, item := range list {
		if item == word {
			return true
		}
	}
	return false
}

type tagOptions map[string]string

func parseTag(tag string) tagOptions {
	options := tagOptions{}
	if tag == "" {
		return options
	}
	for part := range strings.SplitSeq(tag, ",") {
		key, value, _ := strings.Cut(part, "=")
		options[key] = value
	}
	return options
}

func (o tagOptions) has(key string) bool { _, ok := o[key]; return ok }

func (o tagOptions) list(key string) []string {
	if !o.has(key) {
		return nil
	}
	return strings.Split(o[key], "|")
}

func (o tagOptions) number(key string, otherwise float64) float64 {
	if !o.has(key) {
		return otherwise
	}
	n, err := strconv.ParseFloat(o[key], 64)
	if err != nil {
		panic("shape: " + key + "=" + o[key] + " is no number")
	}
	return n
}

// limit returns s narrowed by the options of one member.
func (o tagOptions) limit(s *Shape) *Shape {
	if !o.has("min") && !o.has("max") && !o.has("unique") && !o.has("null") {
		return s
	}
	narrowed := *s
	narrowed.null = s.null || o.has("null")
	narrowed.unique = o.has("unique")
	if o.has("min") || o.has("max") {
		narrowed.name = ""
		switch s.form {
		case formString:
			narrowed.text.Min, narrowed.text.Max = int(o.number("min", 0)), int(o.number("max", 0))
		default:
			low, high := math.Inf(-1), math.Inf(1)
			if s.limited {
				low, high = s.min, s.max
			}
			narrowed.limited, narrowed.min, narrowed.max = true, o.number("min", low), o.number("max", high)
		}
	}
	return &narrowed
}
