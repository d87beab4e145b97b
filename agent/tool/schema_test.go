package tool_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/tool"
)

const parameters = `{"type":"object","properties":{
	"text":{"type":"string","minLength":1,"maxLength":5},
	"count":{"type":"integer","minimum":1,"maximum":10},
	"ratio":{"type":"number"},
	"flag":{"type":"boolean"},
	"kind":{"enum":["a","b"]},
	"list":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"integer"}},
	"either":{"type":["integer","null"]},
	"free":{},
	"deep":{"type":"object","properties":{"inner":{"type":"array","items":{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}}}},
	"pattern":{"type":"string","pattern":"^x"}
},"required":["text"],"additionalProperties":false}`

func schema(t testing.TB) *tool.Schema {
	t.Helper()
	s, err := tool.Compile(llm.ToolSpec{Name: "try", Parameters: json.RawMessage(parameters)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCoercion(t *testing.T) {
	s := schema(t)
	for args, want := range map[string]string{
		`{"text":"a"}`:                                               `{"text":"a"}`,
		`{ "text" : "a", "count": 3 }`:                               `{ "text" : "a", "count": 3 }`, // untouched when nothing is to be corrected
		`{"text":5,"count":"7"}`:                                     `{"count":7,"text":"5"}`,
		`{"text":true,"flag":"false"}`:                               `{"flag":false,"text":"true"}`,
		`{"text":"a","ratio":"1.50"}`:                                `{"ratio":1.50,"text":"a"}`,
		`{"text":"a","list":3}`:                                      `{"list":[3],"text":"a"}`,
		`{"text":"a","list":["1",2]}`:                                `{"list":[1,2],"text":"a"}`,
		`{"text":"a","list":"4"}`:                                    `{"list":[4],"text":"a"}`,
		`{"text":"a","count":null,"list":null}`:                      `{"text":"a"}`,
		`{"text":"a","either":null,"free":null}`:                     `{"text":"a","either":null,"free":null}`,
		`{"text":"a","either":"12"}`:                                 `{"either":12,"text":"a"}`,
		`{"text":"a","count":2.0}`:                                   `{"text":"a","count":2.0}`,
		`{"text":"a","ratio":12345678901234567890123,"flag":"true"}`: `{"flag":true,"ratio":12345678901234567890123,"text":"a"}`,
		`{"text":"a","deep":{"inner":{"n":"1"}}}`:                    `{"deep":{"inner":[{"n":1}]},"text":"a"}`,
	} {
		before := strings.Clone(args)
		got, err := s.Check(json.RawMessage(args))
		if err != nil {
			t.Errorf("%s: %v", args, err)
		} else if string(got) != want || args != before {
			t.Errorf("%s became %s, want %s", args, got, want)
		}
	}
}

func TestProblems(t *testing.T) {
	s := schema(t)
	for args, want := range map[string]string{
		`{}`:                                   "text: missing",
		`{"text":null}`:                        "text: must be string",
		`{"text":""}`:                          "text: must have at least 1 characters",
		`{"text":"abcdef"}`:                    "text: must have at most 5 characters",
		`{"text":"a","count":"x"}`:             "count: must be integer",
		`{"text":"a","count":1.5}`:             "count: must be integer",
		`{"text":"a","count":0}`:               "count: must be at least 1",
		`{"text":"a","count":"11"}`:            "count: must be at most 10",
		`{"text":"a","kind":"c"}`:              `kind: must be one of ["a","b"]`,
		`{"text":"a","list":[]}`:               "list: must have at least 1 items",
		`{"text":"a","list":[1,2,3,4]}`:        "list: must have at most 3 items",
		`{"text":"a","list":[1,{}]}`:           "list.1: must be integer",
		`{"text":"a","either":true}`:           "either: must be integer or null",
		`{"text":"a","deep":{"inner":[{},5]}}`: "deep.inner.0.n: missing\n  - deep.inner.1: must be object",
		`{"text":"a","more":1,"also":2}`:       "also: unknown property\n  - more: unknown property",
		`[]`:                                   "arguments: must be object",
		`"x"`:                                  "arguments: must be object",
		`{"text":`:                             "not a JSON object",
	} {
		_, err := s.Check(json.RawMessage(args))
		if err == nil {
			t.Errorf("%s: accepted", args)
			continue
		}
		head, received, _ := strings.Cut(err.Error(), "\n\nReceived arguments:\n")
		if diff := cmp.Diff("Validation failed for tool \"try\":\n  - "+want, head); diff != "" {
			t.Errorf("%s: %s", args, diff)
		}
		if strings.Join(strings.Fields(received), "") != strings.Join(strings.Fields(args), "") {
			t.Errorf("%s: received %s", args, received)
		}
	}
	if _, err := s.Check(json.RawMessage(`{"text":"a","pattern":"y"}`)); err == nil || !strings.Contains(err.Error(), "pattern") {
		t.Errorf("a keyword without words of its own: %v", err)
	}
}

// The wording of Pi's own fixture.
func TestPiWording(t *testing.T) {
	s, err := tool.Compile(llm.ToolSpec{Name: "read", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Check(json.RawMessage(`{}`))
	if want := "Validation failed for tool \"read\":\n  - path: missing\n\nReceived arguments:\n{}"; err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

func TestUnusableSchema(t *testing.T) {
	for _, p := range []string{`{`, `{"type":7}`, `{"$ref":"#/nowhere"}`, ``} {
		if _, err := tool.Compile(llm.ToolSpec{Name: "x", Parameters: json.RawMessage(p)}); err == nil || !strings.Contains(err.Error(), "tool x") {
			t.Errorf("%s: %v", p, err)
		}
	}
}

// What Check returned is accepted again unchanged.
func TestCoercionIsStable(t *testing.T) {
	s := schema(t)
	scalar := rapid.SampledFrom([]any{nil, true, "true", "1", "1.5", "x", 1, 2.5, []any{"1"}, map[string]any{"n": "2"}})
	names := rapid.SampledFrom([]string{"text", "count", "ratio", "flag", "list", "either", "free", "deep"})
	rapid.Check(t, func(rt *rapid.T) {
		args := rapid.MapOf(names, scalar).Draw(rt, "args")
		raw, _ := json.Marshal(args)
		first, err := s.Check(raw)
		if err != nil {
			return
		}
		second, err := s.Check(first)
		if err != nil || string(second) != string(first) {
			rt.Fatalf("%s → %s → %s, %v", raw, first, second, err)
		}
	})
}

func FuzzCheck(f *testing.F) {
	f.Add(`{"text":"a","count":"7","list":["1"],"deep":{"inner":{"n":1}}}`)
	f.Add(`[1,{}]`)
	f.Add(`{"text":1e999,"ratio":"1e999"}`)
	f.Fuzz(func(t *testing.T, args string) {
		got, err := schema(t).Check(json.RawMessage(args))
		if err == nil && !json.Valid(got) {
			t.Errorf("%q became %q", args, got)
		}
	})
}
