package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/repa-app/repa/agent/llm"
)

type writeTool struct {
	editor Editor
	seen   *seen
}

func (*writeTool) Spec() llm.ToolSpec {
	return llm.ToolSpec{
		Name: "write",
		Description: `Create a text file in the space, with its folders, or replace a whole one. A file that exists must have been read in this ` +
			`session and be unchanged since. To change a part of a file use edit.`,
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"Path of the file, relative to the space"},` +
			`"content":{"type":"string","description":"The complete new text"}},` +
			`"required":["path","content"],"additionalProperties":false}`),
	}
}

func (*writeTool) Sequential() bool { return true }

func (w *writeTool) Execute(ctx context.Context, _ string, raw json.RawMessage) (Result, error) {
	var args struct{ Path, Content string }
	if err := json.Unmarshal(raw, &args); err != nil {
		return Result{}, err
	}
	path := cleanPath(args.Path)
	base := w.seen.get(path)
	change, err := w.editor.Write(ctx, path, args.Content, base)
	if err != nil {
		if base == nil && codeOf(err) == "revision_conflict" {
			err = &domainError{"read_required", fmt.Sprintf("%s exists and was not read in this session. Read it first, then write it again.", path)}
		}
		return failed(ctx, err)
	}
	w.seen.changed(change, true)
	verb := "Replaced"
	if base == nil {
		verb = "Created"
	}
	return saved(change, verb+" "+path, base != nil), nil
}

type editTool struct {
	editor Editor
	seen   *seen
}

func (*editTool) Spec() llm.ToolSpec {
	return llm.ToolSpec{
		Name: "edit",
		Description: `Change parts of a text file in the space. Each oldText must be copied exactly from the file, without line numbers, and stand in it ` +
			`exactly once: add surrounding lines until it does. All edits are matched against the file as it is now; they must not overlap. Either all are saved or none.`,
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"Path of the file, relative to the space"},` +
			`"edits":{"type":"array","minItems":1,"items":{"type":"object","properties":{` +
			`"oldText":{"type":"string","minLength":1,"description":"Text to replace"},` +
			`"newText":{"type":"string","description":"Text to put in its place"}},` +
			`"required":["oldText","newText"],"additionalProperties":false}}},` +
			`"required":["path","edits"],"additionalProperties":false}`),
	}
}

func (*editTool) Sequential() bool { return true }

// Prepare accepts a single edit at the top level and edits as a JSON string.
func (*editTool) Prepare(args json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(args, &fields) != nil || fields == nil {
		return args
	}
	oldText, newText := fields["oldText"], fields["newText"]
	var quoted string
	switch {
	case fields["edits"] == nil && oldText != nil && newText != nil:
		delete(fields, "oldText")
		delete(fields, "newText")
		fields["edits"] = details([]map[string]json.RawMessage{{"oldText": oldText, "newText": newText}})
	case json.Unmarshal(fields["edits"], &quoted) == nil && json.Valid([]byte(quoted)):
		fields["edits"] = json.RawMessage(quoted)
	default:
		return args
	}
	return details(fields)
}

func (e *editTool) Execute(ctx context.Context, _ string, raw json.RawMessage) (Result, error) {
	var args struct {
		Path  string
		Edits []Edit
	}
	if err := json.Unmarshal(raw, &args); err != nil {
		return Result{}, err
	}
	change, err := e.editor.Edit(ctx, cleanPath(args.Path), args.Edits)
	if err != nil {
		return failed(ctx, err)
	}
	e.seen.changed(change, false)
	places := "1 place"
	if n := len(args.Edits); n > 1 {
		places = fmt.Sprintf("%d places", n)
	}
	return saved(change, "Edited "+args.Path+" in "+places, true), nil
}

// maxDiff bounds the diff in a result: the model wrote the text itself, so a long diff tells it nothing new.
const maxDiff = 8 << 10

// saved is the result of a change; with diff it shows what changed.
func saved(c Change, what string, diff bool) Result {
	text := what + "."
	for _, n := range c.Notes {
		text += "\n" + n
	}
	if diff && c.Diff != "" && len(c.Diff) <= maxDiff {
		text += "\n" + strings.TrimSuffix(c.Diff, "\n")
	}
	r := Text(text + "\n" + operationLine(c.OperationID))
	files := c.Files
	if files == nil {
		files = []FileChange{}
	}
	r.Details = details(struct {
		OperationID string       `json:"operationId"`
		Changes     []FileChange `json:"changes"`
	}{c.OperationID, files})
	return r
}

func operationLine(id string) string { return "operationId: " + id }
