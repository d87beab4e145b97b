package google

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"google.golang.org/genai"

	"github.com/repa-app/repa/agent/llm"
)

// unsigned is the documented stand-in for the signature of a function call that another model made: Gemini 3 refuses calls
// without one.
const unsigned = "skip_thought_signature_validator"

func (p *provider) params(req *llm.Request) ([]*genai.Content, *genai.GenerateContentConfig) {
	once := false
	config := &genai.GenerateContentConfig{AutomaticContinuation: &once, ThinkingConfig: thinking(req.Model, req.Thinking)}
	if req.System != "" {
		config.SystemInstruction = &genai.Content{Parts: []*genai.Part{{Text: req.System}}}
	}
	if req.MaxTokens > 0 {
		config.MaxOutputTokens = int32(min(req.MaxTokens, math.MaxInt32))
	}
	if len(req.Tools) > 0 {
		tool := &genai.Tool{}
		for _, t := range req.Tools {
			declaration := &genai.FunctionDeclaration{Name: t.Name, Description: t.Description}
			if json.Valid(t.Parameters) { // a broken schema is a tool without parameters
				declaration.ParametersJsonSchema = t.Parameters
			}
			tool.FunctionDeclarations = append(tool.FunctionDeclarations, declaration)
		}
		config.Tools = []*genai.Tool{tool}
	}
	history := llm.Handoff(req.Messages, llm.Target{
		Provider: p.conn.Provider, API: API, Model: req.Model, NoImages: req.NoImages, CallID: llm.CallID,
	})
	return contents(history, generation(req.Model) >= 3), config
}

// generation is the major version in a name like gemini-2.5-pro, or 0.
func generation(model string) int {
	_, rest, ok := strings.Cut(model, "gemini-")
	if !ok {
		return 0
	}
	digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	n, _ := strconv.Atoi(digits)
	return n
}

// thinking maps a level to a level (since Gemini 3) or to a budget. The large models cannot be told not to think: off is
// their least.
func thinking(model, level string) *genai.ThinkingConfig {
	if level == "" {
		return nil
	}
	out := &genai.ThinkingConfig{IncludeThoughts: level != "off"}
	large := strings.Contains(model, "-pro")
	if generation(model) >= 3 {
		switch {
		case large && (level == "off" || level == "minimal" || level == "low"):
			out.ThinkingLevel = genai.ThinkingLevelLow
		case level == "off" || level == "minimal":
			out.ThinkingLevel = genai.ThinkingLevelMinimal
		case level == "low":
			out.ThinkingLevel = genai.ThinkingLevelLow
		case level == "medium" && !large:
			out.ThinkingLevel = genai.ThinkingLevelMedium
		default:
			out.ThinkingLevel = genai.ThinkingLevelHigh
		}
		return out
	}
	budget, ok := map[string]int32{"off": 0, "minimal": 1024, "low": 2048, "medium": 8192}[level]
	if !ok {
		budget = 16384
	}
	if level == "off" && large {
		budget = 128 // the smallest that Gemini 2.5 Pro takes
	}
	out.ThinkingBudget = &budget
	return out
}

func contents(history []llm.Message, signed bool) []*genai.Content {
	var out []*genai.Content
	add := func(role string, parts []*genai.Part) {
		if len(parts) > 0 {
			out = append(out, &genai.Content{Role: role, Parts: parts})
		}
	}
	for i := 0; i < len(history); i++ {
		m := &history[i]
		switch m.Role {
		case llm.RoleAssistant:
			add(genai.RoleModel, assistant(m, signed))
		case llm.RoleToolResult:
			var responses, pictures []*genai.Part
			for ; i < len(history) && history[i].Role == llm.RoleToolResult; i++ {
				responses = append(responses, response(&history[i]))
				pictures = append(pictures, images(&history[i])...)
			}
			i--
			add(genai.RoleUser, responses)
			add(genai.RoleUser, pictures)
		default:
			add(genai.RoleUser, user(m.Content))
		}
	}
	return out
}

func user(content []llm.Block) []*genai.Part {
	var out []*genai.Part
	for _, b := range content {
		switch {
		case b.Type == llm.BlockText && b.Text != "":
			out = append(out, &genai.Part{Text: b.Text})
		case b.Type == llm.BlockImage:
			out = append(out, picture(b))
		}
	}
	return out
}

func picture(b llm.Block) *genai.Part {
	data, err := base64.StdEncoding.DecodeString(b.Data)
	if err != nil {
		return &genai.Part{Text: "(image omitted: its data is damaged)"}
	}
	return &genai.Part{InlineData: &genai.Blob{MIMEType: b.MimeType, Data: data}}
}

func assistant(m *llm.Message, signed bool) []*genai.Part {
	var out []*genai.Part
	for _, b := range m.Content {
		switch b.Type {
		case llm.BlockText:
			out = append(out, &genai.Part{Text: b.Text, ThoughtSignature: signature(b.TextSignature)})
		case llm.BlockThinking:
			out = append(out, &genai.Part{Text: b.Thinking, Thought: true, ThoughtSignature: signature(b.ThinkingSignature)})
		case llm.BlockToolCall:
			call := &genai.FunctionCall{ID: b.ID, Name: b.Name}
			_ = json.Unmarshal(b.Arguments, &call.Args) // an object by contract; otherwise no arguments
			part := &genai.Part{FunctionCall: call, ThoughtSignature: signature(b.ThoughtSignature)}
			if signed && len(part.ThoughtSignature) == 0 && firstCall(m, b.ID) {
				part.ThoughtSignature = []byte(unsigned)
			}
			out = append(out, part)
		}
	}
	return out
}

// firstCall reports whether id is the first call of a message: of parallel calls only that one carries a signature.
func firstCall(m *llm.Message, id string) bool {
	calls := m.ToolCalls()
	return len(calls) > 0 && calls[0].ID == id
}

// signature returns nil for what is no signature of Google's.
func signature(s string) []byte {
	raw, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil
	}
	return raw
}

func response(m *llm.Message) *genai.Part {
	text := m.Text()
	switch {
	case text == "" && len(images(m)) > 0:
		text = "(see attached image)"
	case text == "":
		text = "(no output)"
	}
	key := "output"
	if m.Failed() {
		key = "error"
	}
	return &genai.Part{FunctionResponse: &genai.FunctionResponse{
		ID: m.ToolCallID, Name: m.ToolName, Response: map[string]any{key: text},
	}}
}

// images are the pictures of a tool result, which follow in a message of their own.
func images(m *llm.Message) []*genai.Part {
	var out []*genai.Part
	for _, b := range m.Content {
		if b.Type == llm.BlockImage {
			if len(out) == 0 {
				out = append(out, &genai.Part{Text: "Image(s) from the result of " + m.ToolName + ":"})
			}
			out = append(out, picture(b))
		}
	}
	return out
}
