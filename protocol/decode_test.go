package protocol_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol"
)

const submit = `{"target":{"spaceId":"p","sessionId":"s"},"requestId":"r","input":{"parts":[%s]},"dispatch":%s%s}`

func parts(part, dispatch, more string) string { return fmt.Sprintf(submit, part, dispatch, more) }

func TestWhatIsRefusedAndWhy(t *testing.T) {
	const text, start = `{"kind":"text","text":"x"}`, `{"kind":"start"}`
	for why, params := range map[string]string{
		"":                                      parts(text, start, ""),
		"unknown member \"extra\"":              parts(text, start, `,"extra":1`),
		"unknown member \"Selection\"":          parts(text, start, `,"Selection":{}`),
		"duplicate object member name":          parts(text, start, `,"requestId":"q"`),
		"invalid UTF-8":                         parts("{\"kind\":\"text\",\"text\":\"\xff\"}", start, ""),
		"input.parts[0]: member text":           parts(`{"kind":"text"}`, start, ""),
		"input.parts[0]: kind must be one of":   parts(`{"kind":"song"}`, start, ""),
		"input.parts[0]: kind must be text":     parts(`{"kind":1}`, start, ""),
		"member target does not belong to text": parts(`{"kind":"text","text":"x","target":{"kind":"content","ref":{"spaceId":"p","id":"c"}}}`, start, ""),
		"input.parts[0].text: must be text":     parts(`{"kind":"text","text":null}`, start, ""),
		"dispatch: member expectedRunId":        parts(text, `{"kind":"steer"}`, ""),
		"dispatch: member expectedRunId does":   parts(text, `{"kind":"start","expectedRunId":"r"}`, ""),
		"dispatch: must be an object":           parts(text, `"start"`, ""),
		"selection.tools: must be an array":     parts(text, start, `,"selection":{"tools":null}`),
		"selection.tools[1]: must not repeat":   parts(text, start, `,"selection":{"tools":["a","\u0061"]}`),
		"selection.compaction.reserveTokens":    parts(text, start, `,"selection":{"compaction":{"enabled":true,"reserveTokens":1.5,"keepRecentTokens":0}}`),
		"must be at most":                       parts(text, start, `,"selection":{"compaction":{"enabled":true,"reserveTokens":9007199254740993000,"keepRecentTokens":0}}`),
		"more than one JSON value":              parts(text, start, "") + "{}",
	} {
		_, err := protocol.Decode[protocol.Submit]([]byte(params))
		if why == "" && err != nil || why != "" && (err == nil || !strings.Contains(err.Error(), why)) {
			t.Errorf("want %q, got %v", why, err)
		}
	}
}

// TestPayloadsAreCompared holds submissions against each other as JSON.
func TestPayloadsAreCompared(t *testing.T) {
	const text, start = `{"kind":"text","text":"x"}`, `{"kind":"start"}`
	resource := `{"kind":"resource","resource":{"spaceId":"p","id":"i","mediaType":"text/plain"}%s}`
	locator := `{"kind":"reference","target":{"kind":"content","ref":{"spaceId":"p","id":"c"}},"locator":{"format":{"id":"f","version":"1"},"value":%s}}`
	tools := `,"selection":{"compaction":{"enabled":true,"reserveTokens":%s,"keepRecentTokens":0}}`
	for _, c := range []struct {
		name, a, b string
		same       bool
	}{
		{"itself", parts(text, start, ""), parts(text, start, ""), true},
		{"order of members", parts(text, start, ""), parts(`{"text":"x","kind":"text"}`, start, ""), true},
		{"spelling of text", parts(text, start, ""), parts(`{"kind":"text","text":"\u0078"}`, start, ""), true},
		{"spelling of numbers", parts(text, start, fmt.Sprintf(tools, "100")), parts(text, start, fmt.Sprintf(tools, "1e2")), true},
		{"order in free JSON", parts(fmt.Sprintf(locator, `{"a":1,"b":2}`), start, ""), parts(fmt.Sprintf(locator, `{"b":2.0,"a":1}`), start, ""), true},
		{"free JSON", parts(fmt.Sprintf(locator, `{"a":1}`), start, ""), parts(fmt.Sprintf(locator, `{"a":2}`), start, ""), false},
		{"null in free JSON", parts(fmt.Sprintf(locator, `{"a":null}`), start, ""), parts(fmt.Sprintf(locator, `{}`), start, ""), false},
		{"text", parts(text, start, ""), parts(`{"kind":"text","text":"x "}`, start, ""), false},
		{"dispatch", parts(text, start, ""), parts(text, `{"kind":"queue"}`, ""), false},
		{"empty selection", parts(text, start, ""), parts(text, start, `,"selection":{}`), false},
		{"null fallback", parts(text, start, `,"selection":{}`), parts(text, start, `,"selection":{"fallback":null}`), false},
		{"empty tools", parts(text, start, `,"selection":{}`), parts(text, start, `,"selection":{"tools":[]}`), false},
		{"empty description", parts(fmt.Sprintf(resource, ""), start, ""), parts(fmt.Sprintf(resource, `,"description":""`), start, ""), false},
		{"order of parts", parts(text+`,{"kind":"text","text":"y"}`, start, ""), parts(`{"kind":"text","text":"y"},`+text, start, ""), false},
	} {
		a, err := protocol.Decode[protocol.Submit]([]byte(c.a))
		if err != nil {
			t.Fatal(c.name, err)
		}
		b, err := protocol.Decode[protocol.Submit]([]byte(c.b))
		if err != nil {
			t.Fatal(c.name, err)
		}
		if protocol.Equal(a, b) != c.same || protocol.Equal(b, a) != c.same {
			t.Errorf("%s: equal is %v", c.name, !c.same)
		}
	}
}

func TestShortFormIsTheSamePayload(t *testing.T) {
	short := protocol.RunSubmitParams{SpaceID: "p", SessionID: "s", RequestID: "r", Text: "x"}.Submit()
	long, err := protocol.Decode[protocol.Submit]([]byte(parts(`{"kind":"text","text":"x"}`, `{"kind":"start"}`, "")))
	if err != nil {
		t.Fatal(err)
	}
	if !protocol.Equal(short, long) {
		t.Error("run.submit is not its session.submit")
	}
	recorded := long.Submission()
	if err := recorded.Validate(); err != nil {
		t.Error(err)
	}
	a, errA := protocol.Canonical(long)
	b, errB := protocol.Canonical(recorded)
	if errA != nil || errB != nil || string(a) != string(b) {
		t.Errorf("recorded as %s, came as %s", b, a)
	}
}

// TestMixturesAreNotEncoded wants an error, not a silent loss, for unions with members of another variant.
func TestMixturesAreNotEncoded(t *testing.T) {
	flag := true
	text := "x"
	for name, value := range map[string]interface{ Validate() error }{
		"block":       protocol.Block{Type: protocol.BlockText, Text: "x", ID: "call"},
		"dispatch":    protocol.Dispatch{Kind: "start", ExpectedRunID: "r"},
		"no kind":     protocol.Dispatch{},
		"scope":       protocol.Scope{SessionID: "s"},
		"interaction": protocol.Interaction{ID: "q", Kind: "confirm", SpaceID: "p", SessionID: "s", RunID: "r", RequestID: "x"},
		"history":     protocol.HistoryParams{SpaceID: "p", SessionID: "s", Before: "a", Around: "b"},
		"run":         protocol.RunParams{SpaceID: "p", RunID: "r", RequestID: "x"},
		"reply":       protocol.Reply{Text: &text, Confirmed: &flag},
		"record":      protocol.RequestRecord{},
		"change":      protocol.Change{Type: protocol.ChangeDelta, SpaceID: "p", SessionID: "s", MessageID: "m", Kind: "text", Run: &protocol.Run{}},
	} {
		_, err := protocol.Encode(value)
		if name == "scope" { // what is missing is found by Validate, what is too much by both
			err = value.Validate()
		}
		if err == nil {
			t.Errorf("%s was encoded", name)
		}
	}
	for name, value := range map[string]interface{ Validate() error }{
		"block":     protocol.TextBlock(""),
		"entered":   protocol.RequestDelivery{Status: protocol.DeliveryEntered},
		"dismissed": protocol.Reply{},
		"gone":      protocol.Change{Type: protocol.ChangeInteraction, SpaceID: "p", SessionID: "s", ID: "q"},
		"scope":     protocol.Scope{},
		"delivery":  protocol.Delivery{Type: "changes", PreviousCursor: "a", Cursor: "b"},
	} {
		if err := value.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRequiredArraysAreNeverNull(t *testing.T) {
	raw, err := protocol.Encode(protocol.SessionView{SpaceID: "p", SessionID: "s", Runtime: protocol.RuntimeReady})
	if err != nil || strings.Contains(string(raw), "null") {
		t.Errorf("%s %v", raw, err)
	}
	if err := protocol.SessionGet.CheckResult(raw); err != nil {
		t.Error(err)
	}
}

// TestSharedEncoding wants the updates that are put together by hand to be what Encode would give.
func TestSharedEncoding(t *testing.T) {
	change := protocol.Change{Type: protocol.ChangeDelta, SpaceID: "p", SessionID: "s", MessageID: "m", Kind: "text", Text: "\"\n"}
	raw, err := protocol.Encode(change)
	if err != nil {
		t.Fatal(err)
	}
	state := protocol.Snapshot{Lifecycle: protocol.LifecycleRunning}
	rawState, err := protocol.Encode(state)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		got  jsontext.Value
		want protocol.Delivery
	}{
		{protocol.ChangesUpdate("w", "a:1", "a:\"3", []jsontext.Value{raw, raw}), protocol.Delivery{Type: "changes", PreviousCursor: "a:1", Cursor: "a:\"3", Changes: []protocol.Change{change, change}}},
		{protocol.ChangesUpdate("w", "a:1", "a:1", nil), protocol.Delivery{Type: "changes", PreviousCursor: "a:1", Cursor: "a:1"}},
		{protocol.SnapshotUpdate("w", "a:1", rawState), protocol.Delivery{Type: "snapshot", Cursor: "a:1", Snapshot: &state}},
	} {
		want, err := protocol.Encode(protocol.SubscriptionUpdate{ID: "w", Delivery: c.want})
		if err != nil || string(want) != string(c.got) {
			t.Errorf("%s, want %s %v", c.got, want, err)
		}
	}
}

type codedError struct{ details any }

func (codedError) Error() string  { return "the space is in use" }
func (codedError) Code() string   { return "space_in_use" }
func (e codedError) Details() any { return e.details }

func TestErrorsOnTheWire(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"coded":       {codedError{}, `{"code":-32000,"message":"the space is in use","data":{"code":"space_in_use"}}`},
		"wrapped":     {fmt.Errorf("open /secret: %w", codedError{map[string]int{"pid": 7}}), `{"code":-32000,"message":"the space is in use","data":{"code":"space_in_use","details":{"pid":7}}}`},
		"own":         {protocol.Errorf(protocol.CodeNotFound, "no session %s", "s"), `{"code":-32000,"message":"no session s","data":{"code":"not_found"}}`},
		"fault":       {fmt.Errorf("x: %w", protocol.NewFault(protocol.NumberVersion, "No common version")), `{"code":-32002,"message":"No common version"}`},
		"plain":       {errors.New("secret"), `{"code":-32603,"message":"Internal error: the backend could not finish this call; its log says why"}`},
		"bad details": {codedError{func() {}}, `{"code":-32603,"message":"Internal error: the backend could not finish this call; its log says why"}`},
	} {
		fault := protocol.FaultOf(c.err)
		raw, err := protocol.Encode(fault)
		if err != nil || string(raw) != c.want {
			t.Errorf("%s: %s, want %s %v", name, raw, c.want, err)
		}
		back := protocol.ErrorOf(fault)
		var domain *protocol.Error
		if errors.As(back, &domain) != (fault.Number == protocol.NumberDomain) {
			t.Errorf("%s comes back as %#v", name, back)
		}
	}
}

func TestWholeNumbersInOtherSpellings(t *testing.T) {
	for spelling, want := range map[string]protocol.Int{"100": 100, "1e2": 100, "1.0": 1, "200": 200, "0.2e3": 200} {
		p, err := protocol.Decode[protocol.HistoryParams]([]byte(`{"spaceId":"p","sessionId":"s","limit":` + spelling + `}`))
		if err != nil || p.Limit != want {
			t.Errorf("%s: %d %v", spelling, p.Limit, err)
		}
	}
}

func TestTimes(t *testing.T) {
	now := time.UnixMilli(1764547200123)
	raw, err := json.Marshal(protocol.MillisOf(now))
	if err != nil || string(raw) != "1764547200123" || !protocol.MillisOf(now).Time().Equal(now) {
		t.Errorf("%s %v", raw, err)
	}
}

func TestIDs(t *testing.T) {
	for id, want := range map[protocol.ID]bool{"": false, "a": true, "A-b_9": true, "a b": false, "ä": false, "a\n": false, protocol.ID(strings.Repeat("x", 128)): true, protocol.ID(strings.Repeat("x", 129)): false} {
		if id.Valid() != want {
			t.Errorf("%q: %v", id, !want)
		}
	}
}

// FuzzDecode reads anything as the largest unions: never a panic, and what is accepted is encoded to something that is accepted.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"id":"w","delivery":{"type":"changes","previousCursor":"a","cursor":"b","changes":[{"type":"lifecycle","lifecycle":"running"}]}}`,
		`{"id":"w","delivery":{"type":"changes","previousCursor":"a","cursor":"b","changes":[{"type":"processing","request":{"requestId":"r","operation":"o","input":{"parts":[{"kind":"text","text":""}]},"createdAt":1,"status":"running","interactions":[]}}]}}`,
		`{"id":"w","delivery":{"type":"snapshot","cursor":"b","snapshot":{"lifecycle":"running","spaces":[],"sessions":[]}}}`,
		`{`, `null`, `[]`, `{"id":"w","delivery":{"type":"changes","type":"snapshot"}}`, `{"delivery":{"changes":[{"request":{},"type":1}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		update, err := protocol.Decode[protocol.SubscriptionUpdate](text)
		if err != nil {
			return
		}
		raw, err := protocol.Encode(update)
		if err != nil {
			t.Fatalf("%s was read but not written: %v", text, err)
		}
		if _, err := protocol.Decode[protocol.SubscriptionUpdate](raw); err != nil {
			t.Fatalf("%s was written as %s: %v", text, raw, err)
		}
	})
}
