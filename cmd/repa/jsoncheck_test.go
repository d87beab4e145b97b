//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// results are the members that every object of `repa run --output json` has, in any outcome.
var results = []string{"sessionId", "requestId", "runId", "status", "text", "usage", "changes"}

// jsonCheck holds a file (or stdout) against the contract of `repa run`: json is exactly one result object; stream is one object with
// a type a line, the last a result that says the same as `repa run --output json` would. Further arguments are NAME=VALUE as for field.
func jsonCheck(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: jsoncheck json|stream FILE [path=value...]")
	}
	lines := strings.Split(strings.TrimSuffix(ts.ReadFile(args[1]), "\n"), "\n")
	if args[0] == "json" && len(lines) != 1 {
		ts.Fatalf("%d lines instead of one object", len(lines))
	}
	var types []string
	var last map[string]any
	for i, line := range lines {
		last = nil
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			ts.Fatalf("line %d: %v\n%s", i+1, err, line)
		}
		kind, _ := last["type"].(string)
		types = append(types, kind)
	}
	allowed := []string{"session", "request", "run", "delta", "thinking", "tool", "notice", "result"}
	for i, kind := range types {
		switch {
		case args[0] == "json" && kind != "":
			ts.Fatalf("the object of --output json has a type")
		case args[0] == "stream" && (!slices.Contains(allowed, kind) || (kind == "result") != (i == len(types)-1)):
			ts.Fatalf("line %d of %d is of type %q", i+1, len(types), kind)
		}
	}
	delete(last, "type")
	checkResult(ts, last)
	for _, arg := range args[2:] {
		checkField(ts, last, arg)
	}
}

func checkResult(ts *testscript.TestScript, r map[string]any) {
	want := slices.Clone(results)
	if r["status"] != "completed" && r["status"] != "cancelled" {
		want = append(want, "error")
	}
	var got []string
	for name := range r {
		got = append(got, name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) && !(r["status"] == "cancelled" && slices.Equal(got, slices.Sorted(slices.Values(append(want, "error"))))) {
		ts.Fatalf("members %v, want %v", got, want)
	}
	if u, ok := r["usage"].(map[string]any); !ok || len(u) != 5 {
		ts.Fatalf("usage is %v", r["usage"])
	}
	if _, ok := r["changes"].([]any); !ok {
		ts.Fatalf("changes is %v", r["changes"])
	}
	if e, ok := r["error"].(map[string]any); ok && (e["code"] == "" || e["message"] == "" || len(e) != 2) {
		ts.Fatalf("error is %v", e)
	}
}

// field takes the one JSON value of a file (or stdout), holds path=value against it, and stores $NAME=path in the environment.
func field(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: field FILE path=value|@NAME=path...")
	}
	var v any
	d := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	if err := d.Decode(&v); err != nil {
		ts.Fatalf("%v", err)
	}
	if d.More() {
		ts.Fatalf("more than one JSON value")
	}
	for _, arg := range args[1:] {
		checkField(ts, v, arg)
	}
}

func checkField(ts *testscript.TestScript, v any, arg string) {
	path, want, ok := strings.Cut(arg, "=")
	if !ok {
		ts.Fatalf("%s is not path=value", arg)
	}
	name, store := strings.CutPrefix(path, "@")
	if store {
		path = want
	}
	got, err := at(v, path)
	if err != nil {
		ts.Fatalf("%v", err)
	}
	text, ok := got.(string)
	if !ok {
		raw, err := json.Marshal(got)
		ts.Check(err)
		text = string(raw)
	}
	if store {
		ts.Setenv(name, text)
	} else if text != want {
		ts.Fatalf("%s is %s, want %s", path, text, want)
	}
}

// at follows a path like changes.0.path; len is the number of elements.
func at(v any, path string) (any, error) {
	for _, step := range strings.Split(path, ".") {
		switch c := v.(type) {
		case map[string]any:
			next, ok := c[step]
			if !ok {
				return nil, fmt.Errorf("no %s in %v", step, v)
			}
			v = next
		case []any:
			if step == "len" {
				v = len(c)
				continue
			}
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(c) {
				return nil, fmt.Errorf("no element %s of %d", step, len(c))
			}
			v = c[i]
		default:
			return nil, fmt.Errorf("no %s in %v", step, v)
		}
	}
	return v, nil
}

// sameResult holds the result of --output json against the last line of stream-json: apart from the ids both say the same.
func sameResult(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sameresult JSON STREAM")
	}
	var both [2]map[string]any
	for i, file := range args {
		lines := strings.Split(strings.TrimSpace(ts.ReadFile(file)), "\n")
		ts.Check(json.Unmarshal([]byte(lines[len(lines)-1]), &both[i]))
		for _, name := range []string{"sessionId", "requestId", "runId"} {
			both[i][name] = both[i][name] != nil
		}
		for _, c := range both[i]["changes"].([]any) {
			delete(c.(map[string]any), "operationId")
		}
	}
	delete(both[1], "type")
	if !reflect.DeepEqual(both[0], both[1]) {
		ts.Fatalf("the forms differ:\n%v\n%v", both[0], both[1])
	}
}
