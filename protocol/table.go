package protocol

// The methods, but for those about content (content_methods.go, content_history.go), operations (operation.go) and holds (resource.go). Names, gates and errors are those of version 1; run.submit (an older form) and connection.lend (ours) are extensions.
var (
	Initialize = define[InitializeParams, InitializeResult](Method{
		Name: "initialize", Group: "lifecycle", Gate: GateNone, Idempotent: true,
		Errors: []Code{CodePermissionRequired, CodeClosed},
	})
	ClientDetach = define[Empty, Null](Method{
		Name: "client.detach", Group: "lifecycle", Gate: GateNone, Idempotent: true,
		Errors: []Code{CodeClosed},
	})
	Shutdown  = define[ShutdownParams, Null](Method{Name: "shutdown", Group: "lifecycle", Gate: GateNone, Idempotent: true})
	SpaceOpen = define[SpaceOpenParams, Space](Method{
		Name: "space.open", Group: "spaces", Gate: GateRunning, Idempotent: true,
		Errors: []Code{CodeSpaceInUse, CodeSpaceIdentityConflict, CodeSnapshotRequiresRestore, CodeInvalidRequestRecord, CodeInvalidRunRecord, CodeInvalidStorage, CodeRevisionUnavailable, CodeShuttingDown},
	})
	SpaceList     = define[Empty, []Space](Method{Name: "space.list", Group: "spaces", Gate: GateOpen, Idempotent: true})
	SessionCreate = define[SpaceParams, SessionView](Method{
		Name: "session.create", Group: "sessions", Gate: GateRunning,
		Errors: []Code{CodeNotFound, CodeSpaceBusy, CodeSpaceLockLost, CodeShuttingDown},
	})
	SessionList = define[SpaceParams, []SessionSummary](Method{
		Name: "session.list", Group: "sessions", Gate: GateNone, Idempotent: true,
		Errors: []Code{CodeNotFound},
	})
	SessionGet = define[SessionKey, SessionView](Method{
		Name: "session.get", Group: "sessions", Gate: GateNone, Idempotent: true,
		Errors: []Code{CodeNotFound},
	})
	SessionHistory = define[HistoryParams, HistoryResult](Method{
		Name: "session.history", Group: "sessions", Gate: GateNone, Idempotent: true,
		Errors: []Code{CodeNotFound, CodeInvalidCursor, CodeRevisionUnavailable, CodeInvalidInput},
	})
	SessionSubmit = define[Submit, Request](Method{
		Name: "session.submit", Group: "requests", Gate: GateAdmission, Idempotent: true,
		Errors: []Code{CodeRequestIdConflict, CodeShuttingDown, CodeSpaceBusy, CodeNotFound, CodeSessionBusy, CodeInvalidInput, CodeConfiguration, CodeConnectionNotFound, CodeModelNotFound, CodeRevisionUnavailable, CodeSpaceLockLost},
	})
	RunSubmit = define[RunSubmitParams, Request](Method{
		Name: "run.submit", Group: "runs", Gate: GateAdmission, Idempotent: true, Extension: true,
		Errors: []Code{CodeRequestIdConflict, CodeShuttingDown, CodeSpaceBusy, CodeNotFound, CodeSessionBusy, CodeInvalidInput, CodeConfiguration, CodeConnectionNotFound, CodeModelNotFound, CodeRevisionUnavailable, CodeSpaceLockLost},
	})
	RequestGet = define[RequestGetParams, RequestRecord](Method{
		Name: "request.get", Group: "requests", Gate: GateOpen, Idempotent: true,
		Errors: []Code{CodeNotFound, CodeApplicationRuntimeInUse},
	})
	RunGet = define[RunParams, RunRecord](Method{
		Name: "run.get", Group: "runs", Gate: GateNone, Idempotent: true,
		Errors: []Code{CodeNotFound},
	})
	RunCancel = define[RunParams, Run](Method{
		Name: "run.cancel", Group: "runs", Gate: GateNone, Idempotent: true,
		Errors: []Code{CodeNotFound, CodeUnknownRun},
	})
	ConnectionList = define[Empty, []ModelConnection](Method{
		Name: "connection.list", Group: "models", Gate: GateOpen, Idempotent: true,
		Errors: []Code{CodeConnectionStorage},
	})
	ConnectionLend = define[LendParams, LendResult](Method{
		Name: "connection.lend", Group: "models", Gate: GateRunning, Extension: true,
		Errors: []Code{CodeProviderNotFound, CodeConnectionInvalid, CodeShuttingDown},
	})
	ModelList = define[ModelListParams, ModelCatalog](Method{
		Name: "model.list", Group: "models", Gate: GateOpen, Idempotent: true,
		Errors: []Code{CodeConnectionNotFound, CodeProviderNotFound},
	})
	ResourceCollect = define[SpaceParams, CollectResult](Method{
		Name: "resource.collect", Group: "resources", Gate: GateRunning, Idempotent: true,
		Errors: []Code{CodeInvalidStorage, CodeSpaceBusy},
	})
	StateGet          = define[StateParams, Snapshot](Method{Name: "state.get", Group: "state", Gate: GateNone, Idempotent: true})
	SubscriptionStart = define[SubscribeParams, Null](Method{Name: "subscription.start", Group: "subscriptions", Gate: GateNone, Idempotent: true})
	SubscriptionStop  = define[UnsubscribeParams, Null](Method{Name: "subscription.stop", Group: "subscriptions", Gate: GateNone, Idempotent: true})
)
