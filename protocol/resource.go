package protocol

// The methods by which a host keeps bytes of a space for as long as it shows them.
var (
	ResourceHold = define[HoldParams, Hold](Method{
		Name: "resource.hold", Group: "resources", Gate: GateRunning, Idempotent: true,
		Errors: []Code{CodeNotFound, CodeRequestConflict, CodeLeaseExpired, CodePermissionRequired, CodeExternalReference, CodeClosed, CodeInvalidInput, CodeSpaceBusy},
	})
	ResourceHoldGet = define[ContentRef, Hold](Method{
		Name: "resource.hold.get", Group: "resources", Gate: GateOpen, Idempotent: true,
		Errors: []Code{CodeNotFound, CodeLeaseExpired, CodePermissionRequired, CodeSpaceBusy},
	})
	ResourceHoldRenew = define[ContentRef, Hold](Method{
		Name: "resource.hold.renew", Group: "resources", Gate: GateRunning, Idempotent: true,
		Errors: []Code{CodeNotFound, CodeLeaseExpired, CodePermissionRequired, CodeRevisionUnavailable, CodeSpaceBusy},
	})
	ResourceRelease = define[ContentRef, Null](Method{
		Name: "resource.release", Group: "resources", Gate: GateRunning, Idempotent: true,
		Errors: []Code{CodePermissionRequired, CodeSpaceBusy},
	})
)

// Preparation is the lease of bytes that were handed out and are not held yet.
type Preparation struct {
	ID        ID     `json:"id"`
	ExpiresAt Millis `json:"expiresAt"`
}

// ResourcePreparation is the answer to an upload: stored bytes and until when they stay unless somebody holds them.
type ResourcePreparation struct {
	ID        ID          `json:"id"`
	Resource  ResourceRef `json:"resource"`
	ExpiresAt Millis      `json:"expiresAt"`
}

// HoldParams ask for a hold under an id that the host chose, on contents as they are now, on resources, or both. The same id with the same
// input is the same hold.
type HoldParams struct {
	SpaceID   ID              `json:"spaceId"`
	ID        ID              `json:"id"`
	Targets   []ContentTarget `json:"targets,omitzero"`
	Resources []ResourceRef   `json:"resources,omitzero"`
}

// ContentSnapshot is a content as it was when it was held. An external one has no resource.
type ContentSnapshot struct {
	Target   ContentTarget `json:"target"`
	Content  ContentInfo   `json:"content"`
	Resource *ResourceRef  `json:"resource,omitzero"`
}

// Hold is what a host holds under one id.
type Hold struct {
	ID        ID                `json:"id"`
	SpaceID   ID                `json:"spaceId"`
	ExpiresAt Millis            `json:"expiresAt"`
	Contents  []ContentSnapshot `json:"contents"`
	Resources []ResourceRef     `json:"resources"`
}
