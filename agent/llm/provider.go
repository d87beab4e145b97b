package llm

import (
	"context"
	"encoding/json"
)

// ToolSpec declares a tool to the model. Parameters is a JSON Schema of type object.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// Request is the complete input of one model call. Providers do not change it.
type Request struct {
	Model     string
	System    string    // empty: no system message is sent
	Messages  []Message // user, assistant and toolResult messages, oldest first
	Tools     []ToolSpec
	MaxTokens int    // 0: the provider's default
	Thinking  string // off, minimal, low, medium, high, xhigh, max; empty: the model's default
	SessionID string // a stable key for the provider's prompt cache; may be empty
	NoImages  bool   // the model takes no images: they are sent as a placeholder text
}

// EventType tells what an Event reports.
type EventType uint8

const (
	// EventStart: the provider answered; Message in progress is empty. Sent once, before any other event.
	EventStart EventType = iota
	// EventDelta: Text was added to block Index of type Block (text, thinking, or the raw JSON of a tool call's arguments).
	EventDelta
	// EventBlock: block Index is complete; Done holds it. The event is authoritative over its deltas.
	EventBlock
	// EventNotice: Text tells people about something that does not end the call (a retry).
	EventNotice
)

// Event is one step of an answer. Index counts the blocks of the final Message's content from 0 and never decreases
// between EventBlock events of sequential blocks; providers may interleave blocks.
type Event struct {
	Type  EventType
	Index int
	Block BlockType
	Text  string
	Done  *Block
}

// Provider speaks one wire format to one endpoint with one credential. It is safe for concurrent use.
type Provider interface {
	// Stream performs one model call. It calls emit for each event, in order, from one goroutine at a time, and returns when
	// the answer is complete, failed or ctx is done. The Message is never nil. When err is not nil it is an *Error, and the
	// message's StopReason is error or aborted and its ErrorMessage the same text.
	Stream(ctx context.Context, req *Request, emit func(Event)) (*Message, error)
}
