package tool

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/repa-app/repa/agent/llm"
)

type patchTool struct {
	editor Editor
	seen   *seen
}

func (*patchTool) Spec() llm.ToolSpec {
	const members = `{"type":"array","items":{"type":"object","properties":{"path":{"type":"string","description":"Path or repa: reference"},` +
		`"name":{"type":"string"}},"required":["path"],"additionalProperties":false}}`
	return llm.ToolSpec{
		Name: "apply_patch",
		Description: `Change several text files of the space at once: all or nothing, one operation, one undo. The patch begins with the line ` +
			`"*** Begin Patch" and ends with "*** End Patch". Between them: "*** Add File: <path>" and lines that begin with "+"; "*** Delete File: <path>"; ` +
			`"*** Update File: <path>", optionally "*** Move to: <path>", and hunks. A hunk begins with "@@" or "@@ <a line before it>" and has lines that begin with ` +
			`" " (stays), "-" (goes) or "+" (comes); give enough lines that stay for the place to be unique. ` +
			`bases name the revision that a file must have (null: it must not exist). registrations give files or folders an id that they keep when they move. ` +
			`compositions replace the parts of a registered content.`,
		Parameters: json.RawMessage(`{"type":"object","properties":{"patch":{"type":"string"},` +
			`"bases":{"type":"array","items":{"type":"object","properties":{"path":{"type":"string"},"base":{"type":["string","null"]}},` +
			`"required":["path","base"],"additionalProperties":false}},` +
			`"registrations":{"type":"array","items":{"type":"object","properties":{"path":{"type":"string"},"role":{"type":"string","enum":["document","material"]},` +
			`"id":{"type":"string"},"members":` + members + `},"required":["path","role"],"additionalProperties":false}},` +
			`"compositions":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"base":{"type":"string"},"members":` + members + `},` +
			`"required":["id","base","members"],"additionalProperties":false}}},"required":["patch"],"additionalProperties":false}`),
	}
}

func (*patchTool) Sequential() bool { return true }

func (p *patchTool) Execute(ctx context.Context, _ string, raw json.RawMessage) (Result, error) {
	var args Patch
	if err := json.Unmarshal(raw, &args); err != nil {
		return Result{}, err
	}
	change, err := p.editor.Patch(ctx, args)
	if err != nil {
		return failed(ctx, err)
	}
	p.seen.changed(change, false)
	what := fmt.Sprintf("Patched %d files", len(change.Files))
	if len(change.Files) == 1 {
		what = "Patched " + change.Files[0].Path
	}
	return saved(change, what, true), nil
}

type infoTool struct{ inspector Inspector }

func (*infoTool) Spec() llm.ToolSpec {
	return llm.ToolSpec{
		Name: "content_info",
		Description: `Tell what a path or repa: reference of the space is, without reading it: id and role of a registered content, structural revision, ` +
			`parts, size, and whether its file is there.`,
		Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","description":"Path relative to the space, or repa:document/<id>"}},` +
			`"required":["path"],"additionalProperties":false}`),
	}
}

func (*infoTool) Sequential() bool { return false }

func (i *infoTool) Execute(ctx context.Context, _ string, raw json.RawMessage) (Result, error) {
	var args struct{ Path string }
	if err := json.Unmarshal(raw, &args); err != nil {
		return Result{}, err
	}
	info, err := i.inspector.Inspect(ctx, cleanPath(args.Path))
	if err != nil {
		return failed(ctx, err)
	}
	return told(info), nil
}

// told is a value as the model reads it.
func told(v any) Result {
	data := details(v)
	r := Text(string(data))
	r.Details = data
	return r
}

type operationTool struct {
	editor Editor
	seen   *seen
}

func (*operationTool) Spec() llm.ToolSpec {
	return llm.ToolSpec{
		Name: "content_operation",
		Description: `Ask what became of a saved change by its operation id (action "get"), or take it back (action "undo"). An undo keeps later changes that ` +
			`can be told apart, and is an operation that can be undone itself.`,
		Parameters: json.RawMessage(`{"type":"object","properties":{"action":{"type":"string","enum":["get","undo"]},"operationId":{"type":"string"}},` +
			`"required":["action","operationId"],"additionalProperties":false}`),
	}
}

func (*operationTool) Sequential() bool { return true }

func (o *operationTool) Execute(ctx context.Context, _ string, raw json.RawMessage) (Result, error) {
	var args struct{ Action, OperationID string }
	if err := json.Unmarshal(raw, &args); err != nil {
		return Result{}, err
	}
	if args.Action == "get" {
		operation, err := o.editor.Operation(ctx, args.OperationID)
		if err != nil {
			return failed(ctx, err)
		}
		return told(operation), nil
	}
	change, err := o.editor.Undo(ctx, args.OperationID)
	if err != nil {
		return failed(ctx, err)
	}
	o.seen.changed(change, false)
	return saved(change, "Undid operation "+args.OperationID, true), nil
}
