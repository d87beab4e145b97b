package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/llm/openai"
	"github.com/repa-app/repa/testkit/modelserver"
)

func ask(t *testing.T, s *modelserver.Server, name string, req *llm.Request) *llm.Message {
	t.Helper()
	p := openai.New(openai.Options{BaseURL: s.OpenAIURL(), Provider: name, HTTPClient: s.Client()})
	m, err := p.Stream(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func question() *llm.Request {
	return &llm.Request{Model: "m", Messages: []llm.Message{{Role: llm.RoleUser, Content: []llm.Block{{Type: llm.BlockText, Text: "q"}}}}}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	s := modelserver.New(t)
	req := question()
	req.System, req.MaxTokens, req.SessionID = "sys", 99, "session"
	ask(t, s, "ollama", req)
	sent := s.Requests()[0]
	want := map[string]any{
		"model": "m", "stream": true, "stream_options": map[string]any{"include_usage": true}, "max_tokens": 99.0,
		"messages": []any{map[string]any{"role": "system", "content": "sys"}, map[string]any{"role": "user", "content": "q"}},
	}
	if diff := cmp.Diff(want, sent.JSON); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, ok := sent.Header["Authorization"]; ok || sent.Path != "/v1/chat/completions" {
		t.Errorf("sent to %s with %v", sent.Path, sent.Header)
	}
}

func TestThinkingLevels(t *testing.T) {
	t.Parallel()
	s := modelserver.New(t)
	n := 0
	for name, levels := range map[string]map[string]any{
		"openai":   {"": nil, "off": "none", "minimal": "minimal", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"},
		"ollama":   {"": nil, "off": "none", "minimal": "low", "max": "high"},
		"deepseek": {"off": nil, "minimal": "low", "medium": "medium", "xhigh": "high"},
	} {
		for level, want := range levels {
			req := question()
			req.Thinking = level
			m := ask(t, s, name, req)
			if got := s.Requests()[n].JSON["reasoning_effort"]; got != want || m.ThinkingLevel != level {
				t.Errorf("%s %q sends %v, want %v; message says %q", name, level, got, want, m.ThinkingLevel)
			}
			n++
		}
	}
}

func raw(events ...string) modelserver.Turn {
	return modelserver.Turn{Garbage: []byte("data: " + strings.Join(events, "\n\ndata: ") + "\n\ndata: [DONE]\n\n")}
}

func TestReasoningFields(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"reasoning_content", "reasoning", "reasoning_text"} {
		s := modelserver.New(t, raw(
			`{"choices":[{"delta":{"`+field+`":"let me "}}]}`, `{"choices":[{"delta":{"`+field+`":"think","content":null}}]}`,
			`{"choices":[{"delta":{"content":"yes","`+field+`":null},"finish_reason":"stop"}]}`))
		req := question()
		m := ask(t, s, "local", req)
		if len(m.Content) != 2 || m.Content[0].Thinking != "let me think" || m.Content[0].ThinkingSignature != field || m.Text() != "yes" {
			t.Fatalf("content %+v", m.Content)
		}
		req.Messages = append(req.Messages, *m)
		ask(t, s, "local", req)
		sent := s.Requests()[1].JSON["messages"].([]any)[1].(map[string]any)
		if sent[field] != "let me think" || sent["content"] != "yes" {
			t.Errorf("sent back: %v", sent)
		}
	}
}

func TestToolCallShapes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events []string
		want   []string // name and arguments
	}{
		"interleaved": {[]string{
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}},{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"}"}},{"index":0,"function":{"arguments":":1}"}}]}}]}`,
		}, []string{`f {"x":1}`, `g {}`}},
		"index 0 for all": {[]string{
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"f","arguments":"{\"y\":2}"}}]}}]}`,
		}, []string{`f {}`, `f {"y":2}`}},
		"id in every piece": {[]string{
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"3}"}}]}}]}`,
		}, []string{`f {"x":3}`}},
		"no arguments": {[]string{`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]}}]}`}, []string{`f {}`}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, reason := range []string{"tool_calls", "stop"} { // some servers say stop
				m := ask(t, modelserver.New(t, raw(append(c.events, `{"choices":[{"delta":{},"finish_reason":"`+reason+`"}]}`)...)), "local", question())
				var got []string
				for _, call := range m.ToolCalls() {
					got = append(got, call.Name+" "+string(call.Arguments))
				}
				if diff := cmp.Diff(c.want, got); diff != "" || m.StopReason != llm.StopToolUse {
					t.Errorf("stop reason %s; calls -want +got:\n%s", m.StopReason, diff)
				}
			}
		})
	}
}

func TestUsageOfDeepSeek(t *testing.T) {
	t.Parallel()
	s := modelserver.New(t, raw(`{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_cache_hit_tokens":6}}`))
	if got, want := *ask(t, s, "deepseek", question()).Usage, (llm.Usage{Input: 4, Output: 2, CacheRead: 6, TotalTokens: 12}); got != want {
		t.Errorf("usage %+v, want %+v", got, want)
	}
}

func TestOfficialFields(t *testing.T) {
	t.Parallel()
	// Only OpenAI's own host gets the fields that others may refuse. It is not called: the transport answers.
	s := modelserver.New(t)
	req := question()
	req.MaxTokens, req.SessionID = 50, strings.Repeat("s", 80)
	p := openai.New(openai.Options{APIKey: "k", HTTPClient: clientTo(s)})
	if _, err := p.Stream(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	var sent struct {
		MaxCompletionTokens int    `json:"max_completion_tokens"`
		MaxTokens           int    `json:"max_tokens"`
		PromptCacheKey      string `json:"prompt_cache_key"`
	}
	if err := json.Unmarshal(s.Requests()[0].Body, &sent); err != nil || sent.MaxCompletionTokens != 50 || sent.MaxTokens != 0 || len(sent.PromptCacheKey) != 64 {
		t.Errorf("sent %+v, %v", sent, err)
	}
}
