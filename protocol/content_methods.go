package protocol

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol/internal/shape"
)

// The methods that read and change content, as in version 1. Each change has an operation id that its caller chose: repeating it with the
// same input is answered with the stored result and carries nothing out again.
var (
	ContentList = define[ContentListParams, []ContentInfo](Method{
		Name: "content.list", Group: "content", Gate: GateOpen, Idempotent: true,
		Errors: []Code{CodeNotFound, CodePermissionRequired, CodeSpaceBusy},
	})
	ContentGet = define[ContentGetParams, ContentInfo](Method{
		Name: "content.get", Group: "content", Gate: GateOpen, Idempotent: true,
		Errors: []Code{CodeNotFound, CodePermissionRequired, CodeRecoveryRequired, CodeSpaceBusy},
	})
	ContentRead = define[ContentReadParams, ContentReadResult](Method{
		Name: "content.read", Group: "content", Gate: GateOpen, Idempotent: true,
		Errors: []Code{CodeNotFound, CodePermissionRequired, CodeRecoveryRequired, CodeRevisionConflict, CodeInvalidInput, CodeSpaceBusy},
	})
	ContentWrite = define[ContentWriteParams, ContentChangeResult](Method{
		Name: "content.write", Group: "content", Gate: GateRunning, Idempotent: true, Errors: changeErrors(),
	})
	ContentEdit = define[ContentEditParams, ContentChangeResult](Method{
		Name: "content.edit", Group: "content", Gate: GateRunning, Idempotent: true, Errors: changeErrors(CodeAmbiguousMatch, CodeUnsupportedFormat),
	})
	ContentApplyPatch = define[ContentPatchParams, ContentChangeResult](Method{
		Name: "content.applyPatch", Group: "content", Gate: GateRunning, Idempotent: true,
		Errors: changeErrors(CodeInvalidPatch, CodeAmbiguousMatch, CodeAlreadyRegistered),
	})
	ContentMove = define[ContentTransferParams, ContentChangeResult](Method{
		Name: "content.move", Group: "content", Gate: GateRunning, Idempotent: true, Errors: changeErrors(),
	})
	ContentCopy = define[ContentTransferParams, ContentChangeResult](Method{
		Name: "content.copy", Group: "content", Gate: GateRunning, Idempotent: true, Errors: changeErrors(),
	})
	MaterialCollect = define[MaterialCollectParams, ContentChangeResult](Method{
		Name: "material.collect", Group: "content", Gate: GateRunning, Idempotent: true, Errors: changeErrors(),
	})
	ContentAssociate = define[ContentAssociateParams, ContentChangeResult](Method{
		Name: "content.associate", Group: "content", Gate: GateRunning, Idempotent: true, Errors: changeErrors(CodeAlreadyRegistered),
	})
	ContentRelink = define[ContentRelinkParams, ContentChangeResult](Method{
		Name: "content.relink", Group: "content", Gate: GateRunning, Idempotent: true, Errors: changeErrors(),
	})
	ContentRemove = define[ContentRemoveParams, ContentChangeResult](Method{
		Name: "content.remove", Group: "content", Gate: GateRunning, Idempotent: true, Errors: changeErrors(),
	})
	ContentSetComposition = define[ContentCompositionParams, ContentChangeResult](Method{
		Name: "content.setComposition", Group: "content", Gate: GateRunning, Idempotent: true, Errors: changeErrors(),
	})
)

// changeErrors are what every change of content may answer, and more.
func changeErrors(more ...Code) []Code {
	return append([]Code{CodeNotFound, CodePermissionRequired, CodeRevisionConflict, CodeOperationIdConflict, CodeHistoryPruned, CodeRecoveryRequired,
		CodeOperationFailed, CodeInvalidInput, CodeSpaceBusy}, more...)
}

// ContentListParams are the params of content.list. An empty Path is the root of the space.
type ContentListParams struct {
	SpaceID ID     `json:"spaceId"`
	Path    string `json:"path,omitzero"`
}

// ContentGetParams are the params of content.get.
type ContentGetParams struct {
	Target ContentTarget `json:"target"`
}

// ContentReadParams ask for a page of a text: Limit lines from line Offset on. A Revision makes sure that all pages are of one body.
type ContentReadParams struct {
	Target   ContentTarget `json:"target"`
	Offset   Int           `json:"offset,omitzero" shape:"min=1"`
	Limit    Int           `json:"limit,omitzero" shape:"min=1"`
	Revision Revision      `json:"revision,omitzero"`
}

// ReadLimitDefault is ContentReadParams.Limit when it is absent, and ReadPageBytes the most that a page has: version 1 fixes them.
const (
	ReadLimitDefault = 2000
	ReadPageBytes    = 50 << 10
)

// ContentReadResult is a page of a text, or only the resource of what is no text or has a line too long for a page.
type ContentReadResult struct {
	Content     ContentInfo  `json:"content"`
	Text        *string      `json:"text,omitzero"`
	Resource    *ResourceRef `json:"resource,omitzero"`
	Preparation *Preparation `json:"preparation,omitzero"`
	Offset      Int          `json:"offset,omitzero" shape:"min=1"`
	NextOffset  Int          `json:"nextOffset,omitzero" shape:"min=1"`
	TotalLines  *Int         `json:"totalLines,omitzero" shape:"min=0"`
	Truncated   bool         `json:"truncated"`
}

// ContentValue is what a file shall have: kind text or resource.
type ContentValue struct {
	_        struct{}     `shape:"union=text|resource"`
	Kind     string       `json:"kind" shape:"kind"`
	Text     string       `json:"text" shape:"in=text"`
	Resource *ResourceRef `json:"resource" shape:"in=resource"`
}

// MarshalJSONTo writes the members of the kind; members of the other kind are an error.
func (v ContentValue) MarshalJSONTo(enc *jsontext.Encoder) error { return shape.MarshalUnion(enc, &v) }

// Validate reports the first departure from the wire contract.
func (v ContentValue) Validate() error { return validate(v) }

// AbsentWord is the word absent.
type AbsentWord string

// ShapeValues lists the word.
func (AbsentWord) ShapeValues() []string { return []string{"absent"} }

// AbsentBase demands that nothing is there.
type AbsentBase struct {
	Kind AbsentWord `json:"kind"`
}

// WriteBase is the state that a change relies on: a revision of the body, or nothing there. Exactly one is set.
type WriteBase struct {
	_        struct{} `shape:"choice"`
	Revision *Revision
	Absent   *AbsentBase
}

// BaseRevision is the base of a change to a file that is there.
func BaseRevision(r Revision) WriteBase { return WriteBase{Revision: &r} }

// BaseAbsent is the base of a new file.
func BaseAbsent() WriteBase { return WriteBase{Absent: &AbsentBase{Kind: "absent"}} }

// MarshalJSONTo writes the one that is set.
func (b WriteBase) MarshalJSONTo(enc *jsontext.Encoder) error { return shape.MarshalChoice(enc, &b) }

// UnmarshalJSONFrom reads either.
func (b *WriteBase) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return shape.UnmarshalChoice(dec, b)
}

// Validate reports the first departure from the wire contract.
func (b WriteBase) Validate() error { return validate(b) }

// ContentWriteParams are the params of content.write, which saves a whole file.
type ContentWriteParams struct {
	Target      ContentTarget `json:"target"`
	OperationID ID            `json:"operationId"`
	Value       ContentValue  `json:"value"`
	Base        WriteBase     `json:"base"`
}

// TextEdit replaces a text that stands in the file exactly once.
type TextEdit struct {
	OldText string `json:"oldText" shape:"min=1"`
	NewText string `json:"newText"`
}

// ContentEditParams are the params of content.edit.
type ContentEditParams struct {
	Target      ContentTarget `json:"target"`
	OperationID ID            `json:"operationId"`
	Edits       []TextEdit    `json:"edits" shape:"min=1"`
}

// PatchBase guards one file of a patch.
type PatchBase struct {
	Target ContentTarget `json:"target"`
	Base   WriteBase     `json:"base"`
}

// PatchRegistration makes a file or folder, as the patch leaves it, a registered content.
type PatchRegistration struct {
	Path      string          `json:"path" shape:"min=1"`
	Role      ContentRole     `json:"role"`
	ID        ID              `json:"id,omitzero"`
	Origin    *ContentOrigin  `json:"origin,omitzero"`
	Members   []ContentMember `json:"members,omitzero"`
	Resources []ResourceRef   `json:"resources,omitzero"`
}

// PatchComposition replaces the composition of a content in the same operation. Base is its structure before the patch.
type PatchComposition struct {
	Ref       ContentRef      `json:"ref"`
	Base      Revision        `json:"base"`
	Members   []ContentMember `json:"members"`
	Resources []ResourceRef   `json:"resources"`
}

// ContentPatchParams are the params of content.applyPatch, which changes any number of files, all or none.
type ContentPatchParams struct {
	SpaceID       ID                  `json:"spaceId"`
	OperationID   ID                  `json:"operationId"`
	Patch         string              `json:"patch"`
	Bases         []PatchBase         `json:"bases,omitzero"`
	Registrations []PatchRegistration `json:"registrations,omitzero"`
	Compositions  []PatchComposition  `json:"compositions,omitzero"`
}

// ContentTransferParams are the params of content.move and content.copy. Container lets members outside the source's folder come along: the
// destination is then a new folder for all of them.
type ContentTransferParams struct {
	Target      ContentTarget `json:"target"`
	OperationID ID            `json:"operationId"`
	Destination FileLocation  `json:"destination"`
	Base        Revision      `json:"base"`
	Container   bool          `json:"container,omitzero"`
}

// MaterialCollectParams are the params of material.collect, which copies an external material into the space.
type MaterialCollectParams struct {
	Target      ContentTarget `json:"target"`
	OperationID ID            `json:"operationId"`
	Destination FileLocation  `json:"destination"`
	Base        Revision      `json:"base"`
}

// ContentAssociateParams are the params of content.associate, which registers a file or folder.
type ContentAssociateParams struct {
	SpaceID     ID             `json:"spaceId"`
	OperationID ID             `json:"operationId"`
	Location    FileLocation   `json:"location"`
	Role        ContentRole    `json:"role"`
	ID          ID             `json:"id,omitzero"`
	Origin      *ContentOrigin `json:"origin,omitzero"`
}

// ContentRelinkParams are the params of content.relink, which says where a content is now.
type ContentRelinkParams struct {
	Ref         ContentRef   `json:"ref"`
	OperationID ID           `json:"operationId"`
	Location    FileLocation `json:"location"`
	Base        Revision     `json:"base"`
}

// ContentRemoveParams are the params of content.remove. Base is the revision of the body, or with Detach, which leaves the file, that of the
// structure.
type ContentRemoveParams struct {
	Target      ContentTarget `json:"target"`
	OperationID ID            `json:"operationId"`
	Base        Revision      `json:"base"`
	Detach      bool          `json:"detach,omitzero"`
}

// ContentCompositionParams are the params of content.setComposition, which replaces both lists.
type ContentCompositionParams struct {
	Ref         ContentRef      `json:"ref"`
	OperationID ID              `json:"operationId"`
	Base        Revision        `json:"base"`
	Members     []ContentMember `json:"members"`
	Resources   []ResourceRef   `json:"resources"`
}
