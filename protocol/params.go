package protocol

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol/internal/shape"
)

// InitializeParams opens a connection: the versions that the front end speaks, the token, and the key of an earlier host to be it again.
type InitializeParams struct {
	Versions []Int   `json:"versions"`
	Token    string  `json:"token"`
	HostKey  HostKey `json:"hostKey,omitzero"`
}

// InitializeResult is the agreed version and who both sides are.
type InitializeResult struct {
	Version      Int      `json:"version"`
	ServerID     ID       `json:"serverId"`
	Capabilities []string `json:"capabilities"`
	HostKey      string   `json:"hostKey"`
}

// ShutdownMode says what becomes of running work: drain lets it end, cancel stops it.
type ShutdownMode string

// Modes of a shutdown.
const (
	ShutdownDrain  ShutdownMode = "drain"
	ShutdownCancel ShutdownMode = "cancel"
)

// ShapeValues lists the modes.
func (ShutdownMode) ShapeValues() []string { return []string{"drain", "cancel"} }

// ShutdownParams are the params of shutdown.
type ShutdownParams struct {
	Mode ShutdownMode `json:"mode"`
}

// SpaceOpenParams are the params of space.open.
type SpaceOpenParams struct {
	Path string `json:"path" shape:"min=1"`
}

// SpaceParams name a space.
type SpaceParams struct {
	SpaceID ID `json:"spaceId"`
}

// HistoryParams ask for a piece of a history: its tail, what is Before a message, or what is Around one. Before and Around exclude each other.
type HistoryParams struct {
	_         struct{} `shape:"union=tail|before|around"`
	SpaceID   ID       `json:"spaceId"`
	SessionID ID       `json:"sessionId"`
	Before    ID       `json:"before" shape:"in=before"`
	Around    ID       `json:"around" shape:"in=around"`
	Revision  Revision `json:"revision,omitzero"`
	Limit     Int      `json:"limit,omitzero" shape:"min=1,max=200"`
}

// Limits of HistoryParams.Limit, which is HistoryLimitDefault when absent: version 1 fixes them.
const (
	HistoryLimitDefault = 100
	HistoryLimitMax     = 200
)

// MarshalJSONTo writes the members that are set; Before together with Around is an error.
func (p HistoryParams) MarshalJSONTo(enc *jsontext.Encoder) error {
	return shape.MarshalUnion(enc, &p)
}

// Validate reports the first departure from the wire contract.
func (p HistoryParams) Validate() error { return validate(p) }

// HistoryResult is a piece of a history, oldest first. Before is set when there is more before it.
type HistoryResult struct {
	Revision Revision  `json:"revision"`
	Messages []Message `json:"messages"`
	Before   ID        `json:"before,omitzero"`
}

// RunSubmitParams are the params of run.submit, the short form of session.submit.
type RunSubmitParams struct {
	SpaceID   ID     `json:"spaceId"`
	SessionID ID     `json:"sessionId"`
	RequestID ID     `json:"requestId"`
	Text      string `json:"text" shape:"min=1"`
}

// Submit gives the submission that the short form stands for: one text part, dispatch start.
func (p RunSubmitParams) Submit() Submit {
	return Submit{
		Target:    SessionKey{SpaceID: p.SpaceID, SessionID: p.SessionID},
		RequestID: p.RequestID,
		Input:     Input{Parts: []InputPart{TextPart(p.Text)}},
		Dispatch:  Dispatch{Kind: "start"},
	}
}

// RunParams name a run by its own id or by the id of a request that entered it. Exactly one is set.
type RunParams struct {
	_         struct{} `shape:"union=run|request"`
	SpaceID   ID       `json:"spaceId"`
	RunID     ID       `json:"runId" shape:"in=run"`
	RequestID ID       `json:"requestId" shape:"in=request"`
}

// MarshalJSONTo writes the id that is set; both together are an error.
func (p RunParams) MarshalJSONTo(enc *jsontext.Encoder) error { return shape.MarshalUnion(enc, &p) }

// Validate reports the first departure from the wire contract.
func (p RunParams) Validate() error { return validate(p) }

// RequestGetParams are the params of request.get. Without a space they mean the application's own background requests.
type RequestGetParams struct {
	SpaceID   ID `json:"spaceId,omitzero"`
	RequestID ID `json:"requestId"`
}

// StateParams are the params of state.get.
type StateParams struct {
	Scope Scope `json:"scope"`
}

// SubscribeParams are the params of subscription.start. A nil Cursor asks for a snapshot.
type SubscribeParams struct {
	ID     ID      `json:"id"`
	Scope  Scope   `json:"scope"`
	Cursor *string `json:"cursor,omitzero"`
}

// UnsubscribeParams are the params of subscription.stop.
type UnsubscribeParams struct {
	ID ID `json:"id"`
}

// ModelListParams are the params of model.list.
type ModelListParams struct {
	ConnectionID ID `json:"connectionId"`
}

// LendParams are the params of connection.lend: a model connection for the life of the backend, never written to disk.
type LendParams struct {
	Provider string `json:"provider" shape:"min=1"`
	BaseURL  string `json:"baseUrl,omitzero" shape:"min=1"`
	Secret   string `json:"secret,omitzero" shape:"min=1"`
}

// LendResult names the lent connection.
type LendResult struct {
	ConnectionID ID `json:"connectionId"`
}

// CollectResult says what a collection freed: objects, and bytes on the disk.
type CollectResult struct {
	Removed Int `json:"removed" shape:"min=0"`
	Bytes   Int `json:"bytes" shape:"min=0"`
}
