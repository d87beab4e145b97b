package tool

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"strings"

	"github.com/repa-app/repa/agent/llm"
)

// Tool is one thing that a model may call. It is safe for concurrent use.
type Tool interface {
	// Spec is what the model is told. It does not change.
	Spec() llm.ToolSpec
	// Sequential tells that the tool changes something: no other call of the same batch runs beside it, and a run that is
	// stopped waits for it.
	Sequential() bool
	// Execute runs one call whose arguments satisfy the spec's schema. An error is told to the model like an error result; when
	// ctx has ended the call counts as aborted.
	Execute(ctx context.Context, callID string, args json.RawMessage) (Result, error)
}

// Preparer is a tool that accepts older shapes of its arguments: Prepare folds them into the declared one before they are
// checked. It returns args unchanged when there is nothing to fold.
type Preparer interface {
	Prepare(args json.RawMessage) json.RawMessage
}

// Result is the answer to one call.
type Result struct {
	Content []llm.Block
	Details json.RawMessage // a JSON object for programs; may be nil
	IsError bool

	bounded bool // the tool itself keeps to the limits of one result
}

// Text is a result of one text block.
func Text(text string) Result {
	return Result{Content: []llm.Block{{Type: llm.BlockText, Text: text}}}
}

// Failure is an error result with the error's message, and in its details the domain code if the error has one.
func Failure(err error) Result {
	text, members := err.Error(), map[string]any{}
	if code := codeOf(err); code != "" {
		members["code"] = code
	}
	var detailed interface{ Details() any }
	if errors.As(err, &detailed) && detailed.Details() != nil {
		members["details"] = detailed.Details()
	}
	var operation interface{ OperationID() string }
	if errors.As(err, &operation) {
		text += "\n" + operationLine(operation.OperationID())
		members["operationId"] = operation.OperationID()
	}
	r := Text(text)
	r.IsError = true
	if len(members) > 0 {
		r.Details = details(members)
	}
	return r
}

func codeOf(err error) string {
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		return coded.Code()
	}
	return ""
}

// failed is how a tool ends a call whose service returned err: as an abort when the run was stopped, else as a result.
func failed(ctx context.Context, err error) (Result, error) {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return Result{}, err
	}
	return Failure(err), nil
}

// details encodes values whose encoding cannot fail.
func details(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic("tool: encode details: " + err.Error())
	}
	return data
}

// domainError is an error of this package with a stable code.
type domainError struct{ code, message string }

func (e *domainError) Error() string { return e.message }
func (e *domainError) Code() string  { return e.code }

// spaces are the characters that models put into file names in place of a plain space.
var spaces = strings.NewReplacer("\u00a0", " ", "\u2007", " ", "\u202f", " ", "\u3000", " ")

// cleanPath takes away what models add to paths: a leading @, unusual spaces, and ./ or // inside.
func cleanPath(name string) string {
	name = strings.TrimPrefix(strings.TrimSpace(spaces.Replace(name)), "@")
	if name == "" {
		return name
	}
	return path.Clean(name)
}
