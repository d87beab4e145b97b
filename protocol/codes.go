package protocol

// Code names what a domain error is about. Codes are part of the contract; the texts beside them are not.
type Code string

// Codes of domain errors and of failed runs.
const (
	CodeClosed                  Code = "closed"
	CodeShuttingDown            Code = "shutting_down"
	CodeNotFound                Code = "not_found"
	CodePermissionRequired      Code = "permission_required"
	CodeSpaceInUse              Code = "space_in_use"
	CodeSpaceLockLost           Code = "space_lock_lost"
	CodeSpaceIdentityConflict   Code = "space_identity_conflict"
	CodeSpaceBusy               Code = "space_busy"
	CodeSnapshotRequiresRestore Code = "snapshot_requires_restore"
	CodeApplicationRuntimeInUse Code = "application_runtime_in_use"
	CodeInvalidRequestRecord    Code = "invalid_request_record"
	CodeInvalidRunRecord        Code = "invalid_run_record"
	CodeInvalidStorage          Code = "invalid_storage"
	CodeStorage                 Code = "storage"
	CodeRequestIdConflict       Code = "request_id_conflict"
	CodeSessionBusy             Code = "session_busy"
	CodeInvalidInput            Code = "invalid_input"
	CodeUnknownRun              Code = "unknown_run"
	CodeBusy                    Code = "busy"
	CodeRevisionUnavailable     Code = "revision_unavailable"
	CodeInvalidCursor           Code = "invalid_cursor"
	CodeConnectionNotFound      Code = "connection_not_found"
	CodeConnectionInvalid       Code = "connection_invalid"
	CodeConnectionStorage       Code = "connection_storage"
	CodeProviderNotFound        Code = "provider_not_found"
	CodeModelNotFound           Code = "model_not_found"
	CodeConnectionRequired      Code = "connection_required"
	CodeAuthRequired            Code = "auth_required"
	CodeConfiguration           Code = "configuration"
	CodeUnsupportedInput        Code = "unsupported_input"
	CodeProvider                Code = "provider"
	CodeRuntime                 Code = "runtime"
	CodeInterrupted             Code = "interrupted"
	CodeRevisionConflict        Code = "revision_conflict"
	CodeAmbiguousMatch          Code = "ambiguous_match"
	CodeMatchNotFound           Code = "match_not_found"
	CodeInvalidPatch            Code = "invalid_patch"
	CodeAlreadyRegistered       Code = "already_registered"
	CodeUnsupportedFormat       Code = "unsupported_format"
	CodeUnsupportedContent      Code = "unsupported_content"
	CodeContentLimit            Code = "content_limit"
	CodeOperationIdConflict     Code = "operation_id_conflict"
	CodeOperationFailed         Code = "operation_failed"
	CodeHistoryPruned           Code = "history_pruned"
	CodeRecoveryRequired        Code = "recovery_required"
	CodeRequestConflict         Code = "request_conflict"
	CodeLeaseExpired            Code = "lease_expired"
	CodeExternalReference       Code = "external_reference"
)

// CodeInfo says when a code is used.
type CodeInfo struct {
	Code Code
	When string
}

// Codes is the one table of error codes. It is read-only.
var Codes = []CodeInfo{
	{CodeClosed, "backend is in final teardown, or this host detached (also a hold that started before the detach)"},
	{CodeShuttingDown, "new work while lifecycle is draining or stopping"},
	{CodeNotFound, "space not open, or session, request, file, content id, hold or operation unknown"},
	{CodePermissionRequired, "connection tries to become another host; a hold or instance of another host; a path outside the space without a grant"},
	{CodeSpaceInUse, "another backend holds the lock of the space"},
	{CodeSpaceLockLost, "the lock was lost; further writes are refused"},
	{CodeSpaceIdentityConflict, "two directories with the same space id in one backend"},
	{CodeSpaceBusy, "a space snapshot is running, or one was asked while the space works"},
	{CodeSnapshotRequiresRestore, "opening a backup directory directly"},
	{CodeApplicationRuntimeInUse, "application-level records are held by another backend"},
	{CodeInvalidRequestRecord, "unreadable request file"},
	{CodeInvalidRunRecord, "unreadable run journal line"},
	{CodeInvalidStorage, "another durable file is unreadable; nothing is rewritten"},
	{CodeStorage, "a durable write failed (also code of HTTP 500)"},
	{CodeRequestIdConflict, "request id used for another payload or by the other record family"},
	{CodeSessionBusy, "start while a run is active, or a running queue is not empty, or the session is closing or being removed"},
	{CodeInvalidInput, "blank input, selection on a steer, impossible option combination, bad range"},
	{CodeUnknownRun, "cancel of a run id this space does not know"},
	{CodeBusy, "too many calls of one connection are unanswered, or the agent is in the middle of something else"},
	{CodeRevisionUnavailable, "history revision or resource bytes are gone"},
	{CodeInvalidCursor, "before or around is no message of that history, or a page cursor is not usable"},
	{CodeConnectionNotFound, "no such model connection"},
	{CodeConnectionInvalid, "endpoint, model list or a fixed field is not acceptable"},
	{CodeConnectionStorage, "connection file unreadable or locked"},
	{CodeProviderNotFound, "unknown provider without own models"},
	{CodeModelNotFound, "model not offered at that connection"},
	{CodeConnectionRequired, "run started without any selected connection (run error)"},
	{CodeAuthRequired, "bound login is gone"},
	{CodeConfiguration, "unknown key, wrong scope, unreadable settings file, unusable selection or fallback"},
	{CodeUnsupportedInput, "image for a model without image input"},
	{CodeProvider, "model answered with an error (run error)"},
	{CodeRuntime, "agent failed (run error)"},
	{CodeInterrupted, "previous process ended before the record was final"},
	{CodeRevisionConflict, "base does not match the present state; details {expected, actual} or {path} or {ids, location}"},
	{CodeAmbiguousMatch, "text to replace, or a hunk, has no unique place"},
	{CodeMatchNotFound, "text to replace, or a hunk, has no place at all; details {path, candidates} (an extension of version 1, which says ambiguous_match)"},
	{CodeInvalidPatch, "patch text cannot be parsed or touches a file twice"},
	{CodeAlreadyRegistered, "location has an active identity"},
	{CodeUnsupportedFormat, "bytes are not UTF-8 text where text is needed"},
	{CodeUnsupportedContent, "reader cannot handle that content"},
	{CodeContentLimit, "content larger than the reader allows"},
	{CodeOperationIdConflict, "operation id used with other input"},
	{CodeOperationFailed, "the operation with that id failed before"},
	{CodeHistoryPruned, "the operation's history was pruned"},
	{CodeRecoveryRequired, "the operation or item waits for recovery"},
	{CodeRequestConflict, "hold id used with another input"},
	{CodeLeaseExpired, "hold or preparation ended"},
	{CodeExternalReference, "a bare external file cannot be held"},
}
