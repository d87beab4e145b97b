package llm

import (
	"encoding/json"
	"strings"
)

// Role tells who a message is from.
type Role string

// The roles a provider understands. A session file knows more (see package session); they are converted before a request.
const (
	RoleSystem     Role = "system"
	RoleUser       Role = "user"
	RoleAssistant  Role = "assistant"
	RoleToolResult Role = "toolResult"
)

// BlockType tells which fields of a Block are set.
type BlockType string

const (
	BlockText     BlockType = "text"     // Text, TextSignature
	BlockImage    BlockType = "image"    // Data, MimeType
	BlockThinking BlockType = "thinking" // Thinking, ThinkingSignature, Redacted
	BlockToolCall BlockType = "toolCall" // ID, Name, Arguments, ThoughtSignature, ArgumentsError
)

// Block is one piece of a message's content. The JSON form is Pi's (session format version 3).
type Block struct {
	Type BlockType `json:"type"`

	Text          string `json:"text,omitempty"`
	TextSignature string `json:"textSignature,omitempty"`

	Data     string `json:"data,omitempty"` // base64, standard alphabet
	MimeType string `json:"mimeType,omitempty"`

	Thinking          string `json:"thinking,omitempty"`
	ThinkingSignature string `json:"thinkingSignature,omitempty"`
	Redacted          bool   `json:"redacted,omitempty"`

	ID               string          `json:"id,omitempty"`
	Name             string          `json:"name,omitempty"`
	Arguments        json.RawMessage `json:"arguments,omitempty"` // a JSON object
	ThoughtSignature string          `json:"thoughtSignature,omitempty"`
	ArgumentsError   string          `json:"argumentsError,omitempty"` // the streamed arguments were no JSON object
}

// MarshalJSON writes the fields of the block's type, the required ones also when they are empty.
func (b Block) MarshalJSON() ([]byte, error) {
	type plain Block
	switch b.Type {
	case BlockText:
		return json.Marshal(struct {
			Type          BlockType `json:"type"`
			Text          string    `json:"text"`
			TextSignature string    `json:"textSignature,omitempty"`
		}{b.Type, b.Text, b.TextSignature})
	case BlockThinking:
		return json.Marshal(struct {
			Type              BlockType `json:"type"`
			Thinking          string    `json:"thinking"`
			ThinkingSignature string    `json:"thinkingSignature,omitempty"`
			Redacted          bool      `json:"redacted,omitempty"`
		}{b.Type, b.Thinking, b.ThinkingSignature, b.Redacted})
	case BlockToolCall:
		if len(b.Arguments) == 0 {
			b.Arguments = json.RawMessage("{}")
		}
	}
	return json.Marshal(plain(b))
}

// StopReason tells why an assistant message ended.
type StopReason string

const (
	StopEnd     StopReason = "stop"
	StopLength  StopReason = "length"
	StopToolUse StopReason = "toolUse"
	StopError   StopReason = "error"
	StopAborted StopReason = "aborted"
)

// Usage counts the tokens of one model call. Input excludes what was read from or written to the provider's cache.
type Usage struct {
	Input       int64 `json:"input"`
	Output      int64 `json:"output"`
	CacheRead   int64 `json:"cacheRead"`
	CacheWrite  int64 `json:"cacheWrite"`
	Reasoning   int64 `json:"reasoning,omitempty"` // already part of Output
	TotalTokens int64 `json:"totalTokens"`
	Cost        Cost  `json:"cost"`
}

// Cost is in US dollars. All zero means free or unknown.
type Cost struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
	Total      float64 `json:"total"`
}

// Message is one message of a conversation in Pi's shape. Which fields are set depends on Role: API to RawStopReason belong
// to assistant messages, ToolCallID to IsError to tool results.
type Message struct {
	Role    Role    `json:"role"`
	Content []Block `json:"content"`

	API           string     `json:"api,omitempty"`
	Provider      string     `json:"provider,omitempty"`
	Model         string     `json:"model,omitempty"`
	ResponseModel string     `json:"responseModel,omitempty"` // what the provider says it used, when it differs
	ResponseID    string     `json:"responseId,omitempty"`
	Usage         *Usage     `json:"usage,omitempty"`
	StopReason    StopReason `json:"stopReason,omitempty"`
	RawStopReason string     `json:"rawStopReason,omitempty"`
	ErrorMessage  string     `json:"errorMessage,omitempty"`
	ThinkingLevel string     `json:"thinkingLevel,omitempty"`

	ToolCallID string          `json:"toolCallId,omitempty"`
	ToolName   string          `json:"toolName,omitempty"`
	Details    json.RawMessage `json:"details,omitempty"`
	IsError    *bool           `json:"isError,omitempty"`
	DurationMs *int64          `json:"durationMs,omitempty"`

	Timestamp int64 `json:"timestamp"` // Unix milliseconds
}

// UnmarshalJSON accepts Pi's shorter forms of content: a string is one text block, null is none.
func (m *Message) UnmarshalJSON(data []byte) error {
	type plain Message
	var raw struct {
		*plain
		Content json.RawMessage `json:"content"`
	}
	*m = Message{}
	raw.plain = (*plain)(m)
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	if len(raw.Content) == 0 || string(raw.Content) == "null" {
		m.Content = []Block{}
		return nil
	}
	if raw.Content[0] == '"' {
		var text string
		if err := json.Unmarshal(raw.Content, &text); err != nil {
			return err
		}
		m.Content = []Block{{Type: BlockText, Text: text}}
		return nil
	}
	return json.Unmarshal(raw.Content, &m.Content)
}

// Failed reports whether a tool result is an error result.
func (m *Message) Failed() bool { return m.IsError != nil && *m.IsError }

// Text joins the message's text blocks with line feeds.
func (m *Message) Text() string {
	var parts []string
	for _, b := range m.Content {
		if b.Type == BlockText {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// ToolCalls returns the message's tool-call blocks in order.
func (m *Message) ToolCalls() []Block {
	var calls []Block
	for _, b := range m.Content {
		if b.Type == BlockToolCall {
			calls = append(calls, b)
		}
	}
	return calls
}
