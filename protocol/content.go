package protocol

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol/internal/shape"
)

// ContentRole says what a registered content is for.
type ContentRole string

// Roles of a content.
const (
	RoleDocument ContentRole = "document"
	RoleMaterial ContentRole = "material"
)

// ShapeValues lists the roles.
func (ContentRole) ShapeValues() []string { return []string{"document", "material"} }

// ContentStatus says whether a content can be read.
type ContentStatus string

// ShapeValues lists the states.
func (ContentStatus) ShapeValues() []string {
	return []string{"available", "missing", "detached", "needs_recovery", "permission_required"}
}

// FileType tells a file from a directory.
type FileType string

// ShapeValues lists the types.
func (FileType) ShapeValues() []string { return []string{"file", "directory"} }

// FileLocation is a place on disk: relative to the space, or external.
type FileLocation struct {
	_    struct{} `shape:"union=relative|external"`
	Kind string   `json:"kind" shape:"kind"`
	Path string   `json:"path" shape:"min=1"`
}

// MarshalJSONTo writes the members of the kind; another kind is an error.
func (l FileLocation) MarshalJSONTo(enc *jsontext.Encoder) error {
	return shape.MarshalUnion(enc, &l)
}

// Validate reports the first departure from the wire contract.
func (l FileLocation) Validate() error { return validate(l) }

// ContentRef names a registered content of a space.
type ContentRef struct {
	SpaceID ID `json:"spaceId"`
	ID      ID `json:"id"`
}

// ContentTarget is a registered content (kind content) or a plain file (kind file).
type ContentTarget struct {
	_        struct{}      `shape:"union=content|file"`
	Kind     string        `json:"kind" shape:"kind"`
	Ref      *ContentRef   `json:"ref" shape:"in=content"`
	SpaceID  ID            `json:"spaceId" shape:"in=file"`
	Location *FileLocation `json:"location" shape:"in=file"`
}

// MarshalJSONTo writes the members of the kind; members of the other kind are an error.
func (t ContentTarget) MarshalJSONTo(enc *jsontext.Encoder) error {
	return shape.MarshalUnion(enc, &t)
}

// Validate reports the first departure from the wire contract.
func (t ContentTarget) Validate() error { return validate(t) }

// Locator points into a content, in a format of its own.
type Locator struct {
	Format Format         `json:"format"`
	Value  jsontext.Value `json:"value"`
}

// RepresentationValue is the data itself (kind inline) or stored bytes (kind resource).
type RepresentationValue struct {
	_        struct{}       `shape:"union=inline|resource"`
	Kind     string         `json:"kind" shape:"kind"`
	Data     jsontext.Value `json:"data" shape:"in=inline"`
	Resource *ResourceRef   `json:"resource" shape:"in=resource"`
}

// MarshalJSONTo writes the members of the kind; members of the other kind are an error.
func (v RepresentationValue) MarshalJSONTo(enc *jsontext.Encoder) error {
	return shape.MarshalUnion(enc, &v)
}

// Validate reports the first departure from the wire contract.
func (v RepresentationValue) Validate() error { return validate(v) }

// RepresentationSource is what a representation was made from.
type RepresentationSource struct {
	Target   ContentTarget `json:"target"`
	Revision Revision      `json:"revision"`
	Locator  *Locator      `json:"locator,omitzero"`
}

// Representation is the envelope of results and structured inputs.
type Representation struct {
	Format    Format                 `json:"format"`
	Value     RepresentationValue    `json:"value"`
	Sources   []RepresentationSource `json:"sources"`
	Resources []ResourceRef          `json:"resources"`
	Summary   *string                `json:"summary,omitzero"`
}

// ContentChange is one file before and after an operation; null is "not there".
type ContentChange struct {
	Path   string       `json:"path"`
	Before NullRevision `json:"before" shape:"null"`
	After  NullRevision `json:"after" shape:"null"`
}

// ContentChangeResult is what a content operation did.
type ContentChangeResult struct {
	OperationID ID              `json:"operationId"`
	Changes     []ContentChange `json:"changes"`
	Contents    []ContentInfo   `json:"contents"`
}

// ContentOrigin is where a content came from: a file or a URL.
type ContentOrigin struct {
	_           struct{} `shape:"union=relative|external|url"`
	Kind        string   `json:"kind" shape:"kind"`
	Path        string   `json:"path" shape:"in=relative|external,min=1"`
	URL         string   `json:"url" shape:"in=url,min=1"`
	RetrievedAt Millis   `json:"retrievedAt" shape:"may=url"`
}

// MarshalJSONTo writes the members of the kind; members of another kind are an error.
func (o ContentOrigin) MarshalJSONTo(enc *jsontext.Encoder) error {
	return shape.MarshalUnion(enc, &o)
}

// Validate reports the first departure from the wire contract.
func (o ContentOrigin) Validate() error { return validate(o) }

// ContentMember is one part of a composition.
type ContentMember struct {
	Target ContentTarget `json:"target"`
	Name   string        `json:"name,omitzero"`
}

// ContentInfo describes a file or registered content of a space.
type ContentInfo struct {
	Target       ContentTarget      `json:"target"`
	Ref          *ContentRef        `json:"ref,omitzero"`
	Location     FileLocation       `json:"location"`
	Role         ContentRole        `json:"role,omitzero"`
	MediaType    string             `json:"mediaType"`
	Revision     NullRevision       `json:"revision" shape:"null"`
	BodyRevision Nullable[Revision] `json:"bodyRevision,omitzero"`
	Status       ContentStatus      `json:"status"`
	FileType     FileType           `json:"fileType,omitzero"`
	Size         *float64           `json:"size,omitzero"`
	Members      []ContentMember    `json:"members"`
	Resources    []ResourceRef      `json:"resources"`
	Origin       *ContentOrigin     `json:"origin,omitzero"`
}
