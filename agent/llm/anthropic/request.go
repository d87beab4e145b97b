package anthropic

import (
	"encoding/json"
	"strconv"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/repa-app/repa/agent/llm"
)

const (
	// defaultMaxTokens is sent when the request names no limit, since the API wants one. Every current model allows it.
	defaultMaxTokens = 16384
	// minAnswer is what thinking must leave of the limit for the answer itself.
	minAnswer = 1024
	// minBudget is the smallest thinking budget that the API takes.
	minBudget = 1024
)

func (p *provider) params(req *llm.Request) sdk.MessageNewParams {
	out := sdk.MessageNewParams{Model: req.Model, MaxTokens: int64(req.MaxTokens)}
	setThinking(&out, req.Thinking)
	if req.System != "" {
		out.System = []sdk.TextBlockParam{{Text: req.System, CacheControl: sdk.NewCacheControlEphemeralParam()}}
	}
	for _, t := range req.Tools {
		out.Tools = append(out.Tools, sdk.ToolUnionParam{OfTool: tool(t)})
	}
	if n := len(out.Tools); n > 0 {
		out.Tools[n-1].OfTool.CacheControl = sdk.NewCacheControlEphemeralParam()
	}
	history := llm.Handoff(req.Messages, llm.Target{
		Provider: p.conn.Provider, API: API, Model: req.Model, NoImages: req.NoImages, CallID: llm.CallID,
	})
	out.Messages = messages(history)
	markLastUserBlock(out.Messages)
	return out
}

func tool(t llm.ToolSpec) *sdk.ToolParam {
	var schema map[string]any
	_ = json.Unmarshal(t.Parameters, &schema) // a broken schema is a tool without parameters
	delete(schema, "type")
	out := &sdk.ToolParam{Name: t.Name, InputSchema: sdk.ToolInputSchemaParam{ExtraFields: schema}}
	if t.Description != "" {
		out.Description = param.NewOpt(t.Description)
	}
	return out
}

// setThinking sets the thinking mode and the output limit, which the thinking shares.
func setThinking(out *sdk.MessageNewParams, level string) {
	given := out.MaxTokens > 0
	if !given {
		out.MaxTokens = defaultMaxTokens
	}
	generation := generationOf(out.Model)
	switch {
	case level == "":
		return
	case level == "off":
		if !generation.always {
			disabled := sdk.NewThinkingConfigDisabledParam()
			out.Thinking = sdk.ThinkingConfigParamUnion{OfDisabled: &disabled}
		}
		return
	case generation.adaptive:
		out.Thinking = sdk.ThinkingConfigParamUnion{OfAdaptive: &sdk.ThinkingConfigAdaptiveParam{Display: sdk.ThinkingConfigAdaptiveDisplaySummarized}}
		out.OutputConfig.Effort = effort(level, generation.xhigh)
		return
	}
	budget := map[string]int64{"minimal": 1024, "low": 2048, "medium": 8192}[level]
	if budget == 0 {
		budget = 16384
	}
	if !given {
		out.MaxTokens += budget
	}
	budget = min(budget, out.MaxTokens-minAnswer)
	if budget >= minBudget {
		out.Thinking = sdk.ThinkingConfigParamOfEnabled(budget)
	}
}

func effort(level string, xhigh bool) sdk.OutputConfigEffort {
	switch level {
	case "minimal", "low":
		return sdk.OutputConfigEffortLow
	case "medium":
		return sdk.OutputConfigEffortMedium
	case "xhigh":
		if xhigh {
			return sdk.OutputConfigEffortXhigh
		}
	case "max":
		return sdk.OutputConfigEffortMax
	}
	return sdk.OutputConfigEffortHigh
}

// generation is what a Claude model's name says about its thinking.
type generation struct {
	adaptive bool // takes an effort instead of a budget: since 4.6
	xhigh    bool // knows the effort xhigh: since 4.7
	always   bool // cannot be told not to think
}

// generationOf reads names like claude-opus-4-6 and claude-haiku-4-5-20251001. Models of other makers count as old ones.
func generationOf(model string) generation {
	if !strings.HasPrefix(model, "claude-") {
		return generation{}
	}
	fields := strings.Split(model, "-")
	number := func(i int) int {
		if i >= len(fields) || len(fields[i]) > 2 { // longer ones are dates
			return 0
		}
		n, _ := strconv.Atoi(fields[i])
		return n
	}
	version := number(2)*10 + number(3)
	always := fields[1] == "mythos" || fields[1] == "fable"
	return generation{adaptive: always || version >= 46, xhigh: always || version >= 47, always: always}
}

func messages(history []llm.Message) []sdk.MessageParam {
	var out []sdk.MessageParam
	for i := 0; i < len(history); i++ {
		m := &history[i]
		var blocks []sdk.ContentBlockParamUnion
		switch m.Role {
		case llm.RoleAssistant:
			if blocks = assistant(m); len(blocks) > 0 {
				out = append(out, sdk.NewAssistantMessage(blocks...))
			}
			continue
		case llm.RoleToolResult:
			end := i
			for end < len(history) && history[end].Role == llm.RoleToolResult {
				end++
			}
			blocks = results(history[i:end])
			i = end - 1
		default:
			blocks = user(m.Content)
		}
		if len(blocks) > 0 {
			out = append(out, sdk.NewUserMessage(blocks...))
		}
	}
	return out
}

// user leaves out blank text, which the API refuses.
func user(content []llm.Block) []sdk.ContentBlockParamUnion {
	var out []sdk.ContentBlockParamUnion
	for _, b := range content {
		switch {
		case b.Type == llm.BlockText && strings.TrimSpace(b.Text) != "":
			out = append(out, sdk.NewTextBlock(b.Text))
		case b.Type == llm.BlockImage:
			out = append(out, sdk.NewImageBlockBase64(b.MimeType, b.Data))
		}
	}
	return out
}

func assistant(m *llm.Message) []sdk.ContentBlockParamUnion {
	var out []sdk.ContentBlockParamUnion
	for _, b := range m.Content {
		switch {
		case b.Type == llm.BlockText && strings.TrimSpace(b.Text) != "":
			out = append(out, sdk.NewTextBlock(b.Text))
		case b.Type == llm.BlockThinking && b.Redacted:
			out = append(out, sdk.NewRedactedThinkingBlock(b.ThinkingSignature))
		case b.Type == llm.BlockThinking && b.ThinkingSignature != "": // the API refuses unsigned thinking
			out = append(out, sdk.NewThinkingBlock(b.ThinkingSignature, b.Thinking))
		case b.Type == llm.BlockToolCall:
			input := b.Arguments
			if len(input) == 0 {
				input = json.RawMessage("{}")
			}
			out = append(out, sdk.NewToolUseBlock(b.ID, input, b.Name))
		}
	}
	return out
}

// results are the results of one assistant message. Images of error results, which the API refuses there, follow behind.
func results(group []llm.Message) []sdk.ContentBlockParamUnion {
	var out, behind []sdk.ContentBlockParamUnion
	for i := range group {
		m := &group[i]
		block := &sdk.ToolResultBlockParam{ToolUseID: m.ToolCallID}
		if m.Failed() {
			block.IsError = param.NewOpt(true)
		}
		for _, b := range user(m.Content) {
			if b.OfImage != nil && m.Failed() {
				caption := "Image of the failed tool call " + m.ToolCallID + ":"
				behind = append(behind, sdk.NewTextBlock(caption), b)
				continue
			}
			block.Content = append(block.Content, sdk.ToolResultBlockParamContentUnion{OfText: b.OfText, OfImage: b.OfImage})
		}
		if len(block.Content) == 0 {
			block.Content = []sdk.ToolResultBlockParamContentUnion{{OfText: &sdk.TextBlockParam{Text: "(no output)"}}}
		}
		out = append(out, sdk.ContentBlockParamUnion{OfToolResult: block})
	}
	return append(out, behind...)
}

// markLastUserBlock sets the cache mark behind which the next request of the session continues.
func markLastUserBlock(messages []sdk.MessageParam) {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role != sdk.MessageParamRoleUser {
			continue
		}
		content := messages[i].Content
		if mark := content[len(content)-1].GetCacheControl(); mark != nil {
			*mark = sdk.NewCacheControlEphemeralParam()
		}
		return
	}
}
