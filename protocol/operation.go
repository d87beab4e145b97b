package protocol

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol/internal/shape"
)

// The methods about operations, the changes of content that a space keeps. operation.list, undoRun, resolve and prunePreview are extensions.
var (
	OperationGet = define[OperationParams, OperationRecord](Method{
		Name: "operation.get", Group: "operations", Gate: GateOpen, Idempotent: true,
		Errors: []Code{CodeNotFound, CodeSpaceBusy},
	})
	OperationUndo = define[OperationUndoParams, ContentChangeResult](Method{
		Name: "operation.undo", Group: "operations", Gate: GateRunning, Idempotent: true,
		Errors: []Code{CodeNotFound, CodeRevisionConflict, CodeOperationIdConflict, CodeHistoryPruned, CodeRecoveryRequired, CodeSpaceBusy},
	})
	OperationReconcile = define[OperationParams, ContentOperation](Method{
		Name: "operation.reconcile", Group: "operations", Gate: GateRunning, Idempotent: true,
		Errors: []Code{CodeNotFound, CodeRecoveryRequired, CodeSpaceBusy},
	})
	OperationPrune = define[OperationPruneParams, []ID](Method{
		Name: "operation.prune", Group: "operations", Gate: GateRunning, Idempotent: true,
		Errors: []Code{CodeRecoveryRequired, CodeNotFound, CodeSpaceBusy},
	})
	OperationList = define[OperationListParams, OperationListResult](Method{
		Name: "operation.list", Group: "operations", Gate: GateOpen, Idempotent: true, Extension: true,
		Errors: []Code{CodeNotFound, CodeInvalidInput, CodeInvalidCursor, CodeSpaceBusy},
	})
	OperationUndoRun = define[OperationUndoRunParams, OperationUndoRunResult](Method{
		Name: "operation.undoRun", Group: "operations", Gate: GateRunning, Idempotent: true, Extension: true,
		Errors: []Code{CodeNotFound, CodeRevisionConflict, CodeOperationIdConflict, CodeHistoryPruned, CodeRecoveryRequired, CodeOperationFailed, CodeSpaceBusy},
	})
	OperationResolve = define[OperationResolveParams, ContentOperation](Method{
		Name: "operation.resolve", Group: "operations", Gate: GateRunning, Idempotent: true, Extension: true,
		Errors: []Code{CodeNotFound, CodeInvalidInput, CodeRevisionUnavailable, CodeRecoveryRequired, CodeSpaceBusy},
	})
	OperationPrunePreview = define[OperationPrunePreviewParams, OperationPrunePreviewResult](Method{
		Name: "operation.prunePreview", Group: "operations", Gate: GateOpen, Idempotent: true, Extension: true,
		Errors: []Code{CodeNotFound, CodePermissionRequired, CodeInvalidInput, CodeSpaceBusy},
	})
)

// OperationStatus is how far an operation is.
type OperationStatus string

// States of an operation.
const (
	OperationPrepared      OperationStatus = "prepared"
	OperationCommitted     OperationStatus = "committed"
	OperationRolledBack    OperationStatus = "rolled_back"
	OperationNeedsRecovery OperationStatus = "needs_recovery"
	OperationReconciled    OperationStatus = "reconciled"
)

// ShapeValues lists the states.
func (OperationStatus) ShapeValues() []string {
	return []string{"prepared", "committed", "rolled_back", "needs_recovery", "reconciled"}
}

// OperationParams name an operation.
type OperationParams struct {
	SpaceID     ID `json:"spaceId"`
	OperationID ID `json:"operationId"`
}

// ContentOperation is the record of an operation. Conflicts are the paths that keep it from being settled.
type ContentOperation struct {
	OperationID ID                   `json:"operationId"`
	Status      OperationStatus      `json:"status"`
	CreatedAt   Millis               `json:"createdAt"`
	Result      *ContentChangeResult `json:"result,omitzero"`
	Error       string               `json:"error,omitzero"`
	Conflicts   []string             `json:"conflicts"`
	RepairedBy  ID                   `json:"repairedBy,omitzero"`
}

// Absence is why there is no record: there never was one, or it was pruned.
type Absence string

// Absences.
const (
	AbsenceUnknown Absence = "unknown"
	AbsencePruned  Absence = "pruned"
)

// ShapeValues lists the absences.
func (Absence) ShapeValues() []string { return []string{"unknown", "pruned"} }

// AbsentOperation says that there is no record under an id.
type AbsentOperation struct {
	OperationID ID      `json:"operationId"`
	Status      Absence `json:"status"`
}

// OperationRecord is the result of operation.get. Exactly one is set.
type OperationRecord struct {
	_         struct{} `shape:"choice"`
	Operation *ContentOperation
	Absent    *AbsentOperation
}

// MarshalJSONTo writes the one that is set.
func (r OperationRecord) MarshalJSONTo(enc *jsontext.Encoder) error {
	return shape.MarshalChoice(enc, &r)
}

// UnmarshalJSONFrom reads either.
func (r *OperationRecord) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return shape.UnmarshalChoice(dec, r)
}

// Validate reports the first departure from the wire contract.
func (r OperationRecord) Validate() error { return validate(r) }

// OperationUndoParams are the params of operation.undo. The undo is an operation itself, under UndoOperationID.
type OperationUndoParams struct {
	SpaceID         ID `json:"spaceId"`
	OperationID     ID `json:"operationId"`
	UndoOperationID ID `json:"undoOperationId"`
}

// OperationPruneParams are the params of operation.prune.
type OperationPruneParams struct {
	SpaceID      ID   `json:"spaceId"`
	OperationIDs []ID `json:"operationIds"`
}

// OperationListParams narrow the list of operations: of a path, of a document by its id, of a session, of a run, after and before a moment (both
// excluded). Cursor is that of the page before.
type OperationListParams struct {
	SpaceID   ID     `json:"spaceId"`
	Path      string `json:"path,omitzero" shape:"min=1"`
	ID        ID     `json:"id,omitzero"`
	SessionID ID     `json:"sessionId,omitzero"`
	RunID     ID     `json:"runId,omitzero"`
	After     Millis `json:"after,omitzero" shape:"min=1"`
	Before    Millis `json:"before,omitzero" shape:"min=1"`
	Limit     Int    `json:"limit,omitzero" shape:"min=1,max=1000"`
	Cursor    string `json:"cursor,omitzero" shape:"min=1"`
}

// OperationSummary is an operation in a list. Undoes are the operations that it takes back, UndoneBy the one that took it back.
type OperationSummary struct {
	OperationID ID              `json:"operationId"`
	Status      OperationStatus `json:"status"`
	CreatedAt   Millis          `json:"createdAt"`
	Actor       Actor           `json:"actor"`
	Cause       string          `json:"cause" shape:"min=1"` // name of the method, or CauseObserved
	SessionID   ID              `json:"sessionId,omitzero"`
	RunID       ID              `json:"runId,omitzero"`
	Undoes      []ID            `json:"undoes,omitzero" shape:"min=1"`
	UndoneBy    ID              `json:"undoneBy,omitzero"`
	Paths       []string        `json:"paths"`
}

// OperationListResult is a page of operations, newest first. Cursor is set when there is more.
type OperationListResult struct {
	Operations []OperationSummary `json:"operations"`
	Cursor     string             `json:"cursor,omitzero" shape:"min=1"`
}

// OperationUndoRunParams take back what a run did, as one operation under UndoOperationID.
type OperationUndoRunParams struct {
	SpaceID         ID `json:"spaceId"`
	RunID           ID `json:"runId"`
	UndoOperationID ID `json:"undoOperationId"`
}

// OperationConflict is an operation that stays, and the paths that later changes keep as they are.
type OperationConflict struct {
	OperationID ID       `json:"operationId"`
	Paths       []string `json:"paths"`
}

// OperationUndoRunResult says which operations of a run were taken back, and which were not.
type OperationUndoRunResult struct {
	OperationIDs []ID                 `json:"operationIds"`
	Result       DetailedChangeResult `json:"result"`
	Conflicts    []OperationConflict  `json:"conflicts"`
}

// Choice is what becomes of a file of an operation that needs recovery.
type Choice string

// Choices.
const (
	ChoiceKeep    Choice = "keep"    // as it is now
	ChoiceRestore Choice = "restore" // as it was before the operation
	ChoiceTake    Choice = "take"    // as the operation wanted it
)

// ShapeValues lists the choices.
func (Choice) ShapeValues() []string { return []string{"keep", "restore", "take"} }

// PathChoice is the choice for one file.
type PathChoice struct {
	Path   string `json:"path" shape:"min=1"`
	Choice Choice `json:"choice"`
}

// OperationResolveParams settle an operation that needs recovery. A file without a choice is kept.
type OperationResolveParams struct {
	SpaceID     ID           `json:"spaceId"`
	OperationID ID           `json:"operationId"`
	Choices     []PathChoice `json:"choices"`
}

// OperationPrunePreviewParams ask which operations could be pruned: those before a moment, the oldest until what the rest holds fits KeepBytes, those
// of one content. What is absent does not narrow.
type OperationPrunePreviewParams struct {
	SpaceID   ID             `json:"spaceId"`
	Before    Millis         `json:"before,omitzero" shape:"min=1"`
	KeepBytes *Int           `json:"keepBytes,omitzero" shape:"min=0"`
	Target    *ContentTarget `json:"target,omitzero"`
}

// OperationPrunePreviewResult is what operation.prune would take, and the bytes that a collection could free then.
type OperationPrunePreviewResult struct {
	OperationIDs []ID `json:"operationIds"`
	Bytes        Int  `json:"bytes" shape:"min=0"`
}
