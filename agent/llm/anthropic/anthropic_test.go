package anthropic_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/llm/anthropic"
	"github.com/repa-app/repa/testkit/modelserver"
)

type object = map[string]any

var mark = object{"type": "ephemeral"}

func ask(t *testing.T, s *modelserver.Server, req *llm.Request) *llm.Message {
	t.Helper()
	p := anthropic.New(anthropic.Options{BaseURL: s.AnthropicURL() + "/v1/", APIKey: "k", HTTPClient: s.Client()})
	m, err := p.Stream(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func text(role llm.Role, s string) llm.Message {
	return llm.Message{Role: role, Content: []llm.Block{{Type: llm.BlockText, Text: s}}}
}

func request(messages ...llm.Message) *llm.Request {
	return &llm.Request{Model: "claude-haiku-4-5-20251001", Messages: messages}
}

func TestCacheMarks(t *testing.T) {
	t.Parallel()
	s := modelserver.New(t)
	req := request(text(llm.RoleUser, "one"), text(llm.RoleAssistant, "two"), text(llm.RoleUser, "three"))
	req.System = "sys"
	req.Tools = []llm.ToolSpec{{Name: "a", Parameters: []byte(`{"type":"object"}`)}, {Name: "b", Parameters: []byte(`{"type":"object"}`)}}
	ask(t, s, req)
	sent := s.Requests()[0].JSON
	want := object{
		"model": req.Model, "max_tokens": 16384.0, "stream": true,
		"system": []any{object{"type": "text", "text": "sys", "cache_control": mark}},
		"tools": []any{
			object{"name": "a", "input_schema": object{"type": "object"}},
			object{"name": "b", "input_schema": object{"type": "object"}, "cache_control": mark},
		},
		"messages": []any{
			object{"role": "user", "content": []any{object{"type": "text", "text": "one"}}},
			object{"role": "assistant", "content": []any{object{"type": "text", "text": "two"}}},
			object{"role": "user", "content": []any{object{"type": "text", "text": "three", "cache_control": mark}}},
		},
	}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestThinkingLevels(t *testing.T) {
	t.Parallel()
	s := modelserver.New(t)
	for n, c := range []struct {
		model, level string
		limit        int
		want         string
	}{
		{"claude-haiku-4-5-20251001", "", 0, "<nil> <nil> 16384"},
		{"claude-haiku-4-5-20251001", "off", 0, "map[type:disabled] <nil> 16384"},
		{"claude-haiku-4-5-20251001", "minimal", 0, "map[budget_tokens:1024 type:enabled] <nil> 17408"},
		{"claude-haiku-4-5-20251001", "medium", 0, "map[budget_tokens:8192 type:enabled] <nil> 24576"},
		{"claude-haiku-4-5-20251001", "max", 0, "map[budget_tokens:16384 type:enabled] <nil> 32768"},
		{"claude-sonnet-4-5", "high", 4096, "map[budget_tokens:3072 type:enabled] <nil> 4096"},
		{"claude-sonnet-4-5", "high", 1500, "<nil> <nil> 1500"},
		{"kimi-k2", "low", 0, "map[budget_tokens:2048 type:enabled] <nil> 18432"},
		{"claude-opus-4-6", "minimal", 0, "map[display:summarized type:adaptive] map[effort:low] 16384"},
		{"claude-opus-4-6", "xhigh", 0, "map[display:summarized type:adaptive] map[effort:high] 16384"},
		{"claude-opus-4-7", "xhigh", 0, "map[display:summarized type:adaptive] map[effort:xhigh] 16384"},
		{"claude-sonnet-5", "max", 0, "map[display:summarized type:adaptive] map[effort:max] 16384"},
		{"claude-haiku-5-5", "off", 0, "map[type:disabled] <nil> 16384"},
		{"claude-mythos-5", "off", 0, "<nil> <nil> 16384"},
		{"claude-mythos-preview", "high", 0, "map[display:summarized type:adaptive] map[effort:high] 16384"},
		{"claude-", "high", 0, "map[budget_tokens:16384 type:enabled] <nil> 32768"},
	} {
		req := request(text(llm.RoleUser, "q"))
		req.Model, req.Thinking, req.MaxTokens = c.model, c.level, c.limit
		ask(t, s, req)
		sent := s.Requests()[n].JSON
		if got := fmt.Sprint(sent["thinking"], sent["output_config"], sent["max_tokens"]); got != c.want {
			t.Errorf("%s %q %d sends %s, want %s", c.model, c.level, c.limit, got, c.want)
		}
	}
}

func TestRedactedThinkingIsReplayed(t *testing.T) {
	t.Parallel()
	s := modelserver.New(t, modelserver.Turn{Thinking: "hm", Signature: "sig", Redacted: "ZW5j", Chunks: []string{"a"}})
	req := request(text(llm.RoleUser, "q"))
	m := ask(t, s, req)
	if len(m.Content) != 3 || !m.Content[1].Redacted || m.Content[1].ThinkingSignature != "ZW5j" || m.Content[0].ThinkingSignature != "sig" {
		t.Fatalf("content %+v", m.Content)
	}
	unsigned := *m
	unsigned.Content = append([]llm.Block{{Type: llm.BlockThinking, Thinking: "unsigned"}}, m.Content...)
	req.Messages = append(req.Messages, unsigned, text(llm.RoleUser, " \n"), text(llm.RoleUser, "go on"))
	ask(t, s, req)
	want := []any{
		object{"role": "user", "content": []any{object{"type": "text", "text": "q"}}},
		object{"role": "assistant", "content": []any{
			object{"type": "thinking", "thinking": "hm", "signature": "sig"}, object{"type": "redacted_thinking", "data": "ZW5j"},
			object{"type": "text", "text": "a"},
		}},
		object{"role": "user", "content": []any{object{"type": "text", "text": "go on", "cache_control": mark}}},
	}
	if diff := cmp.Diff(want, s.Requests()[1].JSON["messages"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestImagesOfFailedCallsFollow(t *testing.T) {
	t.Parallel()
	s := modelserver.New(t)
	failed := true
	call := llm.Message{Role: llm.RoleAssistant, Content: []llm.Block{{Type: llm.BlockToolCall, ID: "c1", Name: "shot"}}}
	shot := llm.Message{Role: llm.RoleToolResult, ToolCallID: "c1", IsError: &failed, Content: []llm.Block{
		{Type: llm.BlockText, Text: "broken"}, {Type: llm.BlockImage, MimeType: "image/png", Data: "eA=="}}}
	ask(t, s, request(text(llm.RoleUser, "q"), call, shot))
	sent := s.Requests()[0].JSON["messages"].([]any)[2].(object)["content"]
	want := []any{
		object{"type": "tool_result", "tool_use_id": "c1", "is_error": true, "content": []any{object{"type": "text", "text": "broken"}}},
		object{"type": "text", "text": "Image of the failed tool call c1:"},
		object{"type": "image", "cache_control": mark, "source": object{"type": "base64", "media_type": "image/png", "data": "eA=="}},
	}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCacheUsage(t *testing.T) {
	t.Parallel()
	s := modelserver.New(t, modelserver.Turn{Usage: modelserver.Usage{Input: 5, Output: 6, CacheRead: 7, CacheWrite: 8}})
	if got, want := *ask(t, s, request(text(llm.RoleUser, "q"))).Usage, (llm.Usage{Input: 5, Output: 6, CacheRead: 7, CacheWrite: 8, TotalTokens: 26}); got != want {
		t.Errorf("usage %+v, want %+v", got, want)
	}
}
