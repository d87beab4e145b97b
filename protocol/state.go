package protocol

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol/internal/shape"
)

// Lifecycle is the state of the backend.
type Lifecycle string

// States of the backend, in the order in which they come.
const (
	LifecycleRunning  Lifecycle = "running"
	LifecycleDraining Lifecycle = "draining"
	LifecycleStopping Lifecycle = "stopping"
	LifecycleStopped  Lifecycle = "stopped"
)

// ShapeValues lists the states.
func (Lifecycle) ShapeValues() []string {
	return []string{"running", "draining", "stopping", "stopped"}
}

// Snapshot is everything that a subscriber of a scope sees at one moment.
type Snapshot struct {
	Lifecycle  Lifecycle           `json:"lifecycle"`
	Spaces     []Space             `json:"spaces"`
	Sessions   []SessionView       `json:"sessions"`
	Processing []BackgroundRequest `json:"processing,omitzero"`
	Execution  []ExecutionView     `json:"execution,omitzero"`
}

// CapabilityContract names a contract and its version.
type CapabilityContract struct {
	ID      string `json:"id" shape:"min=1,max=256"`
	Version string `json:"version" shape:"min=1,max=256"`
}

// CapabilityScope is where a capability event belongs: application or space.
type CapabilityScope struct {
	_       struct{} `shape:"union=application|space"`
	Kind    string   `json:"kind" shape:"kind"`
	SpaceID ID       `json:"spaceId" shape:"in=space"`
}

// MarshalJSONTo writes the members of the kind; members of the other kind are an error.
func (s CapabilityScope) MarshalJSONTo(enc *jsontext.Encoder) error {
	return shape.MarshalUnion(enc, &s)
}

// Validate reports the first departure from the wire contract.
func (s CapabilityScope) Validate() error { return validate(s) }

// CapabilityEvent is something that a capability tells front ends.
type CapabilityEvent struct {
	Scope     CapabilityScope    `json:"scope"`
	PluginID  ID                 `json:"pluginId"`
	RequestID ID                 `json:"requestId"`
	Source    Source             `json:"source"`
	Format    CapabilityContract `json:"format"`
	Data      jsontext.Value     `json:"data"`
}

// ChangeType is the type of a Change.
type ChangeType string

// Types of a change.
const (
	ChangeCapability      ChangeType = "capability"
	ChangeConnection      ChangeType = "connection"
	ChangeSessionRemoved  ChangeType = "session_removed"
	ChangeContent         ChangeType = "content"
	ChangeSettings        ChangeType = "settings"
	ChangeLifecycle       ChangeType = "lifecycle"
	ChangeSpace           ChangeType = "space"
	ChangeSession         ChangeType = "session"
	ChangeMessage         ChangeType = "message"
	ChangeDelta           ChangeType = "delta"
	ChangeRun             ChangeType = "run"
	ChangeRequest         ChangeType = "request"
	ChangeProcessing      ChangeType = "processing"
	ChangeExecution       ChangeType = "execution"
	ChangeExecutionOutput ChangeType = "execution_output"
	ChangeQueue           ChangeType = "queue"
	ChangeInteraction     ChangeType = "interaction"
	ChangeNotice          ChangeType = "notice"
	ChangeTool            ChangeType = "tool"
)

// DeltaKind is the kind of block that a delta adds to.
type DeltaKind string

// ShapeValues lists the kinds.
func (DeltaKind) ShapeValues() []string { return []string{"text", "thinking"} }

// Stream is an output of a command.
type Stream string

// ShapeValues lists the outputs.
func (Stream) ShapeValues() []string { return []string{"stdout", "stderr"} }

// ToolStatus is the state of a tool call.
type ToolStatus string

// States of a tool call.
const (
	ToolRunning   ToolStatus = "running"
	ToolCompleted ToolStatus = "completed"
	ToolFailed    ToolStatus = "failed"
)

// ShapeValues lists the states.
func (ToolStatus) ShapeValues() []string { return []string{"running", "completed", "failed"} }

// Change is one thing that happened. Type says which members belong to it; a nil Interaction in a change of type
// interaction means that the question is gone.
type Change struct {
	_            struct{}             `shape:"union=capability|connection|session_removed|content|settings|lifecycle|space|session|message|delta|run|request|processing|execution|execution_output|queue|interaction|notice|tool"`
	Type         ChangeType           `json:"type" shape:"kind"`
	SpaceID      ID                   `json:"spaceId" shape:"in=session_removed|content|message|delta|execution_output|interaction|notice|tool"`
	SessionID    ID                   `json:"sessionId" shape:"in=session_removed|message|delta|interaction|notice|tool"`
	Lifecycle    Lifecycle            `json:"lifecycle" shape:"in=lifecycle"`
	Space        *Space               `json:"space" shape:"in=space"`
	Session      *SessionView         `json:"session" shape:"in=session"`
	Message      *Message             `json:"message" shape:"in=message"`
	Replaces     string               `json:"replaces" shape:"may=message"`
	MessageID    string               `json:"messageId" shape:"in=delta"`
	Index        Int                  `json:"index" shape:"in=delta,min=0"`
	Kind         DeltaKind            `json:"kind" shape:"in=delta"`
	Text         string               `json:"text" shape:"in=delta|execution_output"`
	Run          *Run                 `json:"run" shape:"in=run"`
	Request      *Request             `json:"request" shape:"in=request"`
	Processing   *BackgroundRequest   `json:"-" shape:"name=request,in=processing"`
	Queue        *Queue               `json:"queue" shape:"in=queue"`
	ID           ID                   `json:"id" shape:"in=interaction"`
	Interaction  *Interaction         `json:"interaction" shape:"in=interaction,null"`
	Notice       *Notice              `json:"notice" shape:"in=notice"`
	RunID        ID                   `json:"runId" shape:"in=tool"`
	CallID       string               `json:"callId" shape:"in=tool"`
	Name         string               `json:"name" shape:"in=tool"`
	Status       ToolStatus           `json:"status" shape:"in=tool"`
	Revision     string               `json:"revision" shape:"in=content"`
	Paths        []string             `json:"paths" shape:"in=content"`
	Result       *ContentChangeResult `json:"result" shape:"may=content"`
	Scope        *SettingScope        `json:"scope" shape:"in=settings"`
	Namespace    string               `json:"namespace" shape:"in=settings"`
	ConnectionID ID                   `json:"connectionId" shape:"in=connection"`
	Event        *CapabilityEvent     `json:"event" shape:"in=capability"`
	Execution    *ExecutionView       `json:"execution" shape:"in=execution"`
	RequestID    ID                   `json:"requestId" shape:"in=execution_output"`
	Source       *Source              `json:"source" shape:"in=execution_output"`
	ExecID       ID                   `json:"execId" shape:"in=execution_output"`
	Stream       Stream               `json:"stream" shape:"in=execution_output"`
}

// MarshalJSONTo writes the members of the type; members of another type are an error.
func (c Change) MarshalJSONTo(enc *jsontext.Encoder) error { return shape.MarshalUnion(enc, &c) }

// UnmarshalJSONFrom reads the members of the type.
func (c *Change) UnmarshalJSONFrom(dec *jsontext.Decoder) error { return shape.UnmarshalUnion(dec, c) }

// Validate reports the first departure from the wire contract.
func (c Change) Validate() error { return validate(c) }

// Delivery is what one subscription.update carries: a snapshot, or the changes since PreviousCursor.
type Delivery struct {
	_              struct{}  `shape:"union=snapshot|changes"`
	Type           string    `json:"type" shape:"kind"`
	PreviousCursor string    `json:"previousCursor" shape:"in=changes"`
	Cursor         string    `json:"cursor"`
	Snapshot       *Snapshot `json:"snapshot" shape:"in=snapshot"`
	Changes        []Change  `json:"changes" shape:"in=changes"`
}

// MarshalJSONTo writes the members of the type; members of the other type are an error.
func (d Delivery) MarshalJSONTo(enc *jsontext.Encoder) error { return shape.MarshalUnion(enc, &d) }

// Validate reports the first departure from the wire contract.
func (d Delivery) Validate() error { return validate(d) }

// SubscriptionUpdate is the params of the notification subscription.update.
type SubscriptionUpdate struct {
	ID       ID       `json:"id"`
	Delivery Delivery `json:"delivery"`
}

// UpdateNotification is the only notification that a server sends.
const UpdateNotification = "subscription.update"
