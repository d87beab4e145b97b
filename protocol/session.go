package protocol

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol/internal/shape"
)

// Space is an open learning space.
type Space struct {
	ID              ID     `json:"id"`
	Path            string `json:"path"`
	ContentRevision string `json:"contentRevision,omitzero"`
}

// Role is who a message is from.
type Role string

// Roles of a message.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
	RoleContext   Role = "context"
)

// ShapeValues lists the roles.
func (Role) ShapeValues() []string { return []string{"user", "assistant", "tool", "context"} }

// BlockType is the type of a Block.
type BlockType string

// Types of a block.
const (
	BlockText      BlockType = "text"
	BlockThinking  BlockType = "thinking"
	BlockToolCall  BlockType = "tool_call"
	BlockResource  BlockType = "resource"
	BlockExtension BlockType = "extension"
)

// Block is one piece of a message.
type Block struct {
	_         struct{}       `shape:"union=text|thinking|tool_call|resource|extension"`
	Type      BlockType      `json:"type" shape:"kind"`
	Text      string         `json:"text" shape:"in=text|thinking"`
	ID        string         `json:"id" shape:"in=tool_call"`
	Name      string         `json:"name" shape:"in=tool_call"`
	Arguments jsontext.Value `json:"arguments" shape:"in=tool_call"`
	Resource  *ResourceRef   `json:"resource" shape:"in=resource"`
	Data      jsontext.Value `json:"data" shape:"in=extension"`
}

// TextBlock is a block of type text.
func TextBlock(text string) Block { return Block{Type: BlockText, Text: text} }

// MarshalJSONTo writes the members of the type; members of another type are an error.
func (b Block) MarshalJSONTo(enc *jsontext.Encoder) error { return shape.MarshalUnion(enc, &b) }

// Validate reports the first departure from the wire contract.
func (b Block) Validate() error { return validate(b) }

// Message is one message of a session's history, or one that is still being written (Streaming).
type Message struct {
	ID         string         `json:"id"`
	Role       Role           `json:"role"`
	Content    []Block        `json:"content"`
	Timestamp  Millis         `json:"timestamp"`
	RequestID  ID             `json:"requestId,omitzero"`
	ToolCallID string         `json:"toolCallId,omitzero"`
	Name       string         `json:"name,omitzero"`
	Error      string         `json:"error,omitzero"`
	Details    jsontext.Value `json:"details,omitzero"`
	Streaming  bool           `json:"streaming,omitzero"`
}

// RunStatus is the state of a run.
type RunStatus string

// States of a run; the last four are final.
const (
	RunAccepted    RunStatus = "accepted"
	RunRunning     RunStatus = "running"
	RunWaiting     RunStatus = "waiting"
	RunCancelling  RunStatus = "cancelling"
	RunCompleted   RunStatus = "completed"
	RunCancelled   RunStatus = "cancelled"
	RunFailed      RunStatus = "failed"
	RunInterrupted RunStatus = "interrupted"
)

// ShapeValues lists the states.
func (RunStatus) ShapeValues() []string {
	return []string{"accepted", "running", "waiting", "cancelling", "completed", "cancelled", "failed", "interrupted"}
}

// Terminal says whether the run is over.
func (s RunStatus) Terminal() bool {
	return s == RunCompleted || s == RunCancelled || s == RunFailed || s == RunInterrupted
}

// RunPhase is what a run is busy with.
type RunPhase string

// Phases of a run.
const (
	PhasePreparing  RunPhase = "preparing"
	PhaseModel      RunPhase = "model"
	PhaseTool       RunPhase = "tool"
	PhaseRetry      RunPhase = "retry"
	PhaseCompaction RunPhase = "compaction"
	PhaseIdle       RunPhase = "idle"
)

// ShapeValues lists the phases.
func (RunPhase) ShapeValues() []string {
	return []string{"preparing", "model", "tool", "retry", "compaction", "idle"}
}

// Run is one execution of the agent.
type Run struct {
	SpaceID        ID               `json:"spaceId"`
	SessionID      ID               `json:"sessionId"`
	ID             ID               `json:"id"`
	Text           string           `json:"text"`
	Status         RunStatus        `json:"status"`
	Phase          RunPhase         `json:"phase"`
	CreatedAt      Millis           `json:"createdAt"`
	PromptSettings *PromptSettings  `json:"promptSettings,omitzero"`
	Prompt         *AssembledPrompt `json:"prompt,omitzero"`
	RequestIDs     []ID             `json:"requestIds,omitzero"`
	Options        *RunOptions      `json:"options,omitzero"`
	FinishedAt     Millis           `json:"finishedAt,omitzero"`
	Error          *Failure         `json:"error,omitzero"`
}

// UnknownRun says that there is no run under that id.
type UnknownRun struct {
	ID     ID          `json:"id"`
	Status UnknownWord `json:"status"`
}

// RunRecord is the result of run.get. Exactly one is set.
type RunRecord struct {
	_       struct{} `shape:"choice"`
	Run     *Run
	Unknown *UnknownRun
}

// MarshalJSONTo writes the one that is set.
func (r RunRecord) MarshalJSONTo(enc *jsontext.Encoder) error { return shape.MarshalChoice(enc, &r) }

// UnmarshalJSONFrom reads either.
func (r *RunRecord) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return shape.UnmarshalChoice(dec, r)
}

// Validate reports the first departure from the wire contract.
func (r RunRecord) Validate() error { return validate(r) }

// Level is how serious a notice is.
type Level string

// Levels of a notice.
const (
	LevelInfo    Level = "info"
	LevelWarning Level = "warning"
	LevelError   Level = "error"
)

// ShapeValues lists the levels.
func (Level) ShapeValues() []string { return []string{"info", "warning", "error"} }

// Notice tells people something about a session.
type Notice struct {
	ID      string `json:"id"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Level   Level  `json:"level"`
}

// Runtime says whether a session is loaded.
type Runtime string

// States of a session's runtime.
const (
	RuntimeUnloaded Runtime = "unloaded"
	RuntimeLoading  Runtime = "loading"
	RuntimeReady    Runtime = "ready"
)

// ShapeValues lists the states.
func (Runtime) ShapeValues() []string { return []string{"unloaded", "loading", "ready"} }

// SessionSummary is a session without its messages.
type SessionSummary struct {
	SpaceID   ID      `json:"spaceId"`
	SessionID ID      `json:"sessionId"`
	Title     string  `json:"title"`
	CreatedAt Millis  `json:"createdAt"`
	UpdatedAt Millis  `json:"updatedAt"`
	Runtime   Runtime `json:"runtime"`
	ActiveRun *Run    `json:"activeRun,omitzero"`
}

// SessionView is a session as its watchers see it.
type SessionView struct {
	SpaceID      ID            `json:"spaceId"`
	SessionID    ID            `json:"sessionId"`
	Title        string        `json:"title"`
	CreatedAt    Millis        `json:"createdAt"`
	UpdatedAt    Millis        `json:"updatedAt"`
	Runtime      Runtime       `json:"runtime"`
	Messages     []Message     `json:"messages"`
	Runs         []Run         `json:"runs"`
	Interactions []Interaction `json:"interactions"`
	Notices      []Notice      `json:"notices"`
}

// Key names the session of the view.
func (v SessionView) Key() SessionKey { return SessionKey{SpaceID: v.SpaceID, SessionID: v.SessionID} }

// QueueStatus says whether queued requests start by themselves.
type QueueStatus string

// States of a queue.
const (
	QueueRunning QueueStatus = "running"
	QueuePaused  QueueStatus = "paused"
)

// ShapeValues lists the states.
func (QueueStatus) ShapeValues() []string { return []string{"running", "paused"} }

// Queue is the waiting requests of a session, next first.
type Queue struct {
	Target   SessionKey  `json:"target"`
	Status   QueueStatus `json:"status"`
	Requests []Request   `json:"requests"`
}
