package actors_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/client"
)

// fileAt is a file of a space as a target.
func fileAt(space protocol.ID, path string) protocol.ContentTarget {
	return protocol.ContentTarget{Kind: "file", SpaceID: space, Location: &protocol.FileLocation{Kind: "relative", Path: path}}
}

func written(space, id protocol.ID, path, text string, base protocol.WriteBase) protocol.ContentWriteParams {
	return protocol.ContentWriteParams{Target: fileAt(space, path), OperationID: id, Value: protocol.ContentValue{Kind: "text", Text: text}, Base: base}
}

// What a front end holds stays as it was, whatever becomes of the files, until it is released; and no other front end has it.
func TestHolds(t *testing.T) {
	w := start(t, nil)
	a, b := w.dial(), w.dial()
	s, _ := w.session(a)
	first := call(w, a, protocol.ContentWrite, written(s.ID, "w1", "a.md", "one\n", protocol.BaseAbsent()))
	hold := call(w, a, protocol.ResourceHold, protocol.HoldParams{SpaceID: s.ID, ID: "h1", Targets: []protocol.ContentTarget{fileAt(s.ID, "a.md")}})
	if len(hold.Contents) != 1 || hold.Contents[0].Resource == nil || hold.Contents[0].Resource.ID != protocol.ID(*first.Changes[0].After) {
		t.Fatalf("%+v", hold)
	}
	call(w, a, protocol.ContentWrite, written(s.ID, "w2", "a.md", "two\n", protocol.BaseRevision(*first.Changes[0].After)))
	call(w, a, protocol.ResourceHold, protocol.HoldParams{SpaceID: s.ID, ID: "h2", Targets: []protocol.ContentTarget{fileAt(s.ID, "a.md")}})
	call(w, a, protocol.OperationPrune, protocol.OperationPruneParams{SpaceID: s.ID, OperationIDs: []protocol.ID{"w1", "w2"}})
	call(w, a, protocol.ResourceCollect, protocol.SpaceParams{SpaceID: s.ID})
	again := call(w, a, protocol.ResourceHold, protocol.HoldParams{SpaceID: s.ID, ID: "h1", Targets: []protocol.ContentTarget{fileAt(s.ID, "a.md")}})
	if again.Contents[0].Resource.ID != hold.Contents[0].Resource.ID {
		t.Error("a repeated hold is of what is there now")
	}
	for _, c := range []struct {
		from   *client.Client
		params protocol.HoldParams
		code   protocol.Code
	}{
		{b, protocol.HoldParams{SpaceID: s.ID, ID: "h1", Targets: []protocol.ContentTarget{fileAt(s.ID, "a.md")}}, protocol.CodePermissionRequired},
		{a, protocol.HoldParams{SpaceID: s.ID, ID: "h1", Targets: []protocol.ContentTarget{fileAt(s.ID, ".")}}, protocol.CodeRequestConflict},
		{a, protocol.HoldParams{SpaceID: s.ID, ID: "h3", Targets: []protocol.ContentTarget{fileAt(s.ID, "none.md")}}, protocol.CodeNotFound},
		{a, protocol.HoldParams{SpaceID: s.ID, ID: "h3"}, protocol.CodeInvalidInput},
	} {
		_, err := client.Call(ctx, c.from, protocol.ResourceHold, c.params)
		wantCode(t, err, c.code)
	}
	_, err := client.Call(ctx, b, protocol.ResourceRelease, protocol.ContentRef{SpaceID: s.ID, ID: "h1"})
	wantCode(t, err, protocol.CodePermissionRequired)
	call(w, a, protocol.ResourceRelease, protocol.ContentRef{SpaceID: s.ID, ID: "h1"})
	_, err = client.Call(ctx, a, protocol.ResourceHold, protocol.HoldParams{SpaceID: s.ID, ID: "h1", Targets: []protocol.ContentTarget{fileAt(s.ID, "a.md")}})
	wantCode(t, err, protocol.CodeLeaseExpired)
	if kept := call(w, a, protocol.ResourceHoldGet, protocol.ContentRef{SpaceID: s.ID, ID: "h2"}); kept.ExpiresAt == 0 {
		t.Errorf("the other hold: %+v", kept)
	}
}

// What another program does is shown, in the history, and can be undone.
func TestOutsideChangesAreShown(t *testing.T) {
	w := start(t, nil)
	c := w.dial()
	s, _ := w.session(c)
	call(w, c, protocol.ContentWrite, written(s.ID, "w1", "a.md", "one\n", protocol.BaseAbsent()))
	watch, err := client.Watch(ctx, c, protocol.Scope{SpaceID: s.ID})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Path, "a.md"), []byte("theirs\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for shown := false; !shown; {
		u, err := watch.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range u.Changes {
			shown = shown || change.Type == protocol.ChangeContent && change.Result == nil && len(change.Paths) == 1 && change.Paths[0] == "a.md"
		}
	}
	h := call(w, c, protocol.ContentHistory, protocol.ContentHistoryParams{Target: fileAt(s.ID, "a.md")})
	if len(h.Revisions) != 2 || h.Revisions[0].Actor != protocol.ActorOutside || h.Revisions[1].Actor != protocol.ActorLearner {
		t.Fatalf("%+v", h)
	}
	d := call(w, c, protocol.ContentDiff, protocol.ContentDiffParams{Target: fileAt(s.ID, "a.md")})
	if !strings.Contains(d.Unified, "-one\n+theirs\n") {
		t.Errorf("diff %q", d.Unified)
	}
	call(w, c, protocol.OperationUndo, protocol.OperationUndoParams{SpaceID: s.ID, OperationID: h.Revisions[0].OperationID, UndoOperationID: "u1"})
	if data, err := os.ReadFile(filepath.Join(s.Path, "a.md")); err != nil || string(data) != "one\n" {
		t.Errorf("%q %v", data, err)
	}
	r := call(w, c, protocol.ContentSave, protocol.ContentSaveParams{Target: fileAt(s.ID, "a.md"), OperationID: "s1", Text: "one\nmore\n", Base: *d.From})
	if len(r.Diffs) != 1 || !strings.Contains(r.Diffs[0].Unified, "+more\n") {
		t.Errorf("%+v", r)
	}
}

// Operations, items and what was seen of the files survive the end of the backend.
func TestContentSurvives(t *testing.T) {
	dir := t.TempDir()
	w := start(t, nil)
	c := w.dial()
	s := call(w, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: dir})
	call(w, c, protocol.ContentWrite, written(s.ID, "w1", "f/a.md", "one\n", protocol.BaseAbsent()))
	call(w, c, protocol.ContentAssociate, protocol.ContentAssociateParams{SpaceID: s.ID, OperationID: "r1", Location: protocol.FileLocation{Kind: "relative", Path: "f/a.md"}, Role: protocol.RoleDocument, ID: "A"})
	w.stop()
	if err := os.WriteFile(filepath.Join(dir, "f", "a.md"), []byte("while nobody watched\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w = start(t, nil)
	c = w.dial()
	s = call(w, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: dir})
	again := call(w, c, protocol.ContentWrite, written(s.ID, "w1", "f/a.md", "one\n", protocol.BaseAbsent()))
	if again.OperationID != "w1" || len(again.Changes) != 2 {
		t.Errorf("%+v", again)
	}
	ref := protocol.ContentTarget{Kind: "content", Ref: &protocol.ContentRef{SpaceID: s.ID, ID: "A"}}
	read := call(w, c, protocol.ContentRead, protocol.ContentReadParams{Target: ref})
	if read.Text == nil || *read.Text != "while nobody watched\n" || read.Preparation == nil {
		t.Errorf("%+v", read)
	}
	h := call(w, c, protocol.ContentHistory, protocol.ContentHistoryParams{Target: ref})
	if len(h.Revisions) != 2 || h.Revisions[0].Actor != protocol.ActorOutside || h.Document.ID != "A" {
		t.Errorf("%+v", h)
	}
	list := call(w, c, protocol.OperationList, protocol.OperationListParams{SpaceID: s.ID})
	if len(list.Operations) != 3 || list.Operations[2].OperationID != "w1" {
		t.Errorf("%+v", list)
	}
}

func wantCode(t *testing.T, err error, want protocol.Code) {
	t.Helper()
	var coded interface{ Code() string }
	if !errors.As(err, &coded) || coded.Code() != string(want) {
		t.Errorf("%v, want %s", err, want)
	}
}
