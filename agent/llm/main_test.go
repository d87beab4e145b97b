package llm_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/llm/anthropic"
	"github.com/repa-app/repa/agent/llm/google"
	"github.com/repa-app/repa/agent/llm/openai"
	"github.com/repa-app/repa/testkit/modelserver"
)

// The Google SDK imports OpenCensus, which starts one goroutine for the life of the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// family is one wire format under test. All pass the same suite.
type family struct {
	name     string
	api      string
	format   modelserver.Format
	model    string
	path     string
	provider func(base, key string, client *http.Client) llm.Provider
	base     func(*modelserver.Server) string
	key      func(http.Header) string
}

var families = []family{
	{
		name: "openai", api: openai.API, format: modelserver.OpenAI, model: "gpt-test", path: "/v1/chat/completions",
		provider: func(base, key string, client *http.Client) llm.Provider {
			return openai.New(openai.Options{BaseURL: base, APIKey: key, HTTPClient: client})
		},
		base: (*modelserver.Server).OpenAIURL,
		key:  func(h http.Header) string { return strings.TrimPrefix(h.Get("Authorization"), "Bearer ") },
	},
	{
		name: "anthropic", api: anthropic.API, format: modelserver.Anthropic, model: "claude-test", path: "/v1/messages",
		provider: func(base, key string, client *http.Client) llm.Provider {
			return anthropic.New(anthropic.Options{BaseURL: base, APIKey: key, HTTPClient: client})
		},
		base: (*modelserver.Server).AnthropicURL,
		key:  func(h http.Header) string { return h.Get("X-Api-Key") },
	},
	{
		name: "google", api: google.API, format: modelserver.Gemini, model: "gemini-test", path: "/v1beta/models/gemini-test:streamGenerateContent",
		provider: func(base, key string, client *http.Client) llm.Provider {
			return google.New(google.Options{BaseURL: base, APIKey: key, HTTPClient: client})
		},
		base: (*modelserver.Server).GeminiURL,
		key:  func(h http.Header) string { return h.Get("X-Goog-Api-Key") },
	},
}

const canary = "sk-canary-4f9a27c1"

// eachFamily runs f once for each wire format, in parallel.
func eachFamily(t *testing.T, f func(t *testing.T, fam family)) {
	for _, fam := range families {
		t.Run(fam.name, func(t *testing.T) {
			t.Parallel()
			f(t, fam)
		})
	}
}

// connect returns the family's provider for a server, with connections of its own that are closed with the test.
func (f family) connect(t testing.TB, base string) llm.Provider {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return f.provider(base, canary, &http.Client{Transport: transport})
}

func (f family) request(messages ...llm.Message) *llm.Request {
	return &llm.Request{Model: f.model, Messages: messages}
}

// own marks a message as written by the family's model.
func (f family) own(stop llm.StopReason, blocks ...llm.Block) llm.Message {
	return llm.Message{Role: llm.RoleAssistant, Content: blocks, Provider: f.name, API: f.api, Model: f.model, StopReason: stop}
}

func user(text string) llm.Message {
	return llm.Message{Role: llm.RoleUser, Content: []llm.Block{{Type: llm.BlockText, Text: text}}}
}

func result(id, name, text string, failed bool) llm.Message {
	return llm.Message{Role: llm.RoleToolResult, ToolCallID: id, ToolName: name, IsError: &failed, Content: []llm.Block{{Type: llm.BlockText, Text: text}}}
}

// recorder collects events.
type recorder struct{ events []llm.Event }

func (r *recorder) emit(e llm.Event) { r.events = append(r.events, e) }

// check proves what the contract says about events: one start before everything else, deltas that add up to the blocks of the
// message, and one block event for each block unless the call failed.
func (r *recorder) check(t *testing.T, m *llm.Message) {
	t.Helper()
	deltas := map[int]string{}
	blocks := map[int]llm.Block{}
	for i, e := range r.events {
		if (e.Type == llm.EventStart) != (i == 0) {
			t.Errorf("event %d is of type %d; the start comes first and once", i, e.Type)
		}
		switch e.Type {
		case llm.EventDelta:
			deltas[e.Index] += e.Text
		case llm.EventBlock:
			blocks[e.Index] = *e.Done
		}
	}
	for i, b := range m.Content {
		if done, ok := blocks[i]; ok && !sameBlock(done, b) {
			t.Errorf("block event %d is %+v, the message has %+v", i, done, b)
		} else if !ok && m.StopReason != llm.StopError && m.StopReason != llm.StopAborted {
			t.Errorf("block %d has no block event", i)
		}
		whole := b.Text + b.Thinking
		if b.Type != llm.BlockToolCall && !b.Redacted && deltas[i] != whole {
			t.Errorf("the deltas of block %d are %q, the block is %q", i, deltas[i], whole)
		}
	}
}

func sameBlock(a, b llm.Block) bool {
	x, errX := a.MarshalJSON()
	y, errY := b.MarshalJSON()
	return errX == nil && errY == nil && string(x) == string(y)
}

// ask performs a call and checks the contract.
func ask(t *testing.T, p llm.Provider, req *llm.Request) (*llm.Message, error) {
	t.Helper()
	return askContext(t.Context(), t, p, req, nil)
}

func askContext(ctx context.Context, t *testing.T, p llm.Provider, req *llm.Request, onEvent func(llm.Event)) (*llm.Message, error) {
	t.Helper()
	var r recorder
	m, err := p.Stream(ctx, req, func(e llm.Event) {
		r.emit(e)
		if onEvent != nil {
			onEvent(e)
		}
	})
	if m == nil {
		t.Fatal("the message is nil")
	}
	r.check(t, m)
	if failed := m.StopReason == llm.StopError || m.StopReason == llm.StopAborted; failed != (err != nil) {
		t.Fatalf("stop reason %q with error %v", m.StopReason, err)
	}
	if err != nil && m.ErrorMessage != err.Error() {
		t.Errorf("message says %q, error says %q", m.ErrorMessage, err)
	}
	return m, err
}
