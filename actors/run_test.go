package actors_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/repa-app/repa/actors"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/client"
	"github.com/repa-app/repa/testkit/modelserver"
)

var ctx = context.Background()

// code returns the domain code of a refused call.
func code(err error) protocol.Code {
	var e *protocol.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return protocol.Code(fmt.Sprint(err))
}

func messages(w *world, c *client.Client, key protocol.SessionKey) []protocol.Message {
	return call(w, c, protocol.SessionGet, key).Messages
}

// The same prompt with a tool call goes through every wire format; the second request carries the tool's result.
func TestToolCallThroughEveryProvider(t *testing.T) {
	for _, provider := range []string{"openai", "anthropic", "google", "ollama"} {
		t.Run(provider, func(t *testing.T) {
			w := start(t, nil)
			c := w.dial()
			s, key := w.session(c)
			if err := os.WriteFile(filepath.Join(s.Path, "note.md"), []byte("the answer is 42\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			w.script(modelserver.Calls(modelserver.ToolCall{ID: "call_1", Name: "read", Args: `{"path":"note.md"}`}), modelserver.Text("It is ", "42."))
			url := map[string]string{"openai": w.model.OpenAIURL(), "anthropic": w.model.AnthropicURL(), "google": w.model.GeminiURL(),
				"ollama": strings.TrimSuffix(w.model.OpenAIURL(), "/v1")}[provider]
			lent := call(w, c, protocol.ConnectionLend, protocol.LendParams{Provider: provider, BaseURL: url, Secret: "key"})
			p := submission(key, "r1", "What is the answer?")
			p.Selection = &protocol.RunSelection{Model: &protocol.ModelSelection{ConnectionID: lent.ConnectionID, ID: "m"}}
			r := call(w, c, protocol.SessionSubmit, p)
			if run := w.ended(c, key, r.RunID); run.Status != protocol.RunCompleted {
				t.Fatalf("%s: %+v", run.Status, run.Error)
			}
			requests := w.model.Requests()
			if len(requests) != 2 {
				t.Fatalf("%d model requests", len(requests))
			}
			if second := string(requests[1].Body); !strings.Contains(second, "the answer is 42") || !strings.Contains(second, map[string]string{
				"openai": `"role":"tool"`, "ollama": `"role":"tool"`, "anthropic": `"tool_result"`, "google": `"functionResponse"`}[provider]) {
				t.Errorf("the second request lacks the result: %s", second)
			}
			var roles []string
			for _, m := range messages(w, c, key) {
				roles = append(roles, string(m.Role))
			}
			if got := strings.Join(roles, " "); got != "user assistant tool assistant" {
				t.Errorf("history: %s", got)
			}
		})
	}
}

// Ten sessions in three spaces stream at once; each subscriber sees exactly its own session's text, whole and once.
func TestParallelSessionsStreamApart(t *testing.T) {
	var turns sync.Map // prompt → what the model says
	w := start(t, nil)
	c := w.dial()
	model := modelserver.NewFunc(t, func(r *modelserver.RecordedRequest) modelserver.Turn {
		var turn modelserver.Turn
		turns.Range(func(prompt, chunks any) bool {
			if strings.Contains(string(r.Body), prompt.(string)) {
				turn = modelserver.Text(chunks.([]string)...)
			}
			return true
		})
		return turn
	})
	lent := call(w, c, protocol.ConnectionLend, protocol.LendParams{Provider: "openai", BaseURL: model.OpenAIURL(), Secret: "key"})
	var spaces []protocol.Space
	for range 3 {
		spaces = append(spaces, call(w, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: w.directory()}))
	}
	var group sync.WaitGroup
	for i := range 10 {
		prompt := fmt.Sprintf("prompt number %d ends", i)
		var chunks []string
		for j := range 200 {
			chunks = append(chunks, fmt.Sprintf("<%d:%d 字>", i, j))
		}
		turns.Store(prompt, chunks)
		key := call(w, c, protocol.SessionCreate, protocol.SpaceParams{SpaceID: spaces[i%3].ID}).Key()
		own := w.dial()
		group.Go(func() {
			r, err := client.Watch(ctx, own, key.Scope())
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := r.Next(ctx); err != nil {
				t.Error(err)
				return
			}
			p := submission(key, fmt.Sprintf("r%d", i), prompt)
			p.Selection = &protocol.RunSelection{Model: &protocol.ModelSelection{ConnectionID: lent.ConnectionID, ID: "m"}}
			if _, err := client.Call(ctx, c, protocol.SessionSubmit, p); err != nil {
				t.Error(err)
				return
			}
			var streamed strings.Builder
			for over := false; !over; {
				u, err := r.Next(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if u.Snapshot != nil {
					t.Error("a subscriber that keeps up got a snapshot")
					return
				}
				for _, change := range u.Changes {
					switch change.Type {
					case protocol.ChangeDelta:
						streamed.WriteString(change.Text)
					case protocol.ChangeMessage:
						if change.SessionID != key.SessionID {
							t.Errorf("a message of session %s", change.SessionID)
						}
					case protocol.ChangeRun:
						over = change.Run.Status.Terminal()
					}
				}
			}
			if want := strings.Join(chunks, ""); streamed.String() != want {
				t.Errorf("session %d saw %d bytes, want %d", i, streamed.Len(), len(want))
			}
		})
	}
	group.Wait()
}

func TestCancelAtAnyMoment(t *testing.T) {
	w := start(t, nil)
	c := w.dial()
	_, key := w.session(c)
	w.script(modelserver.Turn{Chunks: []string{"partial"}, Hold: "never"})
	r := call(w, c, protocol.SessionSubmit, submission(key, "r1", "hello"))
	<-w.model.Started("never")
	if run := call(w, c, protocol.RunCancel, protocol.RunParams{SpaceID: key.SpaceID, RunID: r.RunID}); run.Status != protocol.RunCancelling {
		t.Errorf("cancel answered %s", run.Status)
	}
	if run := w.ended(c, key, r.RunID); run.Status != protocol.RunCancelled || run.Phase != protocol.PhaseIdle {
		t.Errorf("%+v", run)
	}
	if run := call(w, c, protocol.RunCancel, protocol.RunParams{SpaceID: key.SpaceID, RequestID: "r1"}); run.Status != protocol.RunCancelled {
		t.Errorf("cancel of an ended run answered %s", run.Status)
	}
	if _, err := client.Call(ctx, c, protocol.RunCancel, protocol.RunParams{SpaceID: key.SpaceID, RunID: "none"}); code(err) != protocol.CodeUnknownRun {
		t.Error(err)
	}
	// The session takes the next one.
	r = call(w, c, protocol.SessionSubmit, submission(key, "r2", "again"))
	if run := w.ended(c, key, r.RunID); run.Status != protocol.RunCompleted {
		t.Errorf("%+v", run)
	}
}

func TestSteerReachesItsRunOnly(t *testing.T) {
	w := start(t, nil)
	c := w.dial()
	_, key := w.session(c)
	steer := func(id string, run protocol.ID) protocol.Request {
		p := submission(key, id, "supplement "+id)
		p.Dispatch = protocol.Dispatch{Kind: "steer", ExpectedRunID: run}
		return call(w, c, protocol.SessionSubmit, p)
	}
	if r := steer("s0", "nobody"); r.Status != protocol.RequestNotEntered || r.Delivery.Reason == "" {
		t.Errorf("steer without a run: %+v", r)
	}
	w.script(modelserver.Turn{Hold: "h", ToolCalls: []modelserver.ToolCall{{ID: "1", Name: "search", Args: `{"query":"x"}`}}}, modelserver.Text("done"))
	run := call(w, c, protocol.SessionSubmit, submission(key, "r1", "hello")).RunID
	<-w.model.Started("h")
	for _, id := range []string{"s1", "s2"} {
		if r := steer(id, run); r.Status != protocol.RequestRunning || r.RunID != run {
			t.Errorf("%+v", r)
		}
	}
	w.model.Release("h")
	if ended := w.ended(c, key, run); ended.Status != protocol.RunCompleted || len(ended.RequestIDs) != 3 {
		t.Errorf("%+v", ended)
	}
	var order []string
	for _, m := range messages(w, c, key) {
		if m.Role == protocol.RoleUser {
			order = append(order, string(m.RequestID))
		}
	}
	if got := strings.Join(order, " "); got != "r1 s1 s2" {
		t.Errorf("inputs entered as %s", got)
	}
	for _, id := range []protocol.ID{"s1", "s2"} {
		record := call(w, c, protocol.RequestGet, protocol.RequestGetParams{SpaceID: key.SpaceID, RequestID: id}).Request
		if record.Status != protocol.RequestCompleted || record.Delivery.Status != protocol.DeliveryEntered {
			t.Errorf("%s: %s, %+v", id, record.Status, record.Delivery)
		}
	}
	if r := steer("s3", run); r.Status != protocol.RequestNotEntered {
		t.Errorf("steer of an ended run: %+v", r)
	}
	if n := len(messages(w, c, key)); n != 7 { // 3 inputs, 3 answers, 1 tool result
		t.Errorf("%d messages", n)
	}
}

// A steer that came while the run was ending is given back, whatever the moment.
func TestNoSteerIsLost(t *testing.T) {
	w := start(t, nil)
	c := w.dial()
	_, key := w.session(c)
	entered, returned := 0, 0
	for i := range 15 {
		run := call(w, c, protocol.SessionSubmit, submission(key, fmt.Sprintf("r%d", i), "go")).RunID
		p := submission(key, fmt.Sprintf("s%d", i), "supplement")
		p.Dispatch = protocol.Dispatch{Kind: "steer", ExpectedRunID: run}
		call(w, c, protocol.SessionSubmit, p)
		w.ended(c, key, run)
		record := call(w, c, protocol.RequestGet, protocol.RequestGetParams{SpaceID: key.SpaceID, RequestID: p.RequestID}).Request
		switch {
		case record.Delivery.Status == protocol.DeliveryEntered && record.Status == protocol.RequestCompleted:
			entered++
		case record.Delivery.Status == protocol.DeliveryNotEntered && record.Status == protocol.RequestNotEntered:
			returned++
		default:
			t.Fatalf("steer %d ended as %s with %+v", i, record.Status, record.Delivery)
		}
	}
	t.Logf("%d entered, %d were given back", entered, returned)
}

type panicking struct{}

func (panicking) RoundTrip(*http.Request) (*http.Response, error) { panic("transport exploded") }

func TestAPanicFailsItsRunAlone(t *testing.T) {
	w := start(t, func(o *actors.Options) { o.HTTP = &http.Client{Transport: panicking{}} })
	c := w.dial()
	_, key := w.session(c)
	r := call(w, c, protocol.SessionSubmit, submission(key, "r1", "hello"))
	run := w.ended(c, key, r.RunID)
	if run.Status != protocol.RunFailed || run.Error == nil || run.Error.Code != "runtime" {
		t.Errorf("%+v", run)
	}
	if !strings.Contains(w.log.String(), "RoundTrip") {
		t.Error("the log lacks the stack")
	}
	p := submission(key, "r2", "still there?")
	p.Selection = &protocol.RunSelection{Model: &protocol.ModelSelection{ConnectionID: "builtin", ID: "offline"}}
	r = call(w, c, protocol.SessionSubmit, p)
	if run := w.ended(c, key, r.RunID); run.Status != protocol.RunCompleted {
		t.Errorf("the session after a panic: %+v", run)
	}
}

func TestModelFailuresAreClear(t *testing.T) {
	w := start(t, nil)
	c := w.dial()
	_, key := w.session(c)
	for i, tc := range []struct {
		turn modelserver.Turn
		code string
		says []string
	}{
		{modelserver.Turn{Status: 401, Error: "Incorrect API key provided"}, "auth_required", []string{"401", "Incorrect API key", w.model.URL()}},
		{modelserver.Turn{Status: 404, Error: "The model does not exist"}, "provider", []string{"404", "does not exist"}},
		{modelserver.Turn{Garbage: []byte("<html>hello</html>")}, "provider", []string{"valid stream", w.model.URL()}},
	} {
		w.script(tc.turn)
		r := call(w, c, protocol.SessionSubmit, submission(key, fmt.Sprintf("r%d", i), "hello"))
		run := w.ended(c, key, r.RunID)
		if run.Status != protocol.RunFailed || run.Error == nil || run.Error.Code != tc.code {
			t.Errorf("case %d: %s %+v", i, run.Status, run.Error)
			continue
		}
		for _, want := range tc.says {
			if !strings.Contains(run.Error.Message, want) {
				t.Errorf("case %d: %q lacks %q", i, run.Error.Message, want)
			}
		}
	}
}

// The agent's changes are saved, shown and receipted.
func TestWriteAndEdit(t *testing.T) {
	w := start(t, nil)
	c := w.dial()
	s, key := w.session(c)
	w.script(
		modelserver.Calls(modelserver.ToolCall{ID: "1", Name: "write", Args: `{"path":"notes/new.md","content":"one\ntwo\n"}`}),
		modelserver.Calls(modelserver.ToolCall{ID: "2", Name: "edit", Args: `{"path":"notes/new.md","edits":[{"oldText":"two","newText":"二"}]}`}),
		modelserver.Calls(modelserver.ToolCall{ID: "3", Name: "write", Args: `{"path":".repa/space.json","content":"x"}`}),
		modelserver.Text("done"))
	watch, err := client.Watch(ctx, c, protocol.Scope{SpaceID: s.ID})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Next(ctx); err != nil {
		t.Fatal(err)
	}
	r := call(w, c, protocol.SessionSubmit, submission(key, "r1", "write"))
	w.ended(c, key, r.RunID)
	data, err := os.ReadFile(filepath.Join(s.Path, "notes", "new.md"))
	if err != nil || string(data) != "one\n二\n" {
		t.Errorf("%q, %v", data, err)
	}
	paths := 0
	for paths < 2 {
		u, err := watch.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range u.Changes {
			if change.Type == protocol.ChangeContent {
				paths++
				if !slices.Contains(change.Paths, "notes/new.md") || change.Result.OperationID == "" {
					t.Errorf("%+v", change)
				}
			}
		}
	}
	receipts, refused := 0, 0
	for _, m := range messages(w, c, key) {
		if m.Role != protocol.RoleTool {
			continue
		}
		if m.Error != "" {
			refused++
			continue
		}
		var d struct {
			OperationID string
			Changes     []struct{ Path, Before, After string }
		}
		if err := json.Unmarshal(m.Details, &d); err != nil || d.OperationID == "" || len(d.Changes) != 1 {
			t.Errorf("details %s: %v", m.Details, err)
		}
		receipts++
	}
	if receipts != 2 || refused != 1 {
		t.Errorf("%d receipts, %d refusals", receipts, refused)
	}
}
