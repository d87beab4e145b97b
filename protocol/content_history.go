package protocol

// Extensions of the content methods: what a document was, what became of it, and what wants attention in a space.
var (
	ContentHistory = define[ContentHistoryParams, ContentHistoryResult](Method{
		Name: "content.history", Group: "content", Gate: GateOpen, Idempotent: true, Extension: true,
		Errors: []Code{CodeNotFound, CodePermissionRequired, CodeInvalidInput, CodeInvalidCursor, CodeSpaceBusy},
	})
	ContentAt = define[ContentAtParams, ContentAtResult](Method{
		Name: "content.at", Group: "content", Gate: GateOpen, Idempotent: true, Extension: true,
		Errors: []Code{CodeNotFound, CodePermissionRequired, CodeRevisionUnavailable, CodeSpaceBusy},
	})
	ContentDiff = define[ContentDiffParams, ContentDiffResult](Method{
		Name: "content.diff", Group: "content", Gate: GateOpen, Idempotent: true, Extension: true,
		Errors: []Code{CodeNotFound, CodePermissionRequired, CodeRevisionUnavailable, CodeContentLimit, CodeInvalidInput, CodeSpaceBusy},
	})
	ContentFind = define[ContentFindParams, []FoundContent](Method{
		Name: "content.find", Group: "content", Gate: GateOpen, Idempotent: true, Extension: true,
		Errors: []Code{CodeNotFound, CodeInvalidInput, CodeSpaceBusy},
	})
	ContentChanges = define[ContentChangesParams, ContentReport](Method{
		Name: "content.changes", Group: "content", Gate: GateOpen, Idempotent: true, Extension: true,
		Errors: []Code{CodeNotFound, CodeSpaceBusy},
	})
	ContentSave = define[ContentSaveParams, DetailedChangeResult](Method{
		Name: "content.save", Group: "content", Gate: GateRunning, Idempotent: true, Extension: true,
		Errors: changeErrors(CodeUnsupportedFormat, CodeContentLimit),
	})
	ContentRestore = define[ContentRestoreParams, DetailedChangeResult](Method{
		Name: "content.restore", Group: "content", Gate: GateRunning, Idempotent: true, Extension: true,
		Errors: changeErrors(CodeRevisionUnavailable),
	})
)

// Actor is who changed something.
type Actor string

// Actors.
const (
	ActorLearner Actor = "learner" // through any front end
	ActorAgent   Actor = "agent"   // in a run
	ActorOutside Actor = "outside" // another program; Repa saw it afterwards
)

// ShapeValues lists the actors.
func (Actor) ShapeValues() []string { return []string{"learner", "agent", "outside"} }

// CauseObserved is the cause of what another program did. Any other cause is the name of a method.
const CauseObserved = "observed"

// Limits of the pages of content.history and operation.list. PageLimitMax keeps an answer far below the largest frame.
const (
	PageLimitDefault = 100
	PageLimitMax     = 1000
)

// ContentHistoryParams ask for the revisions of a document. Cursor is that of the page before.
type ContentHistoryParams struct {
	Target ContentTarget `json:"target"`
	Limit  Int           `json:"limit,omitzero" shape:"min=1,max=1000"`
	Cursor string        `json:"cursor,omitzero" shape:"min=1"`
}

// HistoryDocument is whose history it is. A file that is not registered has no ID.
type HistoryDocument struct {
	ID   ID     `json:"id,omitzero"`
	Path string `json:"path"`
}

// ContentRevision is one state of a document. A nil Revision means that there was no file, or that its bytes were not read. Without an
// OperationID it is what an operation found and replaced.
type ContentRevision struct {
	Revision    NullRevision `json:"revision" shape:"null"`
	Time        Millis       `json:"time"`
	Actor       Actor        `json:"actor"`
	Cause       string       `json:"cause" shape:"min=1"`
	OperationID ID           `json:"operationId,omitzero"`
	SessionID   ID           `json:"sessionId,omitzero"`
	RunID       ID           `json:"runId,omitzero"`
	Size        *Int         `json:"size,omitzero" shape:"min=0"`
	Path        string       `json:"path"`
	Available   bool         `json:"available"` // its bytes can be read
}

// ContentHistoryResult is a page of a history, newest first, through all moves of the document. Cursor is set when there is more.
type ContentHistoryResult struct {
	Document  HistoryDocument   `json:"document"`
	Revisions []ContentRevision `json:"revisions"`
	Cursor    string            `json:"cursor,omitzero" shape:"min=1"`
}

// ContentAtParams ask for one revision of a document.
type ContentAtParams struct {
	Target   ContentTarget `json:"target"`
	Revision Revision      `json:"revision"`
}

// ContentAtResult is the bytes of a revision: the resource and, when it is a text that fits a page, the text.
type ContentAtResult struct {
	Text      *string     `json:"text,omitzero"`
	Resource  ResourceRef `json:"resource"`
	MediaType string      `json:"mediaType"`
	Size      Int         `json:"size" shape:"min=0"`
}

// ContentDiffParams ask what changed between two revisions of a text. To is the present one when it is absent, From the one before To.
type ContentDiffParams struct {
	Target ContentTarget `json:"target"`
	From   Revision      `json:"from,omitzero"`
	To     Revision      `json:"to,omitzero"`
}

// ContentDiffResult is a unified diff, empty when nothing differs. A nil revision is "not there".
type ContentDiffResult struct {
	From    NullRevision `json:"from" shape:"null"`
	To      NullRevision `json:"to" shape:"null"`
	Unified string       `json:"unified"`
}

// FindLimitDefault is ContentFindParams.Limit when it is absent: more than a list of suggestions shows at once.
const FindLimitDefault = 20

// ContentFindParams look for contents by parts of their names.
type ContentFindParams struct {
	SpaceID ID     `json:"spaceId"`
	Query   string `json:"query" shape:"min=1"`
	Limit   Int    `json:"limit,omitzero" shape:"min=1,max=1000"`
}

// FoundContent is a content whose name fits, with a Score from 0 to 1; the best come first.
type FoundContent struct {
	Target ContentTarget `json:"target"`
	Path   string        `json:"path"`
	Title  string        `json:"title,omitzero"`
	Score  float64       `json:"score"`
}

// ContentChangesParams ask what wants attention in a space.
type ContentChangesParams struct {
	SpaceID ID `json:"spaceId"`
}

// UnresolvedOperation is an operation that needs recovery. Conflicts are paths.
type UnresolvedOperation struct {
	OperationID ID              `json:"operationId"`
	Status      OperationStatus `json:"status"`
	Conflicts   []string        `json:"conflicts"`
}

// OutsideChange is a file that another program changed last. A nil Revision means that it is gone, or was not read.
type OutsideChange struct {
	Path     string       `json:"path"`
	Revision NullRevision `json:"revision" shape:"null"`
	Time     Millis       `json:"time"`
}

// MissingContent is a registered content without its file. Proposals are files that have its last bytes.
type MissingContent struct {
	Ref       ContentRef `json:"ref"`
	Path      string     `json:"path"`
	Proposals []string   `json:"proposals"`
}

// ConflictCopy is a file that a program which synchronises folders made beside another.
type ConflictCopy struct {
	Path string `json:"path"`
	Of   string `json:"of"`
}

// ContentReport is what wants attention in a space. Twins are pairs of paths that some disk or eye takes for one.
type ContentReport struct {
	Unresolved     []UnresolvedOperation `json:"unresolved"`
	Outside        []OutsideChange       `json:"outside"`
	Missing        []MissingContent      `json:"missing"`
	ConflictCopies []ConflictCopy        `json:"conflictCopies"`
	Twins          [][2]string           `json:"twins"`
}

// ContentSaveParams save a text whose base may be older than what is there: changes that do not overlap are joined. Otherwise the answer is
// revision_conflict, whose details name both versions, which are kept: actual and yours.
type ContentSaveParams struct {
	Target      ContentTarget `json:"target"`
	OperationID ID            `json:"operationId"`
	Text        string        `json:"text"`
	Base        Revision      `json:"base"`
}

// ContentRestoreParams bring back a removed document, or an earlier revision of one: the last that there was when Revision is absent.
type ContentRestoreParams struct {
	Target      ContentTarget `json:"target"`
	OperationID ID            `json:"operationId"`
	Revision    Revision      `json:"revision,omitzero"`
}

// FileDiff shows what an operation changed in one text.
type FileDiff struct {
	Path    string `json:"path"`
	Unified string `json:"unified"`
}

// DetailedChangeResult is a ContentChangeResult with what changed in texts, which the closed type of version 1 has no room for. Only extensions answer
// with it.
type DetailedChangeResult struct {
	OperationID ID              `json:"operationId"`
	Changes     []ContentChange `json:"changes"`
	Contents    []ContentInfo   `json:"contents"`
	Diffs       []FileDiff      `json:"diffs,omitzero"`
}

// Detailed adds what changed in texts; without any, the result says the same as before.
func (r ContentChangeResult) Detailed(diffs ...FileDiff) DetailedChangeResult {
	return DetailedChangeResult{OperationID: r.OperationID, Changes: r.Changes, Contents: r.Contents, Diffs: diffs}
}
