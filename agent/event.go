package agent

import (
	"encoding/json"

	"github.com/repa-app/repa/agent/llm"
)

// EventType tells which fields of an Event are set.
type EventType string

const (
	EventRunStart     EventType = "run_start"
	EventRunEnd       EventType = "run_end"       // Result
	EventTurnStart    EventType = "turn_start"    // Turn
	EventTurnEnd      EventType = "turn_end"      // Turn
	EventMessageStart EventType = "message_start" // MessageID, RequestID, Message: for an assistant message still without content
	EventDelta        EventType = "delta"         // MessageID, Index, Kind (text or thinking), Text
	EventToolCall     EventType = "tool_call"     // MessageID, Index, Block: the complete call
	EventMessageEnd   EventType = "message_end"   // MessageID, EntryID, RequestID, Message: durable now
	EventToolStart    EventType = "tool_start"    // CallID, Tool, Args
	EventToolEnd      EventType = "tool_end"      // CallID, Tool, Args, IsError
	EventPhase        EventType = "phase"         // Phase
	EventNotice       EventType = "notice"        // Text, for people
)

// Phase is what a run is busy with.
type Phase string

const (
	PhaseModel Phase = "model"
	PhaseTool  Phase = "tool"
	PhaseRetry Phase = "retry"
)

// Event is one step of a run. MessageID is a live id that the loop made; EntryID is the message's id in history.
type Event struct {
	Type      EventType
	Turn      int // from 1
	MessageID string
	EntryID   string
	RequestID string
	Message   *llm.Message
	Index     int
	Kind      llm.BlockType
	Text      string
	Block     *llm.Block
	CallID    string
	Tool      string
	Args      json.RawMessage
	IsError   bool
	Phase     Phase
	Result    *Result
}
