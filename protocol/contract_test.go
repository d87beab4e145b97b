package protocol_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/repa-app/repa/protocol"
)

// contract is methods.json, the text of version 1, with extensions.json, ours beside it.
type contract struct {
	root       map[string]any
	compiler   *jsonschema.Compiler
	extensions map[string]bool // methods beside version 1
	edges      bool            // instance puts some values on a limit or just over it
}

func loadContract(t testing.TB) *contract {
	t.Helper()
	root, ours := readObject(t, "testdata/protocol-v1/methods.json"), readObject(t, "testdata/extensions.json")
	methods := root["methods"].(map[string]any)
	extensions := map[string]bool{}
	for _, more := range []any{root["olderMethods"], ours["methods"]} {
		for name, method := range more.(map[string]any) {
			if methods[name] != nil {
				t.Fatalf("%s stands twice in the contract", name)
			}
			methods[name], extensions[name] = method, true
		}
	}
	maps.Copy(root["definitions"].(map[string]any), ours["definitions"].(map[string]any))
	domain := root["errors"].(map[string]any)["domain"].(map[string]any)
	maps.Copy(domain, ours["errors"].(map[string]any)["domain"].(map[string]any))
	for _, name := range []string{"run.get", "run.cancel"} {
		// The notes of the contract let both methods take a requestId in place of the runId.
		method := methods[name].(map[string]any)
		byRequest := decodeAny(t, bytes.ReplaceAll(encode(t, method["params"]), []byte("runId"), []byte("requestId")))
		method["params"] = map[string]any{"anyOf": []any{method["params"], byRequest}}
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("contract.json", root); err != nil {
		t.Fatal(err)
	}
	return &contract{root: root, compiler: compiler, extensions: extensions}
}

func readObject(t testing.TB, file string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return decodeAny(t, text).(map[string]any)
}

func decodeAny(t testing.TB, text []byte) any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// readAny is decodeAny within a property.
func readAny(t *rapid.T, text []byte) any {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func encode(t testing.TB, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (c *contract) at(pointer string) any {
	var node any = c.root
	for step := range strings.SplitSeq(pointer, "/") {
		node = node.(map[string]any)[step]
	}
	return node
}

func (c *contract) compile(t testing.TB, pointer string) *jsonschema.Schema {
	t.Helper()
	schema, err := c.compiler.Compile("contract.json#/" + pointer)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// subject is one place of the contract with our reading of it.
type subject struct {
	pointer string
	lax     bool // encoding may drop an optional member with an empty text, false or zero: nothing is recognised by these params
	ours    func([]byte) error
	again   func([]byte) ([]byte, error) // decode and encode; nil for results, which no server reads
}

func subjects() []subject {
	list := []subject{{
		pointer: "notifications/subscription.update/params",
		ours:    func(text []byte) error { _, err := protocol.Decode[protocol.SubscriptionUpdate](text); return err },
		again: func(text []byte) ([]byte, error) {
			value, err := protocol.Decode[protocol.SubscriptionUpdate](text)
			if err != nil {
				return nil, err
			}
			return protocol.Encode(value)
		},
	}}
	for _, m := range protocol.Methods() {
		list = append(list, subject{
			pointer: "methods/" + m.Name + "/params",
			lax:     m.Group == "content" || m.Group == "operations" || m.Group == "resources",
			ours:    func(text []byte) error { _, err := m.DecodeParams(text); return err },
			again: func(text []byte) ([]byte, error) {
				value, err := m.DecodeParams(text)
				if err != nil {
					return nil, err
				}
				return protocol.Encode(value)
			},
		}, subject{
			pointer: "methods/" + m.Name + "/result",
			ours:    func(text []byte) error { return m.CheckResult(text) },
		})
	}
	return list
}

// TestDecoderAgreesWithContract holds the strict decoder and the JSON Schema of version 1 against each other over valid and broken values.
func TestDecoderAgreesWithContract(t *testing.T) {
	c := loadContract(t)
	for _, s := range subjects() {
		t.Run(s.pointer, func(t *testing.T) {
			schema, node := c.compile(t, s.pointer), c.at(s.pointer)
			rapid.Check(t, func(t *rapid.T) {
				value := c.instance(t, node, 0)
				for range rapid.IntRange(0, 2).Draw(t, "mutations") {
					value = mutate(t, value)
				}
				text, err := json.Marshal(value)
				if err != nil {
					t.Fatal(err)
				}
				theirs, ours := schema.Validate(readAny(t, text)), s.ours(text)
				if (theirs == nil) != (ours == nil) {
					t.Fatalf("contract says %v\nwe say %v\nabout %s", theirs, ours, text)
				}
				if ours == nil && s.again != nil {
					sameJSON(t, text, s)
				}
			})
		})
	}
}

// TestLimitsAgree draws values that are valid but for a few, which lie on a limit of the contract or just over it.
func TestLimitsAgree(t *testing.T) {
	c := loadContract(t)
	c.edges = true
	for _, s := range subjects() {
		t.Run(s.pointer, func(t *testing.T) {
			schema, node := c.compile(t, s.pointer), c.at(s.pointer)
			rapid.Check(t, func(t *rapid.T) {
				for range 5 {
					text, err := json.Marshal(c.instance(t, node, 0))
					if err != nil {
						t.Fatal(err)
					}
					theirs, ours := schema.Validate(readAny(t, text)), s.ours(text)
					if (theirs == nil) != (ours == nil) {
						t.Fatalf("contract says %v\nwe say %v\nabout %s", theirs, ours, text)
					}
				}
			})
		})
	}
}

// edge draws a value on or over a limit of the schema; few at a time, so that one does not hide another.
func (c *contract) edge(t *rapid.T, schema map[string]any) (any, bool) {
	var values []any
	for _, limit := range []string{"minimum", "maximum"} {
		if _, ok := schema[limit]; ok {
			n := int(number(schema, limit, 0))
			values = append(values, n-1, n, n+1)
		}
	}
	for _, limit := range []string{"minLength", "maxLength"} {
		if _, ok := schema[limit]; ok {
			n := int(number(schema, limit, 0))
			for _, size := range []int{n - 1, n, n + 1} {
				values = append(values, strings.Repeat("x", max(size, 0)), strings.Repeat("é", max(size, 0)))
			}
		}
	}
	if !c.edges || len(values) == 0 || rapid.IntRange(0, 7).Draw(t, "edge") > 0 {
		return nil, false
	}
	return rapid.SampledFrom(values).Draw(t, "limit"), true
}

func sameJSON(t *rapid.T, text []byte, s subject) {
	written, err := s.again(text)
	if err != nil {
		t.Fatalf("encode what was accepted: %v\n%s", err, text)
	}
	if s.lax {
		if _, err := s.again(written); err != nil {
			t.Fatalf("our own encoding is refused: %v\n%s", err, written)
		}
		text, written = withoutEmpty(t, text), withoutEmpty(t, written)
	}
	before, _ := protocol.Canonical(rawJSON(text))
	after, _ := protocol.Canonical(rawJSON(written))
	if strings.Contains(string(text), `"delivery"`) {
		// Records may drop an optional empty text or zero; the check of the whole is that nothing wrong appears.
		if _, err := s.again(written); err != nil {
			t.Fatalf("our own encoding is refused: %v\n%s", err, written)
		}
		return
	}
	if !bytes.Equal(before, after) {
		t.Fatalf("decoding lost something:\n%s\n%s", before, after)
	}
}

// withoutEmpty drops the members that hold an empty text, false or zero.
func withoutEmpty(t *rapid.T, text []byte) []byte {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(dropEmpty(value))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func dropEmpty(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if member == "" || member == false || member == 0.0 {
				delete(v, name)
			} else {
				v[name] = dropEmpty(member)
			}
		}
	case []any:
		for i, item := range v {
			v[i] = dropEmpty(item)
		}
	}
	return value
}

type rawJSON []byte

func (r rawJSON) MarshalJSON() ([]byte, error) { return r, nil }

// instance draws a value that fits the schema.
func (c *contract) instance(t *rapid.T, node any, depth int) any {
	schema := node.(map[string]any)
	if ref, ok := schema["$ref"].(string); ok {
		return c.instance(t, c.at(strings.TrimPrefix(ref, "#/")), depth+1)
	}
	if forms, ok := schema["anyOf"].([]any); ok {
		return c.instance(t, rapid.SampledFrom(forms).Draw(t, "form"), depth+1)
	}
	if values, ok := schema["enum"].([]any); ok {
		return rapid.SampledFrom(values).Draw(t, "value")
	}
	if value, ok := schema["const"]; ok {
		return value
	}
	if value, ok := c.edge(t, schema); ok {
		return value
	}
	switch schema["type"] {
	case "object":
		return c.object(t, schema, depth)
	case "array":
		return c.array(t, schema, depth)
	case "string":
		return text(t, schema)
	case "integer":
		return rapid.IntRange(int(number(schema, "minimum", -3)), int(number(schema, "maximum", 5000))).Draw(t, "integer")
	case "number":
		return rapid.SampledFrom([]any{0, 1, 1.5, 1764547200000.0, 1e20}).Draw(t, "number")
	case "boolean":
		return rapid.Bool().Draw(t, "boolean")
	case "null":
		return nil
	}
	return rapid.SampledFrom([]any{nil, 1, "text", "", []any{}, map[string]any{"A": 1, "a": []any{nil}}, false, 1e300}).Draw(t, "free")
}

func (c *contract) object(t *rapid.T, schema map[string]any, depth int) any {
	object := map[string]any{}
	required, _ := schema["required"].([]any)
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if slices.Contains(required, any(name)) || depth < 12 && rapid.IntRange(0, 3).Draw(t, "with "+name) == 0 {
			object[name] = c.instance(t, properties[name], depth+1)
		}
	}
	if _, ok := schema["patternProperties"]; ok && rapid.Bool().Draw(t, "record") {
		object["any name"] = true
	}
	if object["before"] != nil && object["around"] != nil && schema["not"] != nil {
		delete(object, "around")
	}
	return object
}

func (c *contract) array(t *rapid.T, schema map[string]any, depth int) any {
	least := int(number(schema, "minItems", 0))
	most := min(least+2, int(number(schema, "maxItems", 1e6)))
	if depth > 12 || schema["uniqueItems"] == true {
		most = max(least, 1)
	}
	list := []any{}
	for range rapid.IntRange(least, most).Draw(t, "items") {
		list = append(list, c.instance(t, schema["items"], depth+1))
	}
	if c.edges && rapid.IntRange(0, 7).Draw(t, "edge") == 0 {
		if len(list) > 0 && rapid.Bool().Draw(t, "twice") {
			return append(list, list[0])
		}
		return []any{}
	}
	return list
}

func text(t *rapid.T, schema map[string]any) string {
	switch schema["pattern"] {
	case "^[a-zA-Z0-9_-]+$":
		return rapid.SampledFrom([]string{"a", "A-b_9", strings.Repeat("x", 128)}).Draw(t, "id")
	case "^[a-f0-9]{64}$":
		return strings.Repeat("0f", 32)
	}
	samples := []string{"x", "a b", "ü∀😀", strings.Repeat("é", 256)}
	if number(schema, "minLength", 0) == 0 {
		samples = append(samples, "")
	}
	return rapid.SampledFrom(samples).Draw(t, "text")
}

func number(schema map[string]any, name string, otherwise float64) float64 {
	if n, ok := schema[name].(json.Number); ok {
		f, _ := n.Float64()
		return f
	}
	return otherwise
}

// mutate breaks (or only changes) one place of a value: a member goes, comes or changes its letter case, a type changes, a text or
// number moves to or over a limit, an array gets an item twice.
func mutate(t *rapid.T, value any) any {
	switch v := value.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		if len(names) == 0 || rapid.IntRange(0, 5).Draw(t, "add") == 0 {
			name := rapid.SampledFrom([]string{"extra", "kind", "spaceId", "text", "sessionId", "requestId", "", "before", "around", "runId"}).Draw(t, "name")
			v[name] = strange(t)
			return v
		}
		name := rapid.SampledFrom(names).Draw(t, "member")
		switch rapid.IntRange(0, 5).Draw(t, "how") {
		case 0:
			delete(v, name)
		case 1:
			v[strings.ToUpper(name)] = v[name]
			delete(v, name)
		default:
			v[name] = mutate(t, v[name])
		}
		return v
	case []any:
		if len(v) == 0 || rapid.IntRange(0, 3).Draw(t, "whole") == 0 {
			return strange(t)
		}
		i := rapid.IntRange(0, len(v)-1).Draw(t, "index")
		switch rapid.IntRange(0, 4).Draw(t, "how") {
		case 0:
			return append(v, v[i])
		case 1:
			return slices.Delete(v, i, i+1)
		}
		v[i] = mutate(t, v[i])
		return v
	}
	return strange(t)
}

func strange(t *rapid.T) any {
	return rapid.SampledFrom([]any{
		nil, true, 0, -1, 1, 1.5, 2.0, 200, 201, 1e3, 256, "", "a", "text", "relative", "a b", "unknown", strings.Repeat("x", 128), strings.Repeat("x", 129),
		strings.Repeat("é", 256), strings.Repeat("é", 257), strings.Repeat("F", 64), strings.Repeat("f", 63), []any{}, []any{"a", "a"}, []any{1, 1.0},
		map[string]any{}, map[string]any{"kind": "start"}, map[string]any{"spaceId": "a"}, map[string]any{"spaceId": "a", "sessionId": "b"},
	}).Draw(t, "strange")
}

// TestMethodTableIsTheContract compares names, groups, gates, repeat rules and errors.
func TestMethodTableIsTheContract(t *testing.T) {
	c := loadContract(t)
	var names []string
	for _, m := range protocol.Methods() {
		names = append(names, m.Name)
		want := c.at("methods/" + m.Name).(map[string]any)
		if want["group"] != m.Group || want["gate"] != string(m.Gate) || want["idempotent"] != m.Idempotent {
			t.Errorf("%s: %s %s %v is not %v %v %v", m.Name, m.Group, m.Gate, m.Idempotent, want["group"], want["gate"], want["idempotent"])
		}
		var codes []any
		for _, code := range m.Errors {
			codes = append(codes, string(code))
		}
		if expected, _ := want["errors"].([]any); !slices.Equal(codes, expected) {
			t.Errorf("%s: errors %v, want %v", m.Name, codes, expected)
		}
		if c.extensions[m.Name] != m.Extension {
			t.Errorf("%s: extension is %v", m.Name, m.Extension)
		}
	}
	if len(names) != 53 {
		t.Errorf("%d methods: %v", len(names), names)
	}
}

func TestCodesStandInTheContract(t *testing.T) {
	c := loadContract(t)
	domain := c.at("errors/domain").(map[string]any)
	for _, info := range protocol.Codes {
		if _, ok := domain[string(info.Code)]; !ok {
			t.Errorf("%s is not a code of version 1", info.Code)
		}
		if info.When == "" {
			t.Errorf("%s has no description", info.Code)
		}
	}
	listed := map[protocol.Code]bool{}
	for _, info := range protocol.Codes {
		if listed[info.Code] {
			t.Errorf("%s stands twice", info.Code)
		}
		listed[info.Code] = true
	}
	for _, m := range protocol.Methods() {
		for _, code := range m.Errors {
			if !listed[code] {
				t.Errorf("%s may answer %s, which is not in the table", m.Name, code)
			}
		}
	}
}

// TestPublishedSchemaAgrees validates drawn values with the schema that we publish.
func TestPublishedSchemaAgrees(t *testing.T) {
	published, err := protocol.Schema()
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("published.json", decodeAny(t, published)); err != nil {
		t.Fatal(err)
	}
	c := loadContract(t)
	for _, s := range subjects() {
		pointer := s.pointer
		if strings.HasPrefix(pointer, "notifications/") {
			pointer = "notifications/subscription.update/params/properties/delivery"
		}
		t.Run(pointer, func(t *testing.T) {
			ours, err := compiler.Compile("published.json#/" + strings.Replace(pointer, "notifications/subscription.update/params/properties/", "", 1))
			if err != nil {
				t.Fatal(err)
			}
			theirs, node := c.compile(t, pointer), c.at(pointer)
			rapid.Check(t, func(t *rapid.T) {
				value := c.instance(t, node, 0)
				for range rapid.IntRange(0, 2).Draw(t, "mutations") {
					value = mutate(t, value)
				}
				text, _ := json.Marshal(value)
				read := readAny(t, text)
				if a, b := theirs.Validate(read), ours.Validate(read); (a == nil) != (b == nil) {
					t.Fatalf("contract says %v\npublished schema says %v\nabout %s", a, b, text)
				}
			})
		})
	}
}
