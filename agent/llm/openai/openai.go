package openai

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/llm/internal/wire"
)

// API is the name of the wire format in messages.
const API = "openai-completions"

// DefaultBaseURL is OpenAI's own address.
const DefaultBaseURL = "https://api.openai.com/v1"

// Options describe an endpoint.
type Options struct {
	BaseURL    string       // up to and including the version, for example http://127.0.0.1:11434/v1; empty: DefaultBaseURL
	APIKey     string       // empty: no Authorization header is sent
	Provider   string       // the name in messages and errors; empty: openai
	HTTPClient *http.Client // its transport and timeout are used; nil: the standard library's
}

type provider struct {
	conn        *wire.Conn
	completions sdk.ChatCompletionService
	official    bool // OpenAI's own host
}

// New returns a provider. A wrong address shows in the error of the first call.
func New(o Options) llm.Provider {
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	if o.Provider == "" {
		o.Provider = "openai"
	}
	base := strings.TrimRight(o.BaseURL, "/") + "/"
	conn := wire.NewConn(o.Provider, API, wire.OpenAI, base, o.APIKey, o.HTTPClient)
	options := []option.RequestOption{option.WithBaseURL(base), option.WithHTTPClient(conn.Client()), option.WithMaxRetries(0)}
	if o.APIKey != "" {
		options = append(options, option.WithAPIKey(o.APIKey))
	}
	// The service is made directly: the SDK's client would read keys and headers from the environment.
	return &provider{conn: conn, completions: sdk.NewChatCompletionService(options...), official: strings.HasPrefix(base, "https://api.openai.com/")}
}

func (p *provider) Stream(ctx context.Context, req *llm.Request, emit func(llm.Event)) (*llm.Message, error) {
	return p.conn.Run(ctx, req, emit, func(ctx context.Context, a *wire.Answer) error {
		stream := p.completions.NewStreaming(ctx, p.params(req))
		defer stream.Close()
		r := reader{answer: a, calls: map[int64]*wire.Part{}}
		for ctx.Err() == nil && stream.Next() {
			chunk := stream.Current()
			a.Start()
			if err := r.chunk(&chunk); err != nil {
				return err
			}
		}
		return cmp.Or(stream.Err(), ctx.Err())
	})
}

// reader turns chunks into blocks.
type reader struct {
	answer *wire.Answer
	prose  *wire.Part           // the open text or thinking block
	calls  map[int64]*wire.Part // the open tool calls by their index
}

func (r *reader) chunk(c *sdk.ChatCompletionChunk) error {
	r.answer.Describe(c.ID, c.Model)
	if c.JSON.Usage.Valid() {
		r.usage(&c.Usage)
	}
	if len(c.Choices) == 0 {
		return nil
	}
	choice := &c.Choices[0]
	name, thinking := reasoning(&choice.Delta)
	r.add(llm.Block{Type: llm.BlockThinking, ThinkingSignature: name}, thinking)
	r.add(llm.Block{Type: llm.BlockText}, choice.Delta.Content)
	r.add(llm.Block{Type: llm.BlockText}, choice.Delta.Refusal)
	for i := range choice.Delta.ToolCalls {
		r.call(&choice.Delta.ToolCalls[i])
	}
	return r.stop(choice.FinishReason)
}

// reasoning returns the reasoning text of compatible servers and the name of its field.
func reasoning(d *sdk.ChatCompletionChunkChoiceDelta) (name, text string) {
	for _, name := range []string{"reasoning_content", "reasoning", "reasoning_text"} {
		if f, ok := d.JSON.ExtraFields[name]; ok && json.Unmarshal([]byte(f.Raw()), &text) == nil && text != "" {
			return name, text
		}
	}
	return "", ""
}

func (r *reader) add(b llm.Block, text string) {
	if text == "" {
		return
	}
	if r.prose == nil || r.prose.Block.Type != b.Type {
		r.closeProse()
		r.prose = r.answer.Open(b)
	}
	r.prose.Add(text)
}

func (r *reader) closeProse() {
	if r.prose != nil {
		r.prose.Close()
		r.prose = nil
	}
}

// call adds a piece of a tool call. Another id at the same index is another call: some servers send index 0 for all.
func (r *reader) call(d *sdk.ChatCompletionChunkChoiceDeltaToolCall) {
	part := r.calls[d.Index]
	if part == nil || d.ID != "" && part.Block.ID != "" && part.Block.ID != d.ID {
		if part != nil {
			part.Close()
		}
		r.closeProse()
		part = r.answer.Open(llm.Block{Type: llm.BlockToolCall, ID: d.ID})
		r.calls[d.Index] = part
	}
	if part.Block.ID == "" {
		part.Block.ID = d.ID
	}
	if part.Block.Name == "" {
		part.Block.Name = d.Function.Name
	}
	part.Add(d.Function.Arguments)
}

func (r *reader) stop(reason string) error {
	if reason == "" {
		return nil
	}
	for _, part := range r.calls {
		if part.Block.ID == "" {
			part.Block.ID = "call_" + rand.Text()
		}
	}
	switch reason {
	case "stop", "end":
		r.answer.Stop(llm.StopEnd, reason)
	case "length":
		r.answer.Stop(llm.StopLength, reason)
	case "tool_calls", "function_call":
		r.answer.Stop(llm.StopToolUse, reason)
	default:
		return r.answer.Refused(reason, "")
	}
	return nil
}

func (r *reader) usage(u *sdk.CompletionUsage) {
	cached := u.PromptTokensDetails.CachedTokens
	if f, ok := u.JSON.ExtraFields["prompt_cache_hit_tokens"]; ok && cached == 0 { // DeepSeek
		_ = json.Unmarshal([]byte(f.Raw()), &cached)
	}
	cached = min(cached, u.PromptTokens)
	r.answer.Message.Usage = &llm.Usage{
		Input: u.PromptTokens - cached, Output: u.CompletionTokens, CacheRead: cached,
		Reasoning: u.CompletionTokensDetails.ReasoningTokens, TotalTokens: u.PromptTokens + u.CompletionTokens,
	}
}
