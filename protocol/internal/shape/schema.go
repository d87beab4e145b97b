package shape

import (
	"math"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema returns the JSON Schema (2020-12) of the shape. Named types are put into definitions and referred to as #/$defs/name.
func (s *Shape) Schema(definitions map[string]*jsonschema.Schema) *jsonschema.Schema {
	body := s.reference(definitions)
	if s.null && s.form != formChoice {
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{body, {Type: "null"}}}
	}
	return body
}

func (s *Shape) reference(definitions map[string]*jsonschema.Schema) *jsonschema.Schema {
	if s.name == "" {
		return s.body(definitions)
	}
	if definitions[s.name] == nil {
		definitions[s.name] = &jsonschema.Schema{} // holds the place while the members are described
		*definitions[s.name] = *s.body(definitions)
	}
	return &jsonschema.Schema{Ref: "#/$defs/" + s.name}
}

func (s *Shape) body(definitions map[string]*jsonschema.Schema) *jsonschema.Schema {
	switch s.form {
	case formNull:
		return &jsonschema.Schema{Type: "null"}
	case formBool:
		return &jsonschema.Schema{Type: "boolean"}
	case formString:
		return s.stringSchema()
	case formNumber, formInteger:
		schema := &jsonschema.Schema{Type: "number"}
		if s.form == formInteger {
			schema.Type = "integer"
		}
		if s.limited {
			schema.Minimum, schema.Maximum = bound(s.min), bound(s.max)
		}
		return schema
	case formArray:
		schema := &jsonschema.Schema{Type: "array", Items: s.elem.Schema(definitions), UniqueItems: s.unique}
		if s.limited {
			schema.MinItems, schema.MaxItems = count(s.min), count(s.max)
		}
		return schema
	case formRecord:
		return &jsonschema.Schema{Type: "object", AdditionalProperties: s.elem.Schema(definitions)}
	case formChoice:
		schema := &jsonschema.Schema{}
		for _, m := range s.members {
			schema.AnyOf = append(schema.AnyOf, m.shape.Schema(definitions))
		}
		if s.null {
			schema.AnyOf = append(schema.AnyOf, &jsonschema.Schema{Type: "null"})
		}
		return schema
	case formObject:
		return s.variantSchema(s.variants[0], definitions)
	case formUnion:
		schema := &jsonschema.Schema{}
		for _, v := range s.variants {
			schema.AnyOf = append(schema.AnyOf, s.variantSchema(v, definitions))
		}
		return schema
	}
	return &jsonschema.Schema{}
}

func (s *Shape) stringSchema() *jsonschema.Schema {
	schema := &jsonschema.Schema{Type: "string", Pattern: s.text.Pattern}
	for _, value := range s.values {
		schema.Enum = append(schema.Enum, value)
	}
	if s.text.Min > 0 {
		schema.MinLength = jsonschema.Ptr(s.text.Min)
	}
	if s.text.Max > 0 {
		schema.MaxLength = jsonschema.Ptr(s.text.Max)
	}
	return schema
}

func (s *Shape) variantSchema(v variant, definitions map[string]*jsonschema.Schema) *jsonschema.Schema {
	schema := &jsonschema.Schema{
		Type:                 "object",
		Properties:           map[string]*jsonschema.Schema{},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	for i, m := range s.members {
		if v.allowed>>i&1 == 0 {
			continue
		}
		if i == s.kind {
			schema.Properties[m.name] = &jsonschema.Schema{Type: "string", Const: jsonschema.Ptr[any](v.name)}
		} else {
			schema.Properties[m.name] = m.shape.Schema(definitions)
		}
		schema.PropertyOrder = append(schema.PropertyOrder, m.name)
		if v.required>>i&1 == 1 {
			schema.Required = append(schema.Required, m.name)
		}
	}
	return schema
}

func bound(n float64) *float64 {
	if math.IsInf(n, 0) {
		return nil
	}
	return &n
}

func count(n float64) *int {
	if math.IsInf(n, 0) {
		return nil
	}
	return jsonschema.Ptr(int(n))
}
