package llm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/repa-app/repa/agent/llm"
)

var here = llm.Target{Provider: "p", API: "a", Model: "m", CallID: llm.CallID}

func assistant(model string, stop llm.StopReason, blocks ...llm.Block) llm.Message {
	return llm.Message{Role: llm.RoleAssistant, Provider: "p", API: "a", Model: model, StopReason: stop, Content: blocks}
}

func call(id string) llm.Block {
	return llm.Block{Type: llm.BlockToolCall, ID: id, Name: "f", Arguments: json.RawMessage(`{}`), ThoughtSignature: "ts"}
}

// outline is a history in one line: roles, ids and texts.
func outline(messages []llm.Message) string {
	var out []string
	for i := range messages {
		m := &messages[i]
		s := string(m.Role)
		if m.Role == llm.RoleToolResult {
			s = "result " + m.ToolCallID
			if m.Failed() {
				s += " failed"
			}
		}
		for _, b := range m.Content {
			switch b.Type {
			case llm.BlockToolCall:
				s += " call(" + b.ID + b.ThoughtSignature + ")"
			case llm.BlockThinking:
				s += " think(" + b.Thinking + ")"
			case llm.BlockText:
				s += " " + b.Text + b.TextSignature
			case llm.BlockImage:
				s += " image"
			}
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

func TestHandoff(t *testing.T) {
	t.Parallel()
	text := llm.Block{Type: llm.BlockText, Text: "hi", TextSignature: "sig"}
	signed := llm.Block{Type: llm.BlockThinking, Thinking: "hm", ThinkingSignature: "s"}
	redacted := llm.Block{Type: llm.BlockThinking, Redacted: true, ThinkingSignature: "data"}
	emptySigned := llm.Block{Type: llm.BlockThinking, ThinkingSignature: "s"}
	empty := llm.Block{Type: llm.BlockThinking, Thinking: " "}
	image := llm.Block{Type: llm.BlockImage, Data: "x"}
	pictures := llm.Message{Role: llm.RoleUser, Content: []llm.Block{image, image, {Type: llm.BlockText, Text: "and"}, image}}
	shot := result("1", "f", "r", false)
	shot.Content = []llm.Block{image}
	blind := here
	blind.NoImages = true
	for name, c := range map[string]struct {
		target llm.Target
		in     []llm.Message
		want   string
	}{
		"same model keeps signatures": {here, []llm.Message{user("q"), assistant("m", llm.StopEnd, signed, redacted, emptySigned, empty, text)},
			"user q; assistant think(hm) think() think() hisig"},
		"other model loses them": {here, []llm.Message{user("q"), assistant("x", llm.StopToolUse, signed, redacted, text, call("a|b")), result("a|b", "f", "r", false)},
			"user q; assistant hi call(a_b); result a_b r"},
		"only thinking is nothing to another model": {here, []llm.Message{user("q"), assistant("x", llm.StopEnd, signed), user("r")}, "user q; user r"},
		"failed and aborted are left out": {here, []llm.Message{user("q"), assistant("m", llm.StopError, text), assistant("m", llm.StopAborted, call("1")), user("again")},
			"user q; user again"},
		"a result of a dropped call is dropped": {here, []llm.Message{user("q"), assistant("m", llm.StopAborted, call("1")), result("1", "f", "r", false), user("u")},
			"user q; user u"},
		"missing results": {here, []llm.Message{user("q"), assistant("m", llm.StopToolUse, call("1"), call("2")), result("2", "f", "r", false), user("u")},
			"user q; assistant call(1ts) call(2ts); result 2 r; result 1 failed No result provided; user u"},
		"missing at the end": {here, []llm.Message{assistant("m", llm.StopToolUse, call("1"))},
			"assistant call(1ts); result 1 failed No result provided"},
		"a late result moves to its call": {here, []llm.Message{assistant("m", llm.StopToolUse, call("1")), user("steer"), result("1", "f", "r", false)},
			"assistant call(1ts); result 1 r; user steer"},
		"a second result is dropped": {here, []llm.Message{assistant("m", llm.StopToolUse, call("1")), result("1", "f", "r", false), result("1", "f", "s", false)},
			"assistant call(1ts); result 1 r"},
		"ids that become equal stay apart": {here, []llm.Message{assistant("x", llm.StopToolUse, call("a.b"), call("a/b")), result("a.b", "f", "1", false), result("a/b", "f", "2", false)},
			"assistant call(a_b) call(" + second + "); result a_b 1; result " + second + " 2"},
		"images": {here, []llm.Message{pictures, assistant("m", llm.StopToolUse, call("1")), shot}, "user image image and image; assistant call(1ts); result 1 image"},
		"no images": {blind, []llm.Message{pictures, assistant("m", llm.StopToolUse, call("1")), shot},
			"user (image omitted: model does not support images) and (image omitted: model does not support images); assistant call(1ts); result 1 (tool image omitted: model does not support images)"},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := json.Marshal(c.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, outline(llm.Handoff(c.in, c.target))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if after, err := json.Marshal(c.in); err != nil || string(after) != string(before) {
				t.Error("the input was changed")
			}
		})
	}
}

// second is what CallID's result becomes for an id that collides with an earlier one: a hash of the id is added.
const second = "a_b_c14cddc0"

// TestHandoffIsWellFormed holds for any history: each call is followed by exactly its results, and no result stands elsewhere.
func TestHandoffIsWellFormed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SampledFrom([]string{"1", "2", "a|b", "a.b", strings.Repeat("x", 90), ""})
		message := rapid.Custom(func(t *rapid.T) llm.Message {
			switch rapid.IntRange(0, 2).Draw(t, "role") {
			case 0:
				return user("u")
			case 1:
				return result(ids.Draw(t, "id"), "f", "r", rapid.Bool().Draw(t, "failed"))
			}
			m := assistant(rapid.SampledFrom([]string{"m", "x"}).Draw(t, "model"), rapid.SampledFrom([]llm.StopReason{
				llm.StopToolUse, llm.StopEnd, llm.StopError, llm.StopAborted}).Draw(t, "stop"))
			for _, id := range rapid.SliceOfNDistinct(ids, 0, 3, rapid.ID[string]).Draw(t, "calls") {
				m.Content = append(m.Content, call(id))
			}
			return m
		})
		out := llm.Handoff(rapid.SliceOfN(message, 0, 12).Draw(t, "history"), here)
		pending := map[string]bool{}
		for i := range out {
			m := &out[i]
			if m.Role == llm.RoleToolResult {
				if !pending[m.ToolCallID] {
					t.Fatalf("result %q has no open call: %s", m.ToolCallID, outline(out))
				}
				delete(pending, m.ToolCallID)
				continue
			}
			if len(pending) > 0 {
				t.Fatalf("calls %v have no result: %s", pending, outline(out))
			}
			for _, c := range m.ToolCalls() {
				pending[c.ID] = true
				if m.Model == "x" && len(c.ID) > 64 {
					t.Fatalf("id %q is too long", c.ID)
				}
			}
		}
		if len(pending) > 0 {
			t.Fatalf("calls %v have no result at the end", pending)
		}
	})
}

func TestCallIDs(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 70)
	for _, c := range []struct{ name, got, want string }{
		{"kept", llm.CallID("toolu_01-A"), "toolu_01-A"},
		{"characters", llm.CallID("a|b c:ü"), "a_b_c__"},
		{"length", llm.CallID(long), long[:64]},
		{"openai joined", llm.OpenAICallID("groq")("call_1|fc_2"), "call_1_fc_2"},
		{"openai cut", llm.OpenAICallID("openai")(long), long[:40]},
		{"compatible", llm.OpenAICallID("groq")(long), long[:64]},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.name, c.got, c.want)
		}
	}
	one, two := llm.OpenAICallID("groq")("call_1|"+long), llm.OpenAICallID("groq")("call_1|x"+long)
	if one == two || len(one) > 40 || !strings.HasPrefix(one, "call_1_") {
		t.Errorf("long joined ids %q and %q", one, two)
	}
}
