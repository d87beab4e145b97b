package actors_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/actors"
	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/client"
	"github.com/repa-app/repa/testkit/modelserver"
)

// long is a text that is kept in the store, with characters that JSON escapes and that take several bytes.
func long(word string) string { return strings.Repeat(word+" \"素\" \\ \u2028\n", 1000) }

// attached is a submission with a question, a long text and a long selection.
func attached(key protocol.SessionKey, id string) protocol.Submit {
	p := submission(key, id, "What is in here?")
	p.Input.Parts = append(p.Input.Parts, protocol.TextPart(long("attached")), protocol.InputPart{Kind: "selection", Text: long("selected"),
		Source: &protocol.SelectionSource{DraftID: "d", Target: protocol.ContentTarget{Kind: "file", SpaceID: key.SpaceID,
			Location: &protocol.FileLocation{Kind: "relative", Path: "notes.md"}}}})
	return p
}

// wholeText is what the model and the history get of it.
var wholeText = "What is in here?\n\n" + long("attached") + "\n\nSelected text from notes.md:\n\n" + long("selected")

// inStore opens the store of a space beside whoever has it open.
func inStore(t testing.TB, path string) *cas.Store {
	t.Helper()
	s, err := cas.Open(t.Context(), filepath.Join(path, ".repa", "cas"), cas.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// owners lists who holds something in the store of a space.
func owners(t testing.TB, path string) []string {
	t.Helper()
	out := []string{}
	for o := range inStore(t, path).AllOwners("") {
		out = append(out, o.String())
	}
	return out
}

// journal is every byte of a space's journal.
func journal(t testing.TB, path string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(path, ".repa", "journal", "*.log"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var all strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}

// checkWhole wants a request, its run and its history to show all that was sent.
func checkWhole(w *world, c *client.Client, p protocol.Submit, r protocol.Request) {
	w.t.Helper()
	if diff := cmp.Diff(p.Input, r.Input); diff != "" {
		w.t.Errorf("answer of the submission: %s", diff)
	}
	key := p.Target
	got := call(w, c, protocol.RequestGet, protocol.RequestGetParams{SpaceID: key.SpaceID, RequestID: p.RequestID}).Request
	if got == nil {
		w.t.Fatalf("request %s is unknown", p.RequestID)
	}
	if diff := cmp.Diff(p.Submission(), got.Submission); diff != "" {
		w.t.Errorf("submission of request.get: %s", diff)
	}
	if diff := cmp.Diff(p.Input, got.Input); diff != "" {
		w.t.Errorf("input of request.get: %s", diff)
	}
	if run := call(w, c, protocol.RunGet, protocol.RunParams{SpaceID: key.SpaceID, RunID: r.RunID}).Run; run == nil || run.Text != wholeText {
		w.t.Errorf("run.get lacks the text: %+v", run)
	}
	if run := call(w, c, protocol.RunCancel, protocol.RunParams{SpaceID: key.SpaceID, RunID: r.RunID}); run.Text != wholeText {
		w.t.Errorf("run.cancel lacks the text: %+v", run)
	}
	view := call(w, c, protocol.SessionGet, key)
	i := slices.IndexFunc(view.Runs, func(run protocol.Run) bool { return run.ID == r.RunID })
	if i < 0 || view.Runs[i].Text != wholeText {
		w.t.Errorf("session.get lacks the run's text: %+v", view.Runs)
	}
	history := call(w, c, protocol.SessionHistory, protocol.HistoryParams{SpaceID: key.SpaceID, SessionID: key.SessionID})
	if len(history.Messages) == 0 || history.Messages[0].Content[0].Text != wholeText {
		w.t.Errorf("history: %+v", history.Messages)
	}
}

// Long input lies in the store and not in the journal; everybody who asks sees what was sent, also after a restart.
func TestLongInput(t *testing.T) {
	first := start(t, nil)
	c := first.dial()
	s, key := first.session(c)
	p := attached(key, "r1")
	r := call(first, c, protocol.SessionSubmit, p)
	first.ended(c, key, r.RunID)
	checkWhole(first, c, p, r)
	if asked := first.model.Requests(); len(asked) != 1 || !strings.Contains(string(mustJSON(t, asked[0].JSON)), string(mustJSON(t, wholeText))) {
		t.Error("the model did not get the whole text")
	}
	if text := journal(t, s.Path); strings.Contains(text, "attached") || strings.Contains(text, "selected ") || len(text) > 16<<10 {
		t.Errorf("%d bytes of journal, which hold the text", len(text))
	}
	if got := owners(t, s.Path); !slices.Equal(got, []string{"request:r1"}) {
		t.Errorf("owners %v", got)
	}
	held := inStore(t, s.Path).Held(cas.Owner{Kind: cas.OwnerRequest, ID: "r1"})
	if want := []cas.ID{cas.Sum([]byte(long("attached"))), cas.Sum([]byte(long("selected")))}; !slices.Equal(held, want) {
		t.Errorf("held %v, want %v", held, want)
	}
	c.Drop()
	first.stop()

	second := start(t, nil)
	c = second.dial()
	call(second, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: s.Path})
	again := call(second, c, protocol.SessionSubmit, p)
	if again.RunID != r.RunID || again.Status != protocol.RequestCompleted || len(second.model.Requests()) != 0 {
		t.Errorf("repeated: %+v", again)
	}
	checkWhole(second, c, p, again)
	if got := owners(t, s.Path); !slices.Equal(got, []string{"request:r1"}) {
		t.Errorf("owners after a restart %v", got)
	}
}

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return []byte(strings.Trim(strings.TrimSpace(b.String()), `"`))
}

// A repetition is recognised wherever the texts lie, and another text in the same place is another submission.
func TestLongInputConflicts(t *testing.T) {
	w := start(t, nil)
	c := w.dial()
	s, key := w.session(c)
	w.script(modelserver.Turn{Chunks: []string{"x"}, Hold: "h"})
	p := attached(key, "r1")
	r := call(w, c, protocol.SessionSubmit, p)
	<-w.model.Started("h")
	conflicts := func(when string) {
		t.Helper()
		for name, part := range map[string]protocol.InputPart{
			"another long text": protocol.TextPart(long("other")), "a short text": protocol.TextPart("short"),
			// What stands for the text in records must not pass for it.
			"the id as text": protocol.TextPart(cas.Sum([]byte(p.Input.Parts[1].Text)).String()), "no text": protocol.TextPart(""),
		} {
			other := p
			other.Input.Parts = slices.Clone(p.Input.Parts)
			other.Input.Parts[1] = part
			if _, err := client.Call(ctx, c, protocol.SessionSubmit, other); code(err) != protocol.CodeRequestIdConflict {
				t.Errorf("%s, %s: %v", when, name, err)
			}
		}
		if again := call(w, c, protocol.SessionSubmit, p); again.RunID != r.RunID {
			t.Errorf("%s: repeated as %+v", when, again)
		}
	}
	conflicts("running")
	// A refused admission holds nothing.
	if _, err := client.Call(ctx, c, protocol.SessionSubmit, attached(key, "busy")); code(err) != protocol.CodeSessionBusy {
		t.Error(err)
	}
	// A steer's input is kept like that of a start, also of one that comes too late.
	steer := attached(key, "steer")
	steer.Dispatch = protocol.Dispatch{Kind: "steer", ExpectedRunID: r.RunID}
	call(w, c, protocol.SessionSubmit, steer)
	w.model.Release("h")
	w.ended(c, key, r.RunID)
	late := attached(key, "late")
	late.Dispatch = steer.Dispatch
	call(w, c, protocol.SessionSubmit, late)
	conflicts("ended")
	for _, p := range []protocol.Submit{steer, late} {
		got := call(w, c, protocol.RequestGet, protocol.RequestGetParams{SpaceID: key.SpaceID, RequestID: p.RequestID}).Request
		if got == nil {
			t.Fatalf("%s is unknown", p.RequestID)
		}
		if diff := cmp.Diff(p.Input, got.Input); diff != "" {
			t.Errorf("%s: %s", p.RequestID, diff)
		}
	}
	if got := owners(t, s.Path); !slices.Equal(got, []string{"request:late", "request:r1", "request:steer"}) {
		t.Errorf("owners %v", got)
	}
}

// No record grows with the input, also when it is so large that the store cuts it into pieces.
func TestInputInPieces(t *testing.T) {
	w := start(t, nil)
	c := w.dial()
	s, key := w.session(c)
	text := strings.Repeat("0123456789abcde\n", 2<<20/16)
	p := submission(key, "r1", text)
	r := call(w, c, protocol.SessionSubmit, p)
	w.ended(c, key, r.RunID)
	got := call(w, c, protocol.RequestGet, protocol.RequestGetParams{SpaceID: key.SpaceID, RequestID: "r1"}).Request
	if got == nil || got.Input.Parts[0].Text != text {
		t.Error("the text is another")
	}
	if n := len(journal(t, s.Path)); n > 16<<10 {
		t.Errorf("%d bytes of journal", n)
	}
}

// A text that can no longer be read is told where it is asked for; everything else goes on.
func TestLostInput(t *testing.T) {
	first := start(t, nil)
	c := first.dial()
	s, key := first.session(c)
	p := attached(key, "r1")
	first.ended(c, key, call(first, c, protocol.SessionSubmit, p).RunID)
	first.ended(c, key, call(first, c, protocol.SessionSubmit, submission(key, "r2", "short")).RunID)
	c.Drop()
	first.stop()
	flip(t, s.Path, 130) // in the first object

	second := start(t, nil)
	c = second.dial()
	call(second, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: s.Path})
	_, err := client.Call(ctx, c, protocol.RequestGet, protocol.RequestGetParams{SpaceID: key.SpaceID, RequestID: "r1"})
	if code(err) != protocol.CodeInvalidStorage || !strings.Contains(err.Error(), "request:r1") {
		t.Errorf("%v", err)
	}
	if _, err := client.Call(ctx, c, protocol.SessionSubmit, p); code(err) != protocol.CodeInvalidStorage {
		t.Errorf("repeated: %v", err)
	}
	view := call(second, c, protocol.SessionGet, key)
	if len(view.Runs) != 2 || view.Runs[1].Text != "short" || !slices.ContainsFunc(view.Notices, func(n protocol.Notice) bool { return strings.Contains(n.Message, "past run") }) {
		t.Errorf("%d runs, notices %+v", len(view.Runs), view.Notices)
	}
	if r := call(second, c, protocol.SessionSubmit, submission(key, "r3", "go on")); r.Status != protocol.RequestRunning {
		t.Errorf("%+v", r)
	}
}

// A journal of an older version, with the text in it, says the same.
func TestInlineInputOfOlderJournals(t *testing.T) {
	first := start(t, nil)
	c := first.dial()
	s, key := first.session(c)
	p := submission(key, "r1", strings.Repeat("x", 4<<10)) // the longest that stands in the journal
	r := call(first, c, protocol.SessionSubmit, p)
	first.ended(c, key, r.RunID)
	c.Drop()
	first.stop()
	if got := owners(t, s.Path); len(got) != 0 {
		t.Errorf("owners %v", got)
	}
	if strings.Count(journal(t, s.Path), p.Input.Parts[0].Text) < 3 {
		t.Fatal("the text does not stand in the journal")
	}
	second := start(t, nil)
	c = second.dial()
	call(second, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: s.Path})
	if again := call(second, c, protocol.SessionSubmit, p); again.RunID != r.RunID {
		t.Errorf("%+v", again)
	}
	p.Input.Parts[0].Text += "y"
	if _, err := client.Call(ctx, c, protocol.SessionSubmit, p); code(err) != protocol.CodeRequestIdConflict {
		t.Error(err)
	}
}

// What a tool's result shows a part of is held by the session before its message names it.
func TestLongToolOutput(t *testing.T) {
	w := start(t, nil)
	c := w.dial()
	s, key := w.session(c)
	document := strings.Repeat("a line about primes\n", 3000)
	if err := os.WriteFile(filepath.Join(s.Path, "primes.md"), []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 5 { // each file offers a few matches
		if err := os.WriteFile(filepath.Join(s.Path, fmt.Sprintf("%d.md", i)), []byte(document), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.script(modelserver.Calls(modelserver.ToolCall{ID: "c1", Name: "read", Args: `{"path":"primes.md"}`}),
		modelserver.Calls(modelserver.ToolCall{ID: "c2", Name: "search", Args: `{"query":"primes","limit":2}`}))
	r := call(w, c, protocol.SessionSubmit, submission(key, "r1", "read it"))
	w.ended(c, key, r.RunID)
	store := inStore(t, s.Path)
	held := store.Held(cas.Owner{Kind: cas.OwnerSession, ID: string(key.SessionID)})
	history := call(w, c, protocol.SessionHistory, protocol.HistoryParams{SpaceID: key.SpaceID, SessionID: key.SessionID})
	var outputs []string
	for _, m := range history.Messages {
		if m.Role != protocol.RoleTool {
			continue
		}
		var d struct {
			FullOutput struct {
				ID        cas.ID
				MediaType string
				Size      int64
			}
		}
		if err := json.Unmarshal(m.Details, &d); err != nil {
			t.Fatal(err)
		}
		data, err := store.Get(t.Context(), d.FullOutput.ID, -1)
		if err != nil || int64(len(data)) != d.FullOutput.Size || d.FullOutput.MediaType != "text/plain" || !slices.Contains(held, d.FullOutput.ID) {
			t.Errorf("%s: %+v, %v, held %v", m.Name, d, err, held)
		}
		if !strings.Contains(m.Content[0].Text, "The whole is kept with the session: read repa:resource/") {
			t.Errorf("%s does not say so", m.Name)
		}
		outputs = append(outputs, string(data))
	}
	if len(outputs) != 2 || outputs[0] != document || strings.Count(outputs[1], "\n") < 12 {
		t.Errorf("%d outputs: %q", len(outputs), outputs[len(outputs)-1])
	}
}

// hold puts something into the store of a closed space.
func hold(t testing.TB, path string, texts map[string]string) {
	t.Helper()
	s, err := cas.Open(t.Context(), filepath.Join(path, ".repa", "cas"), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for owner, text := range texts {
		kind, id, _ := strings.Cut(owner, ":")
		if _, err := s.PutHeld(t.Context(), cas.Owner{Kind: cas.OwnerKind(kind), ID: id}, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Opening a space ends the holds of requests and sessions that there are not, and no others.
func TestOwnersWithoutAnEntity(t *testing.T) {
	first := start(t, nil)
	c := first.dial()
	s, key := first.session(c)
	first.ended(c, key, call(first, c, protocol.SessionSubmit, attached(key, "r1")).RunID)
	first.ended(c, key, call(first, c, protocol.SessionSubmit, submission(key, "r2", "short")).RunID)
	c.Drop()
	first.stop()
	session := "session:" + string(key.SessionID)
	hold(t, s.Path, map[string]string{"request:r1": "more than its input", "request:r2": "not its input", "request:never": "x", session: "x", "session:gone": "x", "document:d": "x"})
	open := func() []string {
		t.Helper()
		w := start(t, nil)
		c := w.dial()
		call(w, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: s.Path})
		call(w, c, protocol.SessionList, protocol.SpaceParams{SpaceID: s.ID}) // answered when all session files were looked at
		got := owners(t, s.Path)
		c.Drop()
		w.stop()
		return got
	}
	// A session file that cannot be read may be any session's.
	unreadable := filepath.Join(s.Path, ".repa", "sessions", "2026-01-01T00-00-00-000Z_other.jsonl")
	if err := os.WriteFile(unreadable, []byte(`{"type":"no session"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := open(), slices.Sorted(slices.Values([]string{"request:r1", "session:gone", session})); !slices.Equal(got, want) {
		t.Errorf("with an unreadable session file: %v", got)
	}
	if held := inStore(t, s.Path).Held(cas.Owner{Kind: cas.OwnerRequest, ID: "r1"}); len(held) != 2 {
		t.Errorf("an ended request holds %d objects, want its input alone", len(held))
	}
	if err := os.Remove(unreadable); err != nil {
		t.Fatal(err)
	}
	if got := open(); !slices.Equal(got, []string{"request:r1", session}) {
		t.Errorf("all session files can be read: %v", got)
	}
}

// resource.collect gives free what nobody holds, and leaves everything else.
func TestCollect(t *testing.T) {
	w := start(t, func(o *actors.Options) { o.Store = cas.Options{Grace: -1} })
	c := w.dial()
	s, key := w.session(c)
	p := attached(key, "r1")
	r := call(w, c, protocol.SessionSubmit, p)
	w.ended(c, key, r.RunID)
	collect := func() protocol.CollectResult {
		t.Helper()
		return call(w, c, protocol.ResourceCollect, protocol.SpaceParams{SpaceID: s.ID})
	}
	if got := collect(); got.Removed != 0 {
		t.Errorf("everything is held: %+v", got)
	}
	c.Drop()
	w.stop()
	junk(t, s.Path, 2)
	w = start(t, func(o *actors.Options) { o.Store = cas.Options{Grace: -1} })
	c = w.dial()
	call(w, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: s.Path})
	if got := collect(); got.Removed != 2 || got.Bytes < 2<<20 {
		t.Errorf("2 MiB of nobody's: %+v", got)
	}
	if got := collect(); got.Removed != 0 || got.Bytes != 0 {
		t.Errorf("a second collection: %+v", got)
	}
	checkWhole(w, c, p, r)
	if _, err := client.Call(ctx, c, protocol.ResourceCollect, protocol.SpaceParams{SpaceID: "none"}); code(err) != protocol.CodeNotFound {
		t.Error(err)
	}
}

// junk is bytes that nobody holds and that do not compress.
func junk(t testing.TB, path string, n int) {
	t.Helper()
	s, err := cas.Open(t.Context(), filepath.Join(path, ".repa", "cas"), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1<<20)
	state := uint64(n)
	for range n {
		for i := range b {
			state = state*6364136223846793005 + 1442695040888963407
			b[i] = byte(state >> 56)
		}
		if _, err := s.Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A store whose holds may have been damaged collects nothing, and says so.
func TestCollectInDoubt(t *testing.T) {
	first := start(t, nil)
	c := first.dial()
	s, key := first.session(c)
	for _, id := range []string{"r1", "r2"} {
		first.ended(c, key, call(first, c, protocol.SessionSubmit, attached(key, id)).RunID)
	}
	c.Drop()
	first.stop()
	checkpoints, err := filepath.Glob(filepath.Join(s.Path, ".repa", "cas", "checkpoint-*"))
	if err != nil || len(checkpoints) == 0 {
		t.Fatal(checkpoints, err)
	}
	for _, c := range checkpoints { // so that the log is read
		if err := os.Remove(c); err != nil {
			t.Fatal(err)
		}
	}
	flip(t, s.Path, 70) // the first record's frame
	w := start(t, nil)
	c = w.dial()
	call(w, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: s.Path})
	_, err = client.Call(ctx, c, protocol.ResourceCollect, protocol.SpaceParams{SpaceID: s.ID})
	if code(err) != protocol.CodeInvalidStorage || !strings.Contains(err.Error(), "repair the store first") {
		t.Errorf("%v", err)
	}
}

// flip changes a byte of the only pack of a closed space.
func flip(t testing.TB, path string, at int) {
	t.Helper()
	packs, err := filepath.Glob(filepath.Join(path, ".repa", "cas", "packs", "*.pack"))
	if err != nil || len(packs) != 1 {
		t.Fatal(packs, err)
	}
	data, err := os.ReadFile(packs[0])
	if err != nil {
		t.Fatal(err)
	}
	data[at] ^= 1
	if err := os.WriteFile(packs[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A space in which nothing runs collects by itself when that is worth it, and not before.
func TestTidiesWhenIdle(t *testing.T) {
	first := start(t, nil)
	c := first.dial()
	s, _ := first.session(c)
	c.Drop()
	first.stop()
	idle := func(o *actors.Options) { o.Store, o.SpaceIdle = cas.Options{Grace: -1, Rate: 1 << 30}, 1 }
	junk(t, s.Path, 15)
	before := inStore(t, s.Path).Stats()
	w := start(t, idle)
	c = w.dial()
	call(w, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: s.Path})
	w.log.wait(t, "nothing is worth collecting")
	c.Drop()
	w.stop()
	if after := inStore(t, s.Path).Stats(); after.Objects != before.Objects || after.Last != nil {
		t.Errorf("15 MiB were collected: %+v", after)
	}
	junk(t, s.Path, 2)
	w = start(t, idle)
	c = w.dial()
	call(w, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: s.Path})
	w.log.wait(t, "unused objects were removed")
	if after := inStore(t, s.Path).Stats(); after.Objects != 0 || after.Last == nil || after.Last.Bytes < 16<<20 {
		t.Errorf("%+v", after)
	}
}
