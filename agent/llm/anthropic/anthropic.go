package anthropic

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/llm/internal/wire"
)

// API is the name of the wire format in messages.
const API = "anthropic-messages"

// DefaultBaseURL is Anthropic's own address.
const DefaultBaseURL = "https://api.anthropic.com"

// redactedText stands for thinking that the provider encrypted, as in Pi's session files.
const redactedText = "[Reasoning redacted]"

// Options describe an endpoint.
type Options struct {
	BaseURL    string       // without /v1, which is cut off if it is there; empty: DefaultBaseURL
	APIKey     string       // empty: no key header is sent
	Provider   string       // the name in messages and errors; empty: anthropic
	HTTPClient *http.Client // its transport and timeout are used; nil: the standard library's
}

type provider struct {
	conn     *wire.Conn
	messages sdk.MessageService
}

// New returns a provider. A wrong address shows in the error of the first call.
func New(o Options) llm.Provider {
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	if o.Provider == "" {
		o.Provider = "anthropic"
	}
	base := strings.TrimSuffix(strings.TrimRight(o.BaseURL, "/"), "/v1") + "/"
	conn := wire.NewConn(o.Provider, API, wire.Anthropic, base, o.APIKey, o.HTTPClient)
	options := []option.RequestOption{
		option.WithBaseURL(base), option.WithHTTPClient(conn.Client()), option.WithMaxRetries(0), option.WithoutOpenTelemetry(),
	}
	if o.APIKey != "" {
		options = append(options, option.WithAPIKey(o.APIKey))
	}
	// The service is made directly: the SDK's client would look for credentials in the environment and in files.
	return &provider{conn: conn, messages: sdk.NewMessageService(options...)}
}

func (p *provider) Stream(ctx context.Context, req *llm.Request, emit func(llm.Event)) (*llm.Message, error) {
	return p.conn.Run(ctx, req, emit, func(ctx context.Context, a *wire.Answer) error {
		stream := p.messages.NewStreaming(ctx, p.params(req))
		if stream.Err() != nil {
			return stream.Err() // there is nothing to close
		}
		defer stream.Close()
		r := reader{answer: a, parts: map[int64]*wire.Part{}}
		for ctx.Err() == nil && stream.Next() {
			event := stream.Current()
			a.Start()
			if err := r.event(&event); err != nil {
				return err
			}
		}
		return cmp.Or(stream.Err(), ctx.Err())
	})
}

// reader turns stream events into blocks.
type reader struct {
	answer  *wire.Answer
	parts   map[int64]*wire.Part
	reason  llm.StopReason
	raw     string
	refusal error
}

func (r *reader) event(e *sdk.MessageStreamEventUnion) error {
	switch e.Type {
	case "message_start":
		r.answer.Describe(e.Message.ID, e.Message.Model)
		u := &e.Message.Usage
		r.usage(u.InputTokens, u.OutputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokensDetails.ThinkingTokens)
	case "content_block_start":
		r.open(e.Index, &e.ContentBlock)
	case "content_block_delta":
		r.delta(r.parts[e.Index], &e.Delta)
	case "content_block_stop":
		if part := r.parts[e.Index]; part != nil {
			part.Close()
		}
	case "message_delta":
		u := &e.Usage
		r.usage(u.InputTokens, u.OutputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokensDetails.ThinkingTokens)
		r.stopReason(string(e.Delta.StopReason), e.Delta.StopDetails.Explanation)
	case "message_stop":
		if r.refusal != nil {
			return r.refusal
		}
		if r.reason != "" {
			r.answer.Stop(r.reason, r.raw)
		}
	}
	return nil
}

// open begins a block. Blocks of the provider's own tools, which are never declared, have no counterpart and are skipped.
func (r *reader) open(index int64, b *sdk.ContentBlockStartEventContentBlockUnion) {
	switch b.Type {
	case "text":
		r.parts[index] = r.answer.Open(llm.Block{Type: llm.BlockText})
		r.parts[index].Add(b.Text)
	case "thinking":
		r.parts[index] = r.answer.Open(llm.Block{Type: llm.BlockThinking, ThinkingSignature: b.Signature})
		r.parts[index].Add(b.Thinking)
	case "redacted_thinking":
		r.parts[index] = r.answer.Open(llm.Block{Type: llm.BlockThinking, Thinking: redactedText, ThinkingSignature: b.Data, Redacted: true})
	case "tool_use":
		part := r.answer.Open(llm.Block{Type: llm.BlockToolCall, ID: b.ID, Name: b.Name})
		r.parts[index] = part
		if input := strings.TrimSpace(b.JSON.Input.Raw()); input != "" && input != "{}" && input != "null" {
			part.Add(input) // compatible servers send the arguments at once
		}
	}
}

func (r *reader) delta(part *wire.Part, d *sdk.MessageStreamEventUnionDelta) {
	if part == nil {
		return
	}
	switch d.Type {
	case "text_delta":
		part.Add(d.Text)
	case "thinking_delta":
		part.Add(d.Thinking)
	case "signature_delta":
		part.Block.ThinkingSignature += d.Signature
	case "input_json_delta":
		part.Add(d.PartialJSON)
	}
}

func (r *reader) stopReason(raw, explanation string) {
	if raw == "" {
		return
	}
	r.raw = raw
	switch raw {
	case "end_turn", "pause_turn", "stop_sequence":
		r.reason = llm.StopEnd
	case "max_tokens":
		r.reason = llm.StopLength
	case "tool_use":
		r.reason = llm.StopToolUse
	case "model_context_window_exceeded":
		r.reason = llm.StopLength
	default:
		r.refusal = r.answer.Refused(raw, explanation)
	}
}

// usage takes the newest counts. The final event repeats only some of them, with zero for the others.
func (r *reader) usage(input, output, cacheRead, cacheWrite, reasoning int64) {
	u := r.answer.Message.Usage
	for _, c := range []struct {
		to   *int64
		from int64
	}{{&u.Input, input}, {&u.Output, output}, {&u.CacheRead, cacheRead}, {&u.CacheWrite, cacheWrite}, {&u.Reasoning, reasoning}} {
		if c.from > 0 {
			*c.to = c.from
		}
	}
	u.TotalTokens = u.Input + u.Output + u.CacheRead + u.CacheWrite
}
