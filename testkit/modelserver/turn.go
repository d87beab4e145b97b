package modelserver

import (
	"net/http"
	"time"
)

// CutAtStart as CutAfter cuts the connection before the first byte of the body.
const CutAtStart = -2

// ToolCall is a call that the model makes. Args is sent as it is, so it may be malformed; Gemini cannot carry that and reports
// MALFORMED_FUNCTION_CALL instead.
type ToolCall struct {
	ID   string // "-" sends none
	Name string
	Args string
}

// Usage is counted as this project does: Input without what the cache held, Reasoning as a part of Output.
type Usage struct {
	Input, Output, CacheRead, CacheWrite, Reasoning int64
}

// Turn is the answer to one request. The zero value is an empty answer that ends regularly.
type Turn struct {
	Thinking  string
	Signature string // of the thinking and of the first tool call; "" is "c2lnbmVk" where there is thinking
	Redacted  string // the data of a redacted thinking block; Anthropic only
	Chunks    []string
	ToolCalls []ToolCall
	Usage     Usage
	// StopReason is stop, length or toolUse, which are translated, or sent as it is. Empty: toolUse with tool calls, else stop.
	StopReason string

	// Status other than 0 and 200 is an HTTP error with ErrorBody, or with Error in the shape of the wire format.
	Status     int
	Error      string
	ErrorBody  string
	RetryAfter string // the header's value
	Header     http.Header

	MidStreamError string        // an error event after the chunks, and nothing behind it
	Garbage        []byte        // the whole body of an answer with status 200, instead of a stream
	CutAfter       int           // break the connection after so many bytes of the body; 0 and -1: never; see CutAtStart
	CutClean       bool          // end the body regularly at CutAfter, as a proxy does that lost its server
	Delay          time.Duration // before each chunk
	Hold           string        // stand still before the end until Release of this name, or until the client leaves
}

// Text is a turn that says text.
func Text(chunks ...string) Turn { return Turn{Chunks: chunks} }

// Calls is a turn that calls tools.
func Calls(calls ...ToolCall) Turn { return Turn{ToolCalls: calls} }

func (t *Turn) reason() string {
	if t.StopReason == "" && len(t.ToolCalls) > 0 {
		return "toolUse"
	}
	if t.StopReason == "" {
		return "stop"
	}
	return t.StopReason
}

func (t *Turn) signature() string {
	if t.Signature == "" && t.Thinking != "" {
		return "c2lnbmVk"
	}
	return t.Signature
}

// pieces cuts tool arguments in two, so that readers have to join them.
func pieces(args string) []string {
	runes := []rune(args)
	if len(runes) < 2 {
		return []string{args}
	}
	half := len(runes) / 2
	return []string{string(runes[:half]), string(runes[half:])}
}

func (c ToolCall) id() string {
	if c.ID == "-" {
		return ""
	}
	return c.ID
}
