package llm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/testkit/modelserver"
)

func TestTextWithUsage(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, f family) {
		server := modelserver.New(t, modelserver.Turn{
			Chunks: []string{"光合作用", "把光", "变成糖。", " Done <b>&."},
			Usage:  modelserver.Usage{Input: 10, Output: 7, CacheRead: 4, Reasoning: 2},
		})
		req := f.request(user("什么是光合作用？"))
		req.System, req.MaxTokens, req.Thinking = "你是老师。", 500, ""
		m, err := ask(t, f.connect(t, f.base(server)), req)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := m.Text(), "光合作用把光变成糖。 Done <b>&."; got != want {
			t.Errorf("text %q, want %q", got, want)
		}
		if m.StopReason != llm.StopEnd || m.API != f.api || m.Provider != f.name || m.Model != f.model ||
			m.ResponseModel != "scripted-model" || m.ResponseID != "resp-1" || m.Timestamp == 0 {
			t.Errorf("message: %+v", m)
		}
		want := llm.Usage{Input: 10, Output: 7, CacheRead: 4, Reasoning: 2, TotalTokens: 21}
		if *m.Usage != want {
			t.Errorf("usage %+v, want %+v", *m.Usage, want)
		}
		sent := server.Requests()[0]
		if sent.Path != f.path || sent.Model != f.model || f.key(sent.Header) != canary {
			t.Errorf("sent to %s for %s with key %q", sent.Path, sent.Model, f.key(sent.Header))
		}
		for _, part := range []string{"什么是光合作用？", "你是老师。", "500"} {
			if !strings.Contains(string(sent.Body), part) {
				t.Errorf("%q is not in the request %s", part, sent.Body)
			}
		}
	})
}

func TestThinking(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, f family) {
		server := modelserver.New(t, modelserver.Turn{Thinking: "先想一想", Signature: "c2ln", Chunks: []string{"answer"}})
		p := f.connect(t, f.base(server))
		m, err := ask(t, p, f.request(user("q")))
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Content) != 2 || m.Content[0].Type != llm.BlockThinking || m.Content[0].Thinking != "先想一想" || m.Text() != "answer" {
			t.Fatalf("content %+v", m.Content)
		}
		signature := m.Content[0].ThinkingSignature
		if signature == "" {
			t.Fatal("the thinking has no signature")
		}
		if _, err := ask(t, p, f.request(user("q"), *m, user("again"))); err != nil {
			t.Fatal(err)
		}
		body := string(server.Requests()[1].Body)
		for _, part := range []string{"先想一想", signature} {
			if !strings.Contains(body, part) {
				t.Errorf("%q is not sent back: %s", part, body)
			}
		}
		other := *m
		other.Model = "another"
		if _, err := ask(t, p, f.request(user("q"), other, user("again"))); err != nil {
			t.Fatal(err)
		}
		if body := string(server.Requests()[2].Body); strings.Contains(body, "先想一想") || !strings.Contains(body, "answer") {
			t.Errorf("another model's thinking is sent: %s", body)
		}
	})
}

// at walks through decoded JSON; a missing step fails the test.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok || m[s] == nil {
				t.Fatalf("no %q in %v", s, v)
			}
			v = m[s]
		case int:
			l, ok := v.([]any)
			if !ok || len(l) <= s {
				t.Fatalf("no element %d in %v", s, v)
			}
			v = l[s]
		}
	}
	return v
}

func wantJSON(t *testing.T, got any, want string) {
	t.Helper()
	var decoded any
	if err := json.Unmarshal([]byte(want), &decoded); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decoded, got); diff != "" {
		t.Errorf("sent JSON (-want +got):\n%s", diff)
	}
}

var weather = llm.ToolSpec{
	Name: "weather", Description: "Tells the weather.",
	Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
}

func TestToolCallAndResult(t *testing.T) {
	t.Parallel()
	// What the second request must hold behind the question, in each format.
	wants := map[string]string{
		"openai": `[
			{"role":"assistant","content":"Let me look.","tool_calls":[
				{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"北京\"}"}},
				{"id":"c2","type":"function","function":{"name":"weather","arguments":"{\"city\":\"上海\"}"}}]},
			{"role":"tool","tool_call_id":"c1","content":"sunny"},
			{"role":"tool","tool_call_id":"c2","content":"Error: no such city"}]`,
		"anthropic": `[
			{"role":"assistant","content":[
				{"type":"text","text":"Let me look."},
				{"type":"tool_use","id":"c1","name":"weather","input":{"city":"北京"}},
				{"type":"tool_use","id":"c2","name":"weather","input":{"city":"上海"}}]},
			{"role":"user","content":[
				{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"sunny"}]},
				{"type":"tool_result","tool_use_id":"c2","is_error":true,"content":[{"type":"text","text":"no such city"}],
				 "cache_control":{"type":"ephemeral"}}]}]`,
		"google": `[
			{"role":"model","parts":[
				{"text":"Let me look."},
				{"functionCall":{"id":"c1","name":"weather","args":{"city":"北京"}},"thoughtSignature":"c2ln"},
				{"functionCall":{"id":"c2","name":"weather","args":{"city":"上海"}}}]},
			{"role":"user","parts":[
				{"functionResponse":{"id":"c1","name":"weather","response":{"output":"sunny"}}},
				{"functionResponse":{"id":"c2","name":"weather","response":{"error":"no such city"}}}]}]`,
	}
	eachFamily(t, func(t *testing.T, f family) {
		server := modelserver.New(t,
			modelserver.Turn{Chunks: []string{"Let me ", "look."}, Signature: "c2ln", ToolCalls: []modelserver.ToolCall{
				{ID: "c1", Name: "weather", Args: `{"city":"北京"}`}, {ID: "c2", Name: "weather", Args: `{"city":"上海"}`},
			}})
		p := f.connect(t, f.base(server))
		req := f.request(user("weather?"))
		req.Tools = []llm.ToolSpec{weather}
		m, err := ask(t, p, req)
		if err != nil {
			t.Fatal(err)
		}
		calls := m.ToolCalls()
		if m.StopReason != llm.StopToolUse || len(calls) != 2 || calls[0].ID != "c1" || string(calls[0].Arguments) != `{"city":"北京"}` || calls[1].Name != "weather" {
			t.Fatalf("message %+v", m)
		}
		req.Messages = append(req.Messages, *m, result("c1", "weather", "sunny", false), result("c2", "weather", "no such city", true))
		if m, err := ask(t, p, req); err != nil || m.Text() != "ok" {
			t.Fatalf("%+v, %v", m, err)
		}
		sent := server.Requests()[1].JSON
		list := "messages"
		if f.format == modelserver.Gemini {
			list = "contents"
		}
		wantJSON(t, at(t, sent, list).([]any)[1:], wants[f.name])

		schema := map[string][]any{
			"openai":    {"tools", 0, "function", "parameters"},
			"anthropic": {"tools", 0, "input_schema"},
			"google":    {"tools", 0, "functionDeclarations", 0, "parametersJsonSchema"},
		}[f.name]
		wantJSON(t, at(t, sent, schema...), string(weather.Parameters))
	})
}

func TestMissingAndMalformedArguments(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, f family) {
		server := modelserver.New(t,
			modelserver.Calls(modelserver.ToolCall{ID: "-", Name: "now", Args: "{}"}, modelserver.ToolCall{ID: "-", Name: "now", Args: `{}`}),
			modelserver.Calls(modelserver.ToolCall{ID: "c1", Name: "weather", Args: `{"city": "北`}))
		p := f.connect(t, f.base(server))
		m, err := ask(t, p, f.request(user("q")))
		if err != nil {
			t.Fatal(err)
		}
		calls := m.ToolCalls()
		if len(calls) != 2 || string(calls[0].Arguments) != "{}" {
			t.Fatalf("calls %+v", calls)
		}
		if f.name != "anthropic" && (calls[0].ID == "" || calls[0].ID == calls[1].ID) { // Anthropic always sends ids
			t.Errorf("calls without ids of the server got %q and %q", calls[0].ID, calls[1].ID)
		}
		m, err = ask(t, p, f.request(user("q")))
		if f.format == modelserver.Gemini {
			if m.StopReason != llm.StopError || m.RawStopReason != "MALFORMED_FUNCTION_CALL" {
				t.Errorf("message %+v, error %v", m, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if c := m.ToolCalls()[0]; !strings.Contains(c.ArgumentsError, "no JSON object") || string(c.Arguments) != "{}" {
			t.Errorf("call %+v", c)
		}
	})
}

func TestStopReasons(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, f family) {
		for _, c := range []struct {
			sent string
			want llm.StopReason
		}{{"stop", llm.StopEnd}, {"length", llm.StopLength}, {"toolUse", llm.StopEnd}, {"moon_phase", llm.StopError}} {
			server := modelserver.New(t, modelserver.Turn{Chunks: []string{"text"}, StopReason: c.sent})
			m, err := ask(t, f.connect(t, f.base(server)), f.request(user("q")))
			if m.StopReason != c.want || m.Text() != "text" || m.RawStopReason == "" {
				t.Errorf("%s: message %+v", c.sent, m)
			}
			if c.want == llm.StopError && (m.RawStopReason != "moon_phase" || !strings.Contains(err.Error(), "moon_phase")) {
				t.Errorf("unknown stop reason: %v", err)
			}
		}
	})
}

func TestImages(t *testing.T) {
	t.Parallel()
	const pixel = "iVBORw0KGgo="
	picture := llm.Block{Type: llm.BlockImage, MimeType: "image/png", Data: pixel}
	paths := map[string][]any{
		"openai":    {"messages", 0, "content", 1, "image_url", "url"},
		"anthropic": {"messages", 0, "content", 1, "source", "data"},
		"google":    {"contents", 0, "parts", 1, "inlineData", "data"},
	}
	eachFamily(t, func(t *testing.T, f family) {
		server := modelserver.New(t)
		p := f.connect(t, f.base(server))
		question := user("what is this?")
		question.Content = append(question.Content, picture)
		shot := result("c1", "shot", "", false)
		shot.Content = []llm.Block{picture}
		call := f.own(llm.StopToolUse, llm.Block{Type: llm.BlockToolCall, ID: "c1", Name: "shot"})
		req := f.request(question, call, shot)
		if _, err := ask(t, p, req); err != nil {
			t.Fatal(err)
		}
		sent := server.Requests()[0]
		if got := at(t, sent.JSON, paths[f.name]...).(string); !strings.HasSuffix(got, pixel) {
			t.Errorf("image sent as %q", got)
		}
		if n := strings.Count(string(sent.Body), pixel); n != 2 {
			t.Errorf("%d images sent, want the user's and the tool's: %s", n, sent.Body)
		}
		req.NoImages = true
		if _, err := ask(t, p, req); err != nil {
			t.Fatal(err)
		}
		body := string(server.Requests()[1].Body)
		if strings.Contains(body, pixel) || strings.Count(body, "image omitted: model does not support images") != 2 {
			t.Errorf("to a model without images: %s", body)
		}
	})
}

func TestNothingFromTheEnvironment(t *testing.T) {
	for _, name := range []string{
		"OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN",
		"GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION",
	} {
		t.Setenv(name, "env-canary")
	}
	for _, name := range []string{"OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"} {
		t.Setenv(name, "http://127.0.0.1:9/env-canary")
	}
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Leak: env-canary")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Leak: env-canary")
	t.Setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
	for _, f := range families {
		server := modelserver.New(t)
		if _, err := ask(t, f.provider(f.base(server), "", server.Client()), f.request(user("q"))); err != nil {
			t.Fatalf("%s without a key: %v", f.name, err)
		}
		sent := server.Requests()[0]
		for name, values := range sent.Header {
			if strings.Contains(strings.Join(values, " "), "env-canary") {
				t.Errorf("%s sends the environment in %s", f.name, name)
			}
		}
		if key := f.key(sent.Header); key != "" {
			t.Errorf("%s sends the key %q though there is none", f.name, key)
		}
	}
}
