package protocol_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/repa-app/repa/protocol"
)

// answer is the result of a method as a client reads it.
func answer[P, R any](call *protocol.Call[P, R]) subject {
	return subject{
		pointer: "methods/" + call.Name + "/result",
		lax:     true,
		again: func(text []byte) ([]byte, error) {
			value, err := protocol.Decode[R](text)
			if err != nil {
				return nil, err
			}
			return protocol.Encode(value)
		},
	}
}

// TestResultsSurviveDecoding draws results that fit the contract, reads them as a client does and writes them again.
func TestResultsSurviveDecoding(t *testing.T) {
	c := loadContract(t)
	for _, s := range []subject{
		answer(protocol.ContentList), answer(protocol.ContentGet), answer(protocol.ContentRead), answer(protocol.ContentWrite), answer(protocol.ContentHistory),
		answer(protocol.ContentAt), answer(protocol.ContentDiff), answer(protocol.ContentFind), answer(protocol.ContentChanges), answer(protocol.ContentRestore),
		answer(protocol.OperationGet), answer(protocol.OperationReconcile), answer(protocol.OperationPrune), answer(protocol.OperationList),
		answer(protocol.OperationUndoRun), answer(protocol.OperationResolve), answer(protocol.OperationPrunePreview),
		answer(protocol.ResourceHold), answer(protocol.ResourceHoldGet), answer(protocol.ResourceRelease),
	} {
		t.Run(s.pointer, func(t *testing.T) {
			node := c.at(s.pointer)
			rapid.Check(t, func(t *rapid.T) {
				text, err := json.Marshal(c.instance(t, node, 0))
				if err != nil {
					t.Fatal(err)
				}
				sameJSON(t, text, s)
			})
		})
	}
}

// TestUploadAnswerIsTheContract holds the one type that only HTTP carries against the contract.
func TestUploadAnswerIsTheContract(t *testing.T) {
	c := loadContract(t)
	schema, node := c.compile(t, "definitions/ResourcePreparation"), c.at("definitions/ResourcePreparation")
	rapid.Check(t, func(t *rapid.T) {
		value := c.instance(t, node, 0)
		if rapid.Bool().Draw(t, "broken") {
			value = mutate(t, value)
		}
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		_, ours := protocol.Decode[protocol.ResourcePreparation](text)
		if theirs := schema.Validate(readAny(t, text)); (theirs == nil) != (ours == nil) {
			t.Fatalf("contract says %v\nwe say %v\nabout %s", theirs, ours, text)
		}
	})
}

func TestContentParamsAreRefused(t *testing.T) {
	target := `"target":{"kind":"file","spaceId":"p","location":{"kind":"relative","path":"a.md"}},"operationId":"o"`
	for _, c := range []struct{ method, params, why string }{
		{"content.write", `{` + target + `,"value":{"kind":"text","text":""},"base":"r"}`, ""},
		{"content.write", `{` + target + `,"value":{"kind":"text","text":""},"base":{"kind":"absent"}}`, ""},
		{"content.write", `{` + target + `,"value":{"kind":"text","text":""},"base":{"kind":"present"}}`, "base: fits none of its forms"},
		{"content.write", `{` + target + `,"value":{"kind":"text","text":""},"base":""}`, "base: fits none of its forms"},
		{"content.write", `{` + target + `,"value":{"kind":"text","text":""},"base":null}`, "base: fits none of its forms"},
		{"content.write", `{` + target + `,"value":{"kind":"text","resource":{}},"base":"r"}`, "member resource does not belong to text"},
		{"content.edit", `{` + target + `,"edits":[]}`, "edits: must have at least 1 items"},
		{"content.edit", `{` + target + `,"edits":[{"oldText":"","newText":""}]}`, "edits[0].oldText: must have at least 1"},
		{"content.read", `{"target":{"kind":"content","ref":{"spaceId":"p","id":"c"}},"offset":0}`, "offset: must be at least 1"},
		{"content.history", `{"target":{"kind":"content","ref":{"spaceId":"p","id":"c"}},"limit":1001}`, "limit: must be at most 1000"},
		{"operation.list", `{"spaceId":"p","before":0}`, "before: must be at least 1"},
		{"operation.resolve", `{"spaceId":"p","operationId":"o","choices":[{"path":"a","choice":"drop"}]}`, "choices[0].choice: must be one of keep, restore, take"},
		{"content.changes", `{}`, "member spaceId is missing"},
	} {
		m, ok := protocol.Lookup(c.method)
		if !ok {
			t.Fatalf("no method %s", c.method)
		}
		_, err := m.DecodeParams([]byte(c.params))
		if c.why == "" && err != nil || c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%s %s: want %q, got %v", c.method, c.params, c.why, err)
		}
	}
}

func TestTwinsArePairs(t *testing.T) {
	const report = `{"unresolved":[],"outside":[],"missing":[],"conflictCopies":[],"twins":[%]}`
	for twins, why := range map[string]string{"": "", `["a","A"]`: "", `["a"]`: "at least 2", `["a","A","â"]`: "at most 2", `[]`: "at least 2", `null`: "array"} {
		err := protocol.ContentChanges.CheckResult([]byte(strings.Replace(report, "%", twins, 1)))
		if why == "" && err != nil || why != "" && (err == nil || !strings.Contains(err.Error(), why)) {
			t.Errorf("%s: want %q, got %v", twins, why, err)
		}
	}
}

func TestBases(t *testing.T) {
	for want, base := range map[string]protocol.WriteBase{`"r"`: protocol.BaseRevision("r"), `{"kind":"absent"}`: protocol.BaseAbsent()} {
		raw, err := protocol.Encode(base)
		if err != nil || string(raw) != want || base.Validate() != nil {
			t.Errorf("%s, want %s: %v", raw, want, err)
		}
	}
	r := protocol.Revision("r")
	for name, base := range map[string]protocol.WriteBase{"none": {}, "both": {Revision: &r, Absent: &protocol.AbsentBase{Kind: "absent"}}} {
		if _, err := protocol.Encode(base); err == nil {
			t.Errorf("%s was encoded", name)
		}
	}
}

// TestDetailsAreTheOnlyDifference wants a detailed result without diffs to be the text of the plain one.
func TestDetailsAreTheOnlyDifference(t *testing.T) {
	after := protocol.Revision("r")
	plain := protocol.ContentChangeResult{OperationID: "o", Changes: []protocol.ContentChange{{Path: "a", After: &after}}}
	want, errA := protocol.Encode(plain)
	got, errB := protocol.Encode(plain.Detailed())
	if errA != nil || errB != nil || string(got) != string(want) {
		t.Errorf("%s, want %s", got, want)
	}
	full := plain.Detailed(protocol.FileDiff{Path: "a", Unified: "+x\n"})
	raw, err := protocol.Encode(full)
	if err != nil || protocol.ContentRestore.CheckResult(raw) != nil || protocol.ContentWrite.CheckResult(raw) == nil {
		t.Errorf("%s %v", raw, err)
	}
}

// FuzzParams reads anything as the params of any method: never a panic, and what is accepted is written as something that is accepted.
func FuzzParams(f *testing.F) {
	methods := protocol.Methods()
	for name, seed := range map[string]string{
		"content.write":      `{"target":{"kind":"file","spaceId":"p","location":{"kind":"relative","path":"a"}},"operationId":"o","value":{"kind":"text","text":""},"base":{"kind":"absent"}}`,
		"content.applyPatch": `{"spaceId":"p","operationId":"o","patch":"","bases":[{"target":{"kind":"content","ref":{"spaceId":"p","id":"c"}},"base":"r"}],"registrations":[{"path":"a","role":"material","origin":{"kind":"url","url":"u","retrievedAt":1}}]}`,
		"operation.resolve":  `{"spaceId":"p","operationId":"o","choices":[{"path":"a","choice":"take"}]}`,
		"operation.list":     `{"spaceId":"p","before":1.5,"limit":1e2}`,
		"resource.hold":      `{"spaceId":"p","id":"h","targets":[],"resources":[{"spaceId":"p","id":"x","mediaType":""}]}`,
		"session.submit":     `{"target":{"spaceId":"p","sessionId":"s"},"requestId":"r","input":{"parts":[{"kind":"text","text":"x"}]},"dispatch":{"kind":"start"}}`,
	} {
		i := slices.IndexFunc(methods, func(m *protocol.Method) bool { return m.Name == name })
		f.Add(uint8(i), []byte(seed))
	}
	f.Fuzz(func(t *testing.T, i uint8, text []byte) {
		m := methods[int(i)%len(methods)]
		params, err := m.DecodeParams(text)
		if err != nil {
			return
		}
		raw, err := protocol.Encode(params)
		if err != nil {
			t.Fatalf("%s: %s was read but not written: %v", m.Name, text, err)
		}
		if _, err := m.DecodeParams(raw); err != nil {
			t.Fatalf("%s: %s was written as %s: %v", m.Name, text, raw, err)
		}
	})
}
