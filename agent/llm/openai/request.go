package openai

import (
	"encoding/json"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/repa-app/repa/agent/llm"
)

// maxCacheKey is the longest prompt_cache_key that OpenAI takes.
const maxCacheKey = 64

func (p *provider) params(req *llm.Request) sdk.ChatCompletionNewParams {
	out := sdk.ChatCompletionNewParams{
		Model:         req.Model,
		StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
	}
	if req.MaxTokens > 0 && p.official {
		out.MaxCompletionTokens = param.NewOpt(int64(req.MaxTokens))
	} else if req.MaxTokens > 0 {
		out.MaxTokens = param.NewOpt(int64(req.MaxTokens))
	}
	if p.official && req.SessionID != "" {
		out.PromptCacheKey = param.NewOpt(req.SessionID[:min(len(req.SessionID), maxCacheKey)])
	}
	out.ReasoningEffort = p.effort(req.Thinking)
	for _, t := range req.Tools {
		function := shared.FunctionDefinitionParam{Name: t.Name, Description: param.NewOpt(t.Description)}
		_ = json.Unmarshal(t.Parameters, &function.Parameters) // a broken schema is a tool without parameters
		out.Tools = append(out.Tools, sdk.ChatCompletionFunctionTool(function))
	}
	if req.System != "" {
		out.Messages = append(out.Messages, sdk.SystemMessage(req.System))
	}
	history := llm.Handoff(req.Messages, llm.Target{
		Provider: p.conn.Provider, API: API, Model: req.Model, NoImages: req.NoImages, CallID: llm.OpenAICallID(p.conn.Provider),
	})
	out.Messages = append(out.Messages, messages(history)...)
	return out
}

// effort maps a thinking level. OpenAI and Ollama know a value for off; most others refuse unknown values, so they get the
// three that all know, and nothing for off.
func (p *provider) effort(level string) shared.ReasoningEffort {
	switch level {
	case "low", "medium", "high":
		return shared.ReasoningEffort(level)
	}
	if p.conn.Provider == "openai" {
		switch level {
		case "off":
			return shared.ReasoningEffortNone
		case "minimal", "xhigh", "max":
			return shared.ReasoningEffort(level)
		}
	}
	switch level {
	case "off":
		if p.conn.Provider == "ollama" {
			return shared.ReasoningEffortNone
		}
	case "minimal":
		return shared.ReasoningEffortLow
	case "xhigh", "max":
		return shared.ReasoningEffortHigh
	}
	return ""
}

func messages(history []llm.Message) []sdk.ChatCompletionMessageParamUnion {
	var out []sdk.ChatCompletionMessageParamUnion
	var pictures []llm.Block // of tool results, which can only be text: they follow as a user message
	for i := range history {
		m := &history[i]
		if m.Role != llm.RoleToolResult && len(pictures) > 0 {
			out = append(out, pictureMessage(pictures))
			pictures = nil
		}
		switch m.Role {
		case llm.RoleAssistant:
			out = append(out, assistant(m))
		case llm.RoleToolResult:
			out = append(out, sdk.ToolMessage(resultText(m), m.ToolCallID))
			pictures = append(pictures, images(m.Content)...)
		default:
			if content := parts(m.Content); len(images(m.Content)) > 0 {
				out = append(out, sdk.UserMessage(content))
			} else if text := m.Text(); text != "" {
				out = append(out, sdk.UserMessage(text))
			}
		}
	}
	if len(pictures) > 0 {
		out = append(out, pictureMessage(pictures))
	}
	return out
}

func pictureMessage(pictures []llm.Block) sdk.ChatCompletionMessageParamUnion {
	caption := llm.Block{Type: llm.BlockText, Text: "Attached image(s) from tool result:"}
	return sdk.UserMessage(parts(append([]llm.Block{caption}, pictures...)))
}

// resultText is a tool result as text. The format has no flag for errors, so the text says it.
func resultText(m *llm.Message) string {
	text := m.Text()
	switch {
	case text == "" && len(images(m.Content)) > 0:
		text = "(see attached image)"
	case text == "":
		text = "(no output)"
	}
	if m.Failed() && !strings.HasPrefix(strings.ToLower(text), "error") {
		text = "Error: " + text
	}
	return text
}

func images(blocks []llm.Block) []llm.Block {
	var out []llm.Block
	for _, b := range blocks {
		if b.Type == llm.BlockImage {
			out = append(out, b)
		}
	}
	return out
}

func parts(blocks []llm.Block) []sdk.ChatCompletionContentPartUnionParam {
	var out []sdk.ChatCompletionContentPartUnionParam
	for _, b := range blocks {
		switch {
		case b.Type == llm.BlockText && b.Text != "":
			out = append(out, sdk.TextContentPart(b.Text))
		case b.Type == llm.BlockImage:
			url := "data:" + b.MimeType + ";base64," + b.Data
			out = append(out, sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: url}))
		}
	}
	return out
}

func assistant(m *llm.Message) sdk.ChatCompletionMessageParamUnion {
	var out sdk.ChatCompletionAssistantMessageParam
	var text, thinking []string
	field := ""
	for _, b := range m.Content {
		switch b.Type {
		case llm.BlockText:
			text = append(text, b.Text)
		case llm.BlockThinking:
			if b.ThinkingSignature != "" {
				field = b.ThinkingSignature
				thinking = append(thinking, b.Thinking)
			}
		case llm.BlockToolCall:
			arguments := string(b.Arguments)
			if arguments == "" {
				arguments = "{}"
			}
			out.ToolCalls = append(out.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
				OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
					ID:       b.ID,
					Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: b.Name, Arguments: arguments},
				},
			})
		}
	}
	if len(text) > 0 || len(out.ToolCalls) == 0 {
		out.Content.OfString = param.NewOpt(strings.Join(text, "\n"))
	}
	if field != "" {
		out.SetExtraFields(map[string]any{field: strings.Join(thinking, "\n")})
	}
	return sdk.ChatCompletionMessageParamUnion{OfAssistant: &out}
}
