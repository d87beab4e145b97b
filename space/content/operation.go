package content

import (
	"encoding/json"
	"fmt"
	"io/fs"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/cas/recordlog"
	"github.com/repa-app/repa/space/catalog"
	"github.com/repa-app/repa/space/internal/fault"
)

// Actor is who does something.
type Actor string

// Actors.
const (
	Learner Actor = "learner" // any front end
	Agent   Actor = "agent"   // a run
	Outside Actor = "outside" // another program: it was observed
)

// By says who does an operation and in which course.
type By struct {
	Actor   Actor  `json:"actor"`
	Session string `json:"session,omitzero"`
	Run     string `json:"run,omitzero"`
	Request string `json:"request,omitzero"`
}

// Status is how far an operation is.
type Status string

// States of an operation.
const (
	Prepared      Status = "prepared"
	Committed     Status = "committed"
	RolledBack    Status = "rolled_back"
	NeedsRecovery Status = "needs_recovery"
	Reconciled    Status = "reconciled"
)

// Kinds of an Image.
const (
	kindAbsent    = "absent"
	kindDirectory = "directory"
	kindFile      = "file"
)

// Image is what is, or was, at a path. Two images are equal when kind and body are; a mode alone is no change of content.
type Image struct {
	Kind string      `json:"kind"`
	Body *cas.ID     `json:"body,omitempty"` // of a file whose bytes were read
	Size int64       `json:"size,omitempty"`
	Mode fs.FileMode `json:"mode,omitempty"` // permission bits
}

var absent = Image{Kind: kindAbsent}

func directory(mode fs.FileMode) Image { return Image{Kind: kindDirectory, Mode: mode.Perm()} }

func file(body cas.ID, size int64, mode fs.FileMode) Image {
	return Image{Kind: kindFile, Body: &body, Size: size, Mode: mode.Perm()}
}

// Equal reports whether two images have one kind and, of files, one body.
func (i Image) Equal(other Image) bool {
	if i.Kind != other.Kind || (i.Body == nil) != (other.Body == nil) {
		return false
	}
	return i.Body == nil || *i.Body == *other.Body
}

// Revision is the body's, nil for what is no file or was not read.
func (i Image) Revision() *string {
	if i.Body == nil {
		return nil
	}
	r := i.Body.String()
	return &r
}

// FileChange is one path before and after an operation.
type FileChange struct {
	Path   string `json:"path"`
	Before Image  `json:"before"`
	After  Image  `json:"after"`
	Temp   string `json:"temp,omitempty"` // name of the file that becomes After, in .repa/tmp
	Was    string `json:"was,omitempty"`  // path of the file of the same operation that came here, perhaps changed on the way
	From   string `json:"from,omitempty"` // Was, when the file itself is renamed
}

// Change is what a result says of one path: revisions, nil for "no file".
type Change struct {
	Path   string  `json:"path"`
	Before *string `json:"before"`
	After  *string `json:"after"`
}

// Result is the answer to an operation, the same for every repetition.
type Result struct {
	OperationID string   `json:"operationId"`
	Changes     []Change `json:"changes"`
	Contents    []Info   `json:"contents"`
	Repeated    bool     `json:"-"` // it was done before, and is only answered again
}

// Types of journal records. Types below 32 belong to requests and runs.
const (
	typePrepared   = 32
	typeConfirmed  = 33
	typeRolledBack = 34
	typeConflict   = 35
	typeReconciled = 36
	typePruned     = 37
	typeObserved   = 38

	recordVersion = 1
)

// record is the payload of all journal records.
type record struct {
	ID        string           `json:"id,omitempty"`
	Hash      string           `json:"hash,omitempty"`
	Method    string           `json:"method,omitempty"`
	Time      int64            `json:"time,omitempty"`
	By        *By              `json:"by,omitempty"`
	Files     []FileChange     `json:"files,omitempty"`
	Items     []catalog.Change `json:"items,omitempty"`
	Result    *Result          `json:"result,omitempty"`
	Undoes    []string         `json:"undoes,omitempty"`
	Code      string           `json:"code,omitempty"`
	Error     string           `json:"error,omitempty"`
	Conflicts []string         `json:"conflicts,omitempty"`
	IDs       []string         `json:"ids,omitempty"`
}

func encode(typ uint8, r record) (recordlog.Record, error) {
	payload, err := json.Marshal(r)
	if err != nil {
		return recordlog.Record{}, fmt.Errorf("encode operation %s: %w", r.ID, err)
	}
	return recordlog.Record{Type: typ, Version: recordVersion, Payload: payload}, nil
}

func decode(r recordlog.Record) (record, error) {
	var out record
	if err := json.Unmarshal(r.Payload, &out); err != nil {
		return record{}, fault.Wrap(codeInvalid, fmt.Sprintf("the journal's record at %d of segment %d cannot be read: %v", r.At.Offset, r.At.Segment, err), err)
	}
	return out, nil
}

// operation is what is kept in memory of one.
type operation struct {
	id, hash, method string
	seq              int // operations are in this order
	status           Status
	time             int64
	by               By
	at               recordlog.Position // of the prepared or observed record
	files            []FileChange       // without Temp and From
	items            []string           // ids of the items that it changed
	undoes           []string
	undoneBy         string
	code, err        string
	conflicts        []string
	pending          *record // of one that is not settled
}

// touches reports whether an operation changed a path.
func (o *operation) touches(path string) bool {
	for _, f := range o.files {
		if f.Path == path {
			return true
		}
	}
	return false
}

func owner(id string) cas.Owner { return cas.Owner{Kind: cas.OwnerOperation, ID: id} }

// bodies are the objects that an operation's history needs.
func bodies(files []FileChange) (out []cas.ID) {
	for _, f := range files {
		for _, i := range []Image{f.Before, f.After} {
			if i.Body != nil {
				out = append(out, *i.Body)
			}
		}
	}
	return out
}
