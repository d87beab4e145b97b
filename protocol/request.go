package protocol

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol/internal/shape"
)

// SessionKey names a session.
type SessionKey struct {
	SpaceID   ID `json:"spaceId"`
	SessionID ID `json:"sessionId"`
}

// Scope gives the subscription scope of the session.
func (k SessionKey) Scope() Scope { return Scope{SpaceID: k.SpaceID, SessionID: k.SessionID} }

// SelectionSource is the draft from which a learner selected text.
type SelectionSource struct {
	Target       ContentTarget `json:"target"`
	Base         Revision      `json:"base,omitzero"`
	DraftID      ID            `json:"draftId"`
	DraftVersion Int           `json:"draftVersion" shape:"min=0"`
	Locator      *Locator      `json:"locator,omitzero"`
}

// InputPart is one part of an input: kind text, selection, reference, resource or data.
type InputPart struct {
	_              struct{}         `shape:"union=text|selection|reference|resource|data"`
	Kind           string           `json:"kind" shape:"kind"`
	Text           string           `json:"text" shape:"in=text|selection"`
	Source         *SelectionSource `json:"source" shape:"in=selection"`
	Target         *ContentTarget   `json:"target" shape:"in=reference"`
	Locator        *Locator         `json:"locator" shape:"may=reference"`
	Resource       *ResourceRef     `json:"resource" shape:"in=resource"`
	Description    *string          `json:"description" shape:"may=resource"`
	Representation *Representation  `json:"representation" shape:"in=data"`
}

// TextPart is an input part of kind text.
func TextPart(text string) InputPart { return InputPart{Kind: "text", Text: text} }

// MarshalJSONTo writes the members of the kind; members of another kind are an error.
func (p InputPart) MarshalJSONTo(enc *jsontext.Encoder) error { return shape.MarshalUnion(enc, &p) }

// Validate reports the first departure from the wire contract.
func (p InputPart) Validate() error { return validate(p) }

// Input is what a learner hands to an agent.
type Input struct {
	Parts []InputPart `json:"parts" shape:"min=1"`
}

// Dispatch says what becomes of a submission: kind start, steer (into the expected run) or queue.
type Dispatch struct {
	_             struct{} `shape:"union=start|steer|queue"`
	Kind          string   `json:"kind" shape:"kind"`
	ExpectedRunID ID       `json:"expectedRunId" shape:"in=steer"`
}

// MarshalJSONTo writes the members of the kind; members of another kind are an error.
func (d Dispatch) MarshalJSONTo(enc *jsontext.Encoder) error { return shape.MarshalUnion(enc, &d) }

// Validate reports the first departure from the wire contract.
func (d Dispatch) Validate() error { return validate(d) }

// RunSelection overrides settings for one request. A Fallback that is present and null means "no fallback".
type RunSelection struct {
	Model          *ModelSelection         `json:"model,omitzero"`
	Fallback       Nullable[ModelFallback] `json:"fallback,omitzero"`
	ThinkingLevel  ThinkingLevel           `json:"thinkingLevel,omitzero"`
	Tools          []string                `json:"tools,omitzero" shape:"unique"`
	Compaction     *CompactionOptions      `json:"compaction,omitzero"`
	Retry          *RetryOptions           `json:"retry,omitzero"`
	SummaryPrompts *SummaryPrompts         `json:"summaryPrompts,omitzero"`
	Prompts        *PromptSettings         `json:"prompts,omitzero"`
}

// Submit is the params of session.submit and, kept as it came, the payload by which a repeat is recognised.
type Submit struct {
	Target    SessionKey    `json:"target"`
	RequestID ID            `json:"requestId"`
	Input     Input         `json:"input"`
	Dispatch  Dispatch      `json:"dispatch"`
	Selection *RunSelection `json:"selection,omitzero"`
}

// ProviderModel is the older way to name a model.
type ProviderModel struct {
	Provider string `json:"provider"`
	ID       string `json:"id"`
	BaseURL  string `json:"baseUrl,omitzero"`
}

// LegacySelection is the older form of RunSelection, found in old records.
type LegacySelection struct {
	Model         *ProviderModel  `json:"model,omitzero"`
	ThinkingLevel ThinkingLevel   `json:"thinkingLevel,omitzero"`
	Tools         []string        `json:"tools,omitzero"`
	Prompts       *PromptSettings `json:"prompts,omitzero"`
}

// RecordedSelection is the selection of a recorded submission. Exactly one is set.
type RecordedSelection struct {
	_      struct{} `shape:"choice"`
	Run    *RunSelection
	Legacy *LegacySelection
}

// MarshalJSONTo writes the one that is set.
func (s RecordedSelection) MarshalJSONTo(enc *jsontext.Encoder) error {
	return shape.MarshalChoice(enc, &s)
}

// UnmarshalJSONFrom reads either.
func (s *RecordedSelection) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return shape.UnmarshalChoice(dec, s)
}

// Validate reports the first departure from the wire contract.
func (s RecordedSelection) Validate() error { return validate(s) }

// Submission is what was asked for, as recorded: a submit (Input and Dispatch) or a continue (PreviousRequestID).
type Submission struct {
	_                 struct{}           `shape:"union=submit|continue"`
	Target            SessionKey         `json:"target"`
	RequestID         ID                 `json:"requestId"`
	PreviousRequestID ID                 `json:"previousRequestId" shape:"in=continue"`
	Input             *Input             `json:"input" shape:"in=submit,may=continue"`
	Dispatch          *Dispatch          `json:"dispatch" shape:"in=submit"`
	Selection         *RecordedSelection `json:"selection,omitzero"`
}

// MarshalJSONTo writes the members of the form; a mixture is an error.
func (s Submission) MarshalJSONTo(enc *jsontext.Encoder) error { return shape.MarshalUnion(enc, &s) }

// Validate reports the first departure from the wire contract.
func (s Submission) Validate() error { return validate(s) }

// Submission gives the form in which a record keeps the payload.
func (s Submit) Submission() Submission {
	recorded := Submission{Target: s.Target, RequestID: s.RequestID, Input: &s.Input, Dispatch: &s.Dispatch}
	if s.Selection != nil {
		recorded.Selection = &RecordedSelection{Run: s.Selection}
	}
	return recorded
}

// Source is who asked: kind client, display or agent.
type Source struct {
	_          struct{} `shape:"union=client|display|agent"`
	Kind       string   `json:"kind" shape:"kind"`
	HostID     ID       `json:"hostId" shape:"in=client|display"`
	SpaceID    ID       `json:"spaceId" shape:"in=display|agent"`
	InstanceID ID       `json:"instanceId" shape:"in=display"`
	SessionID  ID       `json:"sessionId" shape:"in=agent"`
	RunID      ID       `json:"runId" shape:"in=agent"`
	RequestID  ID       `json:"requestId" shape:"in=agent"`
}

// MarshalJSONTo writes the members of the kind; members of another kind are an error.
func (s Source) MarshalJSONTo(enc *jsontext.Encoder) error { return shape.MarshalUnion(enc, &s) }

// Validate reports the first departure from the wire contract.
func (s Source) Validate() error { return validate(s) }

// DeliveryStatus says whether an input stands in the history.
type DeliveryStatus string

// States of delivery into the history.
const (
	DeliveryPending    DeliveryStatus = "pending"
	DeliveryEntered    DeliveryStatus = "entered"
	DeliveryNotEntered DeliveryStatus = "not_entered"
)

// RequestDelivery says whether the input stands in the history: pending, entered (as these messages) or not_entered (why).
type RequestDelivery struct {
	_          struct{}       `shape:"union=pending|entered|not_entered"`
	Status     DeliveryStatus `json:"status" shape:"kind"`
	MessageIDs []ID           `json:"messageIds" shape:"in=entered"`
	Reason     string         `json:"reason" shape:"in=not_entered"`
}

// MarshalJSONTo writes the members of the status; members of another status are an error.
func (d RequestDelivery) MarshalJSONTo(enc *jsontext.Encoder) error {
	return shape.MarshalUnion(enc, &d)
}

// Validate reports the first departure from the wire contract.
func (d RequestDelivery) Validate() error { return validate(d) }

// RequestStatus is the state of a request.
type RequestStatus string

// States of a request.
const (
	RequestQueued      RequestStatus = "queued"
	RequestRunning     RequestStatus = "running"
	RequestCompleted   RequestStatus = "completed"
	RequestCancelled   RequestStatus = "cancelled"
	RequestFailed      RequestStatus = "failed"
	RequestInterrupted RequestStatus = "interrupted"
	RequestNotEntered  RequestStatus = "not_entered"
)

// ShapeValues lists the states.
func (RequestStatus) ShapeValues() []string {
	return []string{"queued", "running", "completed", "cancelled", "failed", "interrupted", "not_entered"}
}

// ContinuationKind is why a request continues another by itself.
type ContinuationKind string

// ModelFallbackContinuation continues at the next model after a passing failure.
const ModelFallbackContinuation ContinuationKind = "model_fallback"

// ShapeValues lists the kinds.
func (ContinuationKind) ShapeValues() []string { return []string{"model_fallback"} }

// Continuation links a request to the one that it continues by itself.
type Continuation struct {
	Kind              ContinuationKind `json:"kind"`
	PreviousRequestID ID               `json:"previousRequestId"`
}

// RunOptions are the settings that a run was bound to.
type RunOptions struct {
	Model          *ProviderModel      `json:"model,omitzero"`
	ThinkingLevel  ThinkingLevel       `json:"thinkingLevel,omitzero"`
	Tools          []string            `json:"tools,omitzero"`
	Connection     *ModelBinding       `json:"connection,omitzero"`
	Fallback       *BoundModelFallback `json:"fallback,omitzero"`
	Compaction     *CompactionOptions  `json:"compaction,omitzero"`
	Retry          *RetryOptions       `json:"retry,omitzero"`
	SummaryPrompts *SummaryPrompts     `json:"summaryPrompts,omitzero"`
	Sources        []SettingSource     `json:"sources,omitzero"`
}

// Request is the durable record of one admission.
type Request struct {
	RequestID          ID               `json:"requestId"`
	Target             SessionKey       `json:"target"`
	Submission         Submission       `json:"submission"`
	Input              Input            `json:"input"`
	CreatedAt          Millis           `json:"createdAt"`
	Sequence           Int              `json:"sequence" shape:"min=0"`
	Source             Source           `json:"source"`
	PromptSettings     PromptSettings   `json:"promptSettings"`
	RunOptions         RunOptions       `json:"runOptions"`
	Prompt             *AssembledPrompt `json:"prompt,omitzero"`
	ModelAttempts      []ModelAttempt   `json:"modelAttempts,omitzero"`
	FallbackRequestID  ID               `json:"fallbackRequestId,omitzero"`
	Continuation       *Continuation    `json:"continuation,omitzero"`
	InteractionReplies []ReplyReceipt   `json:"interactionReplies,omitzero"`
	Status             RequestStatus    `json:"status"`
	Delivery           RequestDelivery  `json:"delivery"`
	RunID              ID               `json:"runId,omitzero"`
	Error              *Failure         `json:"error,omitzero"`
}

// BackgroundStatus is the state of a background request.
type BackgroundStatus string

// ShapeValues lists the states.
func (BackgroundStatus) ShapeValues() []string {
	return []string{"accepted", "running", "cancelling", "completed", "cancelled", "failed", "interrupted"}
}

// active says whether the work still goes on.
func (s BackgroundStatus) active() bool {
	return s == "accepted" || s == "running" || s == "cancelling"
}

// BackgroundRequest is admitted work without a session.
type BackgroundRequest struct {
	RequestID          ID               `json:"requestId"`
	SpaceID            ID               `json:"spaceId,omitzero"`
	Operation          string           `json:"operation"`
	Input              Input            `json:"input"`
	Options            jsontext.Value   `json:"options,omitzero"`
	Configuration      jsontext.Value   `json:"configuration,omitzero"`
	ModelAttempts      []ModelAttempt   `json:"modelAttempts,omitzero"`
	CreatedAt          Millis           `json:"createdAt"`
	FinishedAt         Millis           `json:"finishedAt,omitzero"`
	Status             BackgroundStatus `json:"status"`
	Progress           string           `json:"progress,omitzero"`
	Interactions       []Interaction    `json:"interactions"`
	InteractionReplies []ReplyReceipt   `json:"interactionReplies,omitzero"`
	Result             *Representation  `json:"result,omitzero"`
	Error              *Failure         `json:"error,omitzero"`
}

// UnknownWord is the status of what a space has no record of.
type UnknownWord string

// Unknown is its only value.
const Unknown UnknownWord = "unknown"

// ShapeValues lists the word.
func (UnknownWord) ShapeValues() []string { return []string{"unknown"} }

// UnknownRequest says that there is no record under that request id.
type UnknownRequest struct {
	RequestID ID          `json:"requestId"`
	Status    UnknownWord `json:"status"`
}

// RequestRecord is the result of request.get. Exactly one is set.
type RequestRecord struct {
	_          struct{} `shape:"choice"`
	Request    *Request
	Background *BackgroundRequest
	Unknown    *UnknownRequest
}

// MarshalJSONTo writes the one that is set.
func (r RequestRecord) MarshalJSONTo(enc *jsontext.Encoder) error {
	return shape.MarshalChoice(enc, &r)
}

// UnmarshalJSONFrom reads any of them.
func (r *RequestRecord) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return shape.UnmarshalChoice(dec, r)
}

// Validate reports the first departure from the wire contract.
func (r RequestRecord) Validate() error { return validate(r) }
