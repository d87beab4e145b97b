package google_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/llm/google"
	"github.com/repa-app/repa/testkit/modelserver"
)

type object = map[string]any

func ask(t *testing.T, s *modelserver.Server, base string, req *llm.Request) (*llm.Message, error) {
	t.Helper()
	return google.New(google.Options{BaseURL: base, APIKey: "k", HTTPClient: s.Client()}).Stream(t.Context(), req, nil)
}

func request(model string, messages ...llm.Message) *llm.Request {
	question := llm.Message{Role: llm.RoleUser, Content: []llm.Block{{Type: llm.BlockText, Text: "q"}}}
	return &llm.Request{Model: model, Messages: append([]llm.Message{question}, messages...)}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	s := modelserver.New(t)
	for n, c := range []struct{ suffix, path string }{
		{"", "/v1beta/models/gemini-x:streamGenerateContent"}, {"/", "/v1beta/models/gemini-x:streamGenerateContent"},
		{"/v1beta", "/v1beta/models/gemini-x:streamGenerateContent"}, {"/v1/", "/v1/models/gemini-x:streamGenerateContent"},
		{"/proxy/v1beta", "/proxy/v1beta/models/gemini-x:streamGenerateContent"},
	} {
		if _, err := ask(t, s, s.GeminiURL()+c.suffix, request("gemini-x")); err != nil {
			t.Fatal(err)
		}
		if sent := s.Requests()[n]; sent.Path != c.path || sent.Query != "alt=sse" || sent.Model != "gemini-x" {
			t.Errorf("%q: sent to %s?%s", c.suffix, sent.Path, sent.Query)
		}
	}
}

func TestThinkingLevels(t *testing.T) {
	t.Parallel()
	s := modelserver.New(t)
	for n, c := range []struct{ model, level, want string }{
		{"gemini-2.5-flash", "", "<nil>"},
		{"gemini-2.5-flash", "off", "map[thinkingBudget:0]"},
		{"gemini-2.5-pro", "off", "map[thinkingBudget:128]"},
		{"gemini-2.5-pro", "minimal", "map[includeThoughts:true thinkingBudget:1024]"},
		{"gemini-2.5-flash", "max", "map[includeThoughts:true thinkingBudget:16384]"},
		{"gemini-3-pro-preview", "off", "map[thinkingLevel:LOW]"},
		{"gemini-3-pro-preview", "medium", "map[includeThoughts:true thinkingLevel:HIGH]"},
		{"gemini-3-flash", "minimal", "map[includeThoughts:true thinkingLevel:MINIMAL]"},
		{"gemini-3-flash", "low", "map[includeThoughts:true thinkingLevel:LOW]"},
		{"gemini-3-flash", "medium", "map[includeThoughts:true thinkingLevel:MEDIUM]"},
		{"gemini-3-flash", "xhigh", "map[includeThoughts:true thinkingLevel:HIGH]"},
		{"gemma-4", "low", "map[includeThoughts:true thinkingBudget:2048]"},
	} {
		req := request(c.model)
		req.Thinking = c.level
		if _, err := ask(t, s, s.GeminiURL(), req); err != nil {
			t.Fatal(err)
		}
		config, _ := s.Requests()[n].JSON["generationConfig"].(object)
		if got := fmt.Sprint(config["thinkingConfig"]); got != c.want {
			t.Errorf("%s %q sends %s, want %s", c.model, c.level, got, c.want)
		}
	}
}

func TestForeignCallsAreSignedForGemini3(t *testing.T) {
	t.Parallel()
	s := modelserver.New(t)
	call := llm.Message{Role: llm.RoleAssistant, Model: "other", Content: []llm.Block{
		{Type: llm.BlockToolCall, ID: "a|1", Name: "f", ThoughtSignature: "c2ln"}, {Type: llm.BlockToolCall, ID: "b", Name: "f"}}}
	for _, model := range []string{"gemini-3-flash", "gemini-2.5-flash"} {
		if _, err := ask(t, s, s.GeminiURL(), request(model, call)); err != nil {
			t.Fatal(err)
		}
	}
	parts := func(n int) []any { return s.Requests()[n].JSON["contents"].([]any)[1].(object)["parts"].([]any) }
	want := []any{
		object{"functionCall": object{"id": "a_1", "name": "f"}, "thoughtSignature": "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="},
		object{"functionCall": object{"id": "b", "name": "f"}},
	}
	if diff := cmp.Diff(want, parts(0)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, ok := parts(1)[0].(object)["thoughtSignature"]; ok {
		t.Error("Gemini 2.5 gets a stand-in signature")
	}
}

func TestSignatureOfText(t *testing.T) {
	t.Parallel()
	s := modelserver.New(t, modelserver.Turn{Garbage: []byte(
		`data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}]}` + "\n\n" +
			`data: {"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"c2ln"}]},"finishReason":"STOP"}]}` + "\n\n")})
	req := request("gemini-x")
	m, err := ask(t, s, s.GeminiURL(), req)
	if err != nil || len(m.Content) != 1 || m.Content[0].TextSignature != "c2ln" || m.Text() != "a" {
		t.Fatalf("%+v, %v", m, err)
	}
	req.Messages = append(req.Messages, *m)
	if _, err := ask(t, s, s.GeminiURL(), req); err != nil {
		t.Fatal(err)
	}
	if sent := string(s.Requests()[1].Body); !strings.Contains(sent, `"thoughtSignature":"c2ln"`) {
		t.Errorf("sent %s", sent)
	}
}

func TestBlockedPrompt(t *testing.T) {
	t.Parallel()
	s := modelserver.New(t, modelserver.Turn{Garbage: []byte(`data: {"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4}}` + "\n\n")})
	m, err := ask(t, s, s.GeminiURL(), request("gemini-x"))
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.KindRefused || !strings.Contains(err.Error(), "SAFETY") || m.Usage.Input != 4 {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestRetryInfo(t *testing.T) {
	t.Parallel()
	s := modelserver.New(t, modelserver.Turn{Status: 429, ErrorBody: `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED",
		"message":"You exceeded your current quota. Please retry in 31.5s.","details":[{"@type":"x"},{"retryDelay":"31.5s"}]}}`})
	_, err := ask(t, s, s.GeminiURL(), request("gemini-x"))
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.KindRateLimited || e.RetryAfter.Seconds() != 31.5 {
		t.Errorf("%+v", e)
	}
}
