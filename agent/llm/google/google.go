package google

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strings"

	"google.golang.org/genai"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/llm/internal/wire"
)

// API is the name of the wire format in messages.
const API = "google-generative-ai"

// DefaultBaseURL is Google's own address.
const DefaultBaseURL = "https://generativelanguage.googleapis.com"

// Options describe an endpoint.
type Options struct {
	BaseURL    string       // the host; a trailing /v1beta or /v1 selects that version; empty: DefaultBaseURL
	APIKey     string       // empty: no key header is sent
	Provider   string       // the name in messages and errors; empty: google
	HTTPClient *http.Client // its transport and timeout are used; nil: the standard library's
}

type provider struct {
	conn   *wire.Conn
	client *genai.Client
	err    error
}

// New returns a provider. A wrong address shows in the error of the first call.
func New(o Options) llm.Provider {
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	if o.Provider == "" {
		o.Provider = "google"
	}
	base, version := strings.TrimRight(o.BaseURL, "/"), "v1beta"
	for _, v := range []string{"v1beta", "v1"} {
		if rest, ok := strings.CutSuffix(base, "/"+v); ok {
			base, version = rest, v
			break
		}
	}
	p := &provider{conn: wire.NewConn(o.Provider, API, wire.Google, base, o.APIKey, o.HTTPClient)}
	key := o.APIKey
	if key == "" {
		key = "none" // the SDK would take one from the environment; the connection does not send it
	}
	p.client, p.err = genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey: key, Backend: genai.BackendGeminiAPI, HTTPClient: p.conn.Client(),
		HTTPOptions: genai.HTTPOptions{BaseURL: base + "/", APIVersion: version},
	})
	return p
}

func (p *provider) Stream(ctx context.Context, req *llm.Request, emit func(llm.Event)) (*llm.Message, error) {
	return p.conn.Run(ctx, req, emit, func(ctx context.Context, a *wire.Answer) error {
		if p.err != nil {
			return p.err
		}
		contents, config := p.params(req)
		next, stop := iter.Pull2(p.client.Models.GenerateContentStream(ctx, req.Model, contents, config))
		defer stop()
		r := reader{answer: a}
		for {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			chunk, err := pull(next)
			if chunk == nil || err != nil {
				return err
			}
			a.Start()
			if err := r.chunk(chunk); err != nil {
				return err
			}
		}
	})
}

// pull takes the next chunk. The SDK panics on answers whose JSON has other types than it expects.
func pull(next func() (*genai.GenerateContentResponse, error, bool)) (chunk *genai.GenerateContentResponse, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			chunk, err = nil, &llm.Error{Kind: llm.KindProtocol, Words: fmt.Sprintf("an event has an unknown form (%v)", fault)}
		}
	}()
	chunk, err, _ = next()
	return chunk, err
}

// reader turns chunks into blocks.
type reader struct {
	answer *wire.Answer
	prose  *wire.Part // the open text or thinking block
}

func (r *reader) chunk(c *genai.GenerateContentResponse) error {
	r.answer.Describe(c.ResponseID, c.ModelVersion)
	r.usage(c.UsageMetadata)
	if f := c.PromptFeedback; f != nil && f.BlockReason != "" && len(c.Candidates) == 0 {
		return r.answer.Refused(string(f.BlockReason), f.BlockReasonMessage)
	}
	if len(c.Candidates) == 0 || c.Candidates[0] == nil {
		return nil
	}
	candidate := c.Candidates[0]
	if candidate.Content != nil {
		for _, part := range candidate.Content.Parts {
			if part != nil {
				r.part(part)
			}
		}
	}
	return r.finish(candidate)
}

func (r *reader) part(p *genai.Part) {
	signature := base64.StdEncoding.EncodeToString(p.ThoughtSignature)
	if p.FunctionCall != nil {
		r.call(p.FunctionCall, signature)
		return
	}
	if p.Text == "" && signature == "" {
		return
	}
	kind := llm.BlockText
	if p.Thought {
		kind = llm.BlockThinking
	}
	if r.prose != nil && r.prose.Block.Type != kind {
		r.closeProse()
	}
	if r.prose == nil {
		r.prose = r.answer.Open(llm.Block{Type: kind})
	}
	r.prose.Add(p.Text)
	switch {
	case signature == "":
	case p.Thought:
		r.prose.Block.ThinkingSignature = signature
	default:
		r.prose.Block.TextSignature = signature
	}
}

// call adds a function call, which always comes whole.
func (r *reader) call(c *genai.FunctionCall, signature string) {
	r.closeProse()
	id := c.ID
	if id == "" {
		id = "call_" + rand.Text()
	}
	part := r.answer.Open(llm.Block{Type: llm.BlockToolCall, ID: id, Name: c.Name, ThoughtSignature: signature})
	var arguments bytes.Buffer
	encoder := json.NewEncoder(&arguments)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(c.Args); err == nil && c.Args != nil {
		part.Add(strings.TrimSuffix(arguments.String(), "\n"))
	}
	part.Close()
}

func (r *reader) closeProse() {
	if r.prose != nil {
		r.prose.Close()
		r.prose = nil
	}
}

func (r *reader) finish(c *genai.Candidate) error {
	raw := string(c.FinishReason)
	switch c.FinishReason {
	case "", genai.FinishReasonUnspecified:
	case genai.FinishReasonStop:
		r.answer.Stop(llm.StopEnd, raw)
	case genai.FinishReasonMaxTokens, genai.FinishReasonContinuation:
		r.answer.Stop(llm.StopLength, raw)
	default:
		return r.answer.Refused(raw, c.FinishMessage)
	}
	return nil
}

func (r *reader) usage(u *genai.GenerateContentResponseUsageMetadata) {
	if u == nil {
		return
	}
	prompt := int64(u.PromptTokenCount) + int64(u.ToolUsePromptTokenCount)
	cached := min(int64(u.CachedContentTokenCount), prompt)
	thoughts := int64(u.ThoughtsTokenCount)
	output := int64(u.CandidatesTokenCount) + thoughts
	r.answer.Message.Usage = &llm.Usage{
		Input: prompt - cached, Output: output, CacheRead: cached, Reasoning: thoughts, TotalTokens: prompt + output,
	}
}
