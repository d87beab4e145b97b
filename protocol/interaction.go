package protocol

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol/internal/shape"
)

// InteractionKind is the form of a question.
type InteractionKind string

// Forms of a question.
const (
	InteractionSelect  InteractionKind = "select"
	InteractionConfirm InteractionKind = "confirm"
	InteractionInput   InteractionKind = "input"
	InteractionEditor  InteractionKind = "editor"
)

// ShapeValues lists the forms.
func (InteractionKind) ShapeValues() []string {
	return []string{"select", "confirm", "input", "editor"}
}

// Interaction is an open question to the learner. It belongs to a run (SessionID and RunID) or to a background request (RequestID).
type Interaction struct {
	_            struct{}           `shape:"union=session|background"`
	ID           ID                 `json:"id"`
	Kind         InteractionKind    `json:"kind"`
	Title        string             `json:"title"`
	Message      string             `json:"message,omitzero"`
	Options      []string           `json:"options,omitzero"`
	InitialValue string             `json:"initialValue,omitzero"`
	ExpiresAt    Millis             `json:"expiresAt,omitzero"`
	Execution    *ExecutionApproval `json:"execution,omitzero"`
	SpaceID      ID                 `json:"spaceId" shape:"in=session,may=background"`
	SessionID    ID                 `json:"sessionId" shape:"in=session"`
	RunID        ID                 `json:"runId" shape:"in=session"`
	RequestID    ID                 `json:"requestId" shape:"in=background"`
}

// MarshalJSONTo writes the members of the owner; a mixture is an error.
func (i Interaction) MarshalJSONTo(enc *jsontext.Encoder) error { return shape.MarshalUnion(enc, &i) }

// Validate reports the first departure from the wire contract.
func (i Interaction) Validate() error { return validate(i) }

// Reply is the answer to a question: text, yes or no, or (with neither set) "dismissed", which is null on the wire.
type Reply struct {
	_         struct{} `shape:"choice,null"`
	Text      *string
	Confirmed *bool
}

// MarshalJSONTo writes the one that is set, or null.
func (r Reply) MarshalJSONTo(enc *jsontext.Encoder) error { return shape.MarshalChoice(enc, &r) }

// UnmarshalJSONFrom reads any of the three.
func (r *Reply) UnmarshalJSONFrom(dec *jsontext.Decoder) error { return shape.UnmarshalChoice(dec, r) }

// Validate reports the first departure from the wire contract.
func (r Reply) Validate() error { return validate(r) }

// ReplyReceipt is the record of an accepted reply.
type ReplyReceipt struct {
	ID         ID     `json:"id"`
	ResponseID ID     `json:"responseId"`
	Value      Reply  `json:"value"`
	AcceptedAt Millis `json:"acceptedAt"`
}

// ExecutionPolicy says what a command may touch: restricted to paths and network, or full-access.
type ExecutionPolicy struct {
	_          struct{} `shape:"union=restricted|full-access"`
	Mode       string   `json:"mode" shape:"kind"`
	ReadPaths  []Path   `json:"readPaths" shape:"in=restricted,unique"`
	WritePaths []Path   `json:"writePaths" shape:"in=restricted,unique"`
	Network    bool     `json:"network" shape:"in=restricted"`
}

// MarshalJSONTo writes the members of the mode; members of the other mode are an error.
func (p ExecutionPolicy) MarshalJSONTo(enc *jsontext.Encoder) error {
	return shape.MarshalUnion(enc, &p)
}

// Validate reports the first departure from the wire contract.
func (p ExecutionPolicy) Validate() error { return validate(p) }

// Path is a file path that is not empty.
type Path string

// ShapeText states the rule of a Path to the shape check.
func (Path) ShapeText() shape.Text { return shape.Text{Min: 1} }

// ApprovalLifetime says how long an approval holds.
type ApprovalLifetime string

// ShapeValues lists the only one.
func (ApprovalLifetime) ShapeValues() []string { return []string{"once"} }

// ExecutionApproval is a command that waits for consent.
type ExecutionApproval struct {
	ExecutionID ID               `json:"executionId"`
	Command     string           `json:"command"`
	Cwd         string           `json:"cwd"`
	Policy      ExecutionPolicy  `json:"policy"`
	Lifetime    ApprovalLifetime `json:"lifetime"`
}

// ExecutionStatus is the state of a command.
type ExecutionStatus string

// ShapeValues lists the states.
func (ExecutionStatus) ShapeValues() []string {
	return []string{"authorizing", "running", "cancelling", "completed", "failed", "cancelled"}
}

// active says whether the command still goes on.
func (s ExecutionStatus) active() bool {
	return s == "authorizing" || s == "running" || s == "cancelling"
}

// ExecutionView is a command as its watchers see it.
type ExecutionView struct {
	ID                ID              `json:"id"`
	SpaceID           ID              `json:"spaceId"`
	RequestID         ID              `json:"requestId"`
	Source            Source          `json:"source"`
	Command           string          `json:"command"`
	Cwd               string          `json:"cwd"`
	Policy            ExecutionPolicy `json:"policy"`
	ProtectedPaths    []Path          `json:"protectedPaths" shape:"unique"`
	Status            ExecutionStatus `json:"status"`
	CreatedAt         Millis          `json:"createdAt"`
	StartedAt         Millis          `json:"startedAt,omitzero"`
	FinishedAt        Millis          `json:"finishedAt,omitzero"`
	Pid               Int             `json:"pid,omitzero" shape:"min=1"`
	ExitCode          *Int            `json:"exitCode,omitzero"`
	TerminationSignal string          `json:"terminationSignal,omitzero"`
	Output            string          `json:"output"`
	Truncated         bool            `json:"truncated"`
	FullOutput        *ResourceRef    `json:"fullOutput,omitzero"`
	Resources         []ResourceRef   `json:"resources,omitzero"`
	Error             *Failure        `json:"error,omitzero"`
}
