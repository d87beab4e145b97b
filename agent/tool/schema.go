package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/repa-app/repa/agent/llm"
)

// Schema checks the arguments of one tool.
type Schema struct {
	name     string
	root     *jsonschema.Schema
	resolved *jsonschema.Resolved
}

// Compile prepares a tool's parameters. It fails when they are no usable JSON Schema.
func Compile(spec llm.ToolSpec) (*Schema, error) {
	s := &Schema{name: spec.Name, root: &jsonschema.Schema{}}
	if err := json.Unmarshal(spec.Parameters, s.root); err != nil {
		return nil, fmt.Errorf("parameters of tool %s: %w", spec.Name, err)
	}
	var err error
	if s.resolved, err = s.root.Resolve(nil); err != nil {
		return nil, fmt.Errorf("parameters of tool %s: %w", spec.Name, err)
	}
	return s, nil
}

// Check returns the arguments in the declared types. What models commonly get wrong is corrected: numbers and booleans as
// text, text given as a number, a single value for an array, null for an optional property. The error is written for the
// model: it lists the dotted path of each problem and the arguments as received.
func (s *Schema) Check(args json.RawMessage) (json.RawMessage, error) {
	value, err := decode(args)
	if err != nil {
		return nil, s.problem(args, []string{"not a JSON object"})
	}
	fixed, changed := coerce(s.root, value)
	final := args
	if changed {
		final = details(fixed)
	}
	// The library knows numbers only as float64.
	var plain any
	err = json.Unmarshal(final, &plain)
	if err == nil {
		err = s.resolved.Validate(plain)
	}
	if err != nil {
		var problems []string
		explain(s.root, fixed, "", &problems)
		if len(problems) == 0 {
			problems = []string{err.Error()}
		}
		return nil, s.problem(args, problems)
	}
	return final, nil
}

// decode keeps numbers as they are written: large ones must survive.
func decode(raw json.RawMessage) (any, error) {
	if !json.Valid(raw) {
		return nil, errors.New("not JSON")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

func (s *Schema) problem(args json.RawMessage, problems []string) error {
	var received bytes.Buffer
	if json.Indent(&received, args, "", "  ") != nil {
		received.Reset()
		received.Write(args)
	}
	return &domainError{"invalid_input", fmt.Sprintf("Validation failed for tool %q:\n  - %s\n\nReceived arguments:\n%s",
		s.name, strings.Join(problems, "\n  - "), received.String())}
}

func typesOf(s *jsonschema.Schema) []string {
	if s.Type != "" {
		return []string{s.Type}
	}
	return s.Types
}

// coerce returns value in the type that s asks for where that is possible without guessing. It does not change its input.
func coerce(s *jsonschema.Schema, value any) (fixed any, changed bool) {
	types := typesOf(s)
	if len(types) > 0 && !fits(types, value) {
		if v, ok := convert(types, value); ok {
			value, changed = v, true
		} else if slices.Contains(types, "array") && value != nil {
			value, changed = []any{value}, true
		}
	}
	switch v := value.(type) {
	case map[string]any:
		out, inner := coerceObject(s, v)
		return out, changed || inner
	case []any:
		if s.Items == nil {
			return v, changed
		}
		out := make([]any, len(v))
		for i, item := range v {
			var inner bool
			out[i], inner = coerce(s.Items, item)
			changed = changed || inner
		}
		return out, changed
	}
	return value, changed
}

func coerceObject(s *jsonschema.Schema, object map[string]any) (map[string]any, bool) {
	out, changed := maps.Clone(object), false
	for name, property := range s.Properties {
		value, ok := out[name]
		if !ok {
			continue
		}
		types := typesOf(property)
		if value == nil && len(types) > 0 && !slices.Contains(types, "null") && !slices.Contains(s.Required, name) {
			delete(out, name)
			changed = true
			continue
		}
		var inner bool
		out[name], inner = coerce(property, value)
		changed = changed || inner
	}
	return out, changed
}

func fits(types []string, value any) bool {
	return slices.ContainsFunc(types, func(t string) bool {
		switch v := value.(type) {
		case nil:
			return t == "null"
		case bool:
			return t == "boolean"
		case string:
			return t == "string"
		case []any:
			return t == "array"
		case map[string]any:
			return t == "object"
		case json.Number:
			return t == "number" || t == "integer" && whole(v)
		}
		return false
	})
}

func whole(n json.Number) bool {
	if _, err := n.Int64(); err == nil {
		return true
	}
	f, err := n.Float64()
	return err == nil && f == float64(int64(f))
}

// convert turns a scalar into the first of types that it can be read as.
func convert(types []string, value any) (any, bool) {
	for _, t := range types {
		switch v := value.(type) {
		case string:
			text := strings.TrimSpace(v)
			switch {
			case t == "boolean" && (text == "true" || text == "false"):
				return text == "true", true
			case (t == "number" || t == "integer") && isNumber(text) && (t == "number" || whole(json.Number(text))):
				return json.Number(text), true
			}
		case json.Number:
			if t == "string" {
				return v.String(), true
			}
		case bool:
			if t == "string" {
				return strconv.FormatBool(v), true
			}
		}
	}
	return nil, false
}

func isNumber(s string) bool {
	return s != "" && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') && json.Valid([]byte(s))
}

// explain lists what is wrong with value, in the terms of the keywords that tools use.
func explain(s *jsonschema.Schema, value any, path string, problems *[]string) {
	report := func(at, format string, args ...any) {
		if at == "" {
			at = "arguments"
		}
		*problems = append(*problems, at+": "+fmt.Sprintf(format, args...))
	}
	if types := typesOf(s); len(types) > 0 && !fits(types, value) {
		report(path, "must be %s", strings.Join(types, " or "))
		return
	}
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(e any) bool { return fmt.Sprint(e) == fmt.Sprint(value) }) {
		report(path, "must be one of %s", details(s.Enum))
	}
	switch v := value.(type) {
	case string:
		n := len([]rune(v))
		if s.MinLength != nil && n < *s.MinLength {
			report(path, "must have at least %d characters", *s.MinLength)
		}
		if s.MaxLength != nil && n > *s.MaxLength {
			report(path, "must have at most %d characters", *s.MaxLength)
		}
	case json.Number:
		f, err := v.Float64()
		if err == nil && s.Minimum != nil && f < *s.Minimum {
			report(path, "must be at least %v", *s.Minimum)
		}
		if err == nil && s.Maximum != nil && f > *s.Maximum {
			report(path, "must be at most %v", *s.Maximum)
		}
	case []any:
		if s.MinItems != nil && len(v) < *s.MinItems {
			report(path, "must have at least %d items", *s.MinItems)
		}
		if s.MaxItems != nil && len(v) > *s.MaxItems {
			report(path, "must have at most %d items", *s.MaxItems)
		}
		for i, item := range v {
			if s.Items != nil {
				explain(s.Items, item, join(path, strconv.Itoa(i)), problems)
			}
		}
	case map[string]any:
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				report(join(path, name), "missing")
			}
		}
		closed := s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil && len(s.PatternProperties) == 0
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if property := s.Properties[name]; property != nil {
				explain(property, v[name], join(path, name), problems)
			} else if closed {
				report(join(path, name), "unknown property")
			}
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
