package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/repa-app/repa/cmd/repa/messages"
	"github.com/repa-app/repa/protocol"
)

type undoCommand struct {
	Operation string `arg:"" optional:"" help:"${undo_operation}"`
	Whole     string `name:"run" help:"${undo_run}" placeholder:"ID"`
	spaceFlags
}

// Ends of an undo.
const (
	undone   = "undone"
	conflict = "conflict"
)

// undoResult is the object of --output json. Of one operation it has OperationID, of a run OperationIDs: what was undone. UndoOperationID is null when nothing
// was. The status is conflict as soon as anything stayed because of later changes.
type undoResult struct {
	OperationID     protocol.ID                  `json:"operationId,omitempty"`
	OperationIDs    *[]protocol.ID               `json:"operationIds,omitempty"`
	UndoOperationID *protocol.ID                 `json:"undoOperationId"`
	Status          string                       `json:"status"`
	Changes         []protocol.ContentChange     `json:"changes"`
	Conflicts       []protocol.OperationConflict `json:"conflicts"`
}

// Run undoes an operation or what a run did.
func (c *undoCommand) Run(ctx context.Context, t *terminal) error {
	if (c.Operation == "") == (c.Whole == "") {
		return t.fail(exitUsage, messages.UndoWhich)
	}
	return c.visit(ctx, t, func(v *visit) error {
		undo := v.undoOperation
		given := c.Operation
		if c.Whole != "" {
			undo, given = v.undoRun, c.Whole
		}
		r, err := undo(given, protocol.ID(uuid.NewString()))
		if err != nil {
			return err
		}
		r.Status = undone
		if len(r.Conflicts) > 0 {
			r.Status = conflict
		}
		if v.json {
			printJSON(t.out, r)
		} else {
			t.printUndo(r)
		}
		if r.Status == conflict {
			return &exit{code: exitFailed}
		}
		return nil
	})
}

func (v *visit) undoOperation(given string, undoID protocol.ID) (undoResult, error) {
	id, err := v.operation(given)
	if err != nil {
		return undoResult{}, err
	}
	out := undoResult{OperationID: id, Changes: []protocol.ContentChange{}, Conflicts: []protocol.OperationConflict{}}
	r, err := ask(v, protocol.OperationUndo, protocol.OperationUndoParams{SpaceID: v.space.ID, OperationID: id, UndoOperationID: undoID})
	if paths := conflicting(err); paths != nil {
		out.Conflicts = append(out.Conflicts, protocol.OperationConflict{OperationID: id, Paths: paths})
		return out, nil
	}
	if err != nil {
		return undoResult{}, err
	}
	out.UndoOperationID, out.Changes = &undoID, r.Changes
	return out, nil
}

// conflicting is the paths for which later changes kept an operation from being undone, nil for other errors.
func conflicting(err error) []string {
	var domain *protocol.Error
	if !errors.As(err, &domain) || domain.Reason != protocol.CodeRevisionConflict {
		return nil
	}
	var details struct {
		Paths []string `json:"paths"`
		Path  string   `json:"path"`
	}
	if raw, ok := domain.Details.(jsontext.Value); !ok || json.Unmarshal(raw, &details) != nil {
		return nil
	}
	if details.Paths == nil && details.Path != "" {
		return []string{details.Path}
	}
	return details.Paths
}

func (v *visit) undoRun(given string, undoID protocol.ID) (undoResult, error) {
	id, err := v.run(given)
	if err != nil {
		return undoResult{}, err
	}
	r, err := ask(v, protocol.OperationUndoRun, protocol.OperationUndoRunParams{SpaceID: v.space.ID, RunID: id, UndoOperationID: undoID})
	if err != nil {
		return undoResult{}, err
	}
	out := undoResult{OperationIDs: &r.OperationIDs, Changes: r.Result.Changes, Conflicts: r.Conflicts}
	if len(r.OperationIDs) > 0 {
		out.UndoOperationID = &undoID
	}
	return out, nil
}

// printUndo says which files changed, and what stayed.
func (t *terminal) printUndo(r undoResult) {
	t.printChanges(r.Changes)
	for _, c := range r.Conflicts {
		fmt.Fprintln(t.out, t.text(messages.UndoStays, shortOf(c.OperationID), strings.Join(c.Paths, ", ")))
	}
	if r.UndoOperationID != nil {
		t.say(messages.UndoDone, shortOf(*r.UndoOperationID))
	}
}

// printChanges names the files that an operation changed. Folders, which have no revision, go without saying.
func (t *terminal) printChanges(all []protocol.ContentChange) {
	for _, c := range all {
		switch {
		case c.Before == nil && c.After == nil:
		case c.Before == nil:
			fmt.Fprintln(t.out, t.text(messages.Created, c.Path))
		case c.After == nil:
			fmt.Fprintln(t.out, t.text(messages.Removed, c.Path))
		default:
			fmt.Fprintln(t.out, t.text(messages.Changed, c.Path))
		}
	}
}

type restoreCommand struct {
	Path     string `arg:"" help:"${document}"`
	Revision string `help:"${restore_revision}" placeholder:"REV"`
	spaceFlags
}

// Run brings back a removed document or an earlier revision of one.
func (c *restoreCommand) Run(ctx context.Context, t *terminal) error {
	return c.visit(ctx, t, func(v *visit) error {
		target, err := v.target(c.Path)
		if err != nil {
			return err
		}
		p := protocol.ContentRestoreParams{Target: target, OperationID: protocol.ID(uuid.NewString())}
		if p.Revision, err = v.revision(target, c.Revision); err != nil {
			return err
		}
		r, err := ask(v, protocol.ContentRestore, p)
		if err != nil {
			return err
		}
		if v.json {
			return printWire(t.out, r)
		}
		t.printChanges(r.Changes)
		if len(r.Changes) == 0 {
			t.say(messages.RestoreNothing, c.Path)
		} else {
			t.say(messages.UndoDone, shortOf(r.OperationID))
		}
		return nil
	})
}
