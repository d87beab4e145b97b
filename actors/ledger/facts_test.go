package ledger_test

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/repa-app/repa/actors/ledger"
	"github.com/repa-app/repa/cas/recordlog"
	"github.com/repa-app/repa/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = protocol.SessionKey{SpaceID: "space-1", SessionID: "session-1"}

var pending = protocol.RequestDelivery{Status: protocol.DeliveryPending}

// request is a record as an admission makes it.
func request(id protocol.ID, sequence protocol.Int, run protocol.ID, kind string) protocol.Request {
	dispatch := protocol.Dispatch{Kind: kind}
	if kind == "steer" {
		dispatch.ExpectedRunID = run
	}
	submit := protocol.Submit{Target: key, RequestID: id, Input: protocol.Input{Parts: []protocol.InputPart{protocol.TextPart("素数 <b> " + string(id))}}, Dispatch: dispatch}
	return protocol.Request{
		RequestID: id, Target: key, Submission: submit.Submission(), Input: submit.Input, CreatedAt: 1000 + protocol.Millis(sequence), Sequence: sequence,
		Source: protocol.Source{Kind: "client", HostID: "host-1"}, PromptSettings: protocol.PromptSettings{Base: "You teach.", Append: []string{}, FileChanges: "on-demand"},
		RunOptions: protocol.RunOptions{ThinkingLevel: protocol.ThinkingHigh, Connection: &binding}, Status: protocol.RequestRunning, Delivery: pending, RunID: run,
	}
}

var binding = protocol.ModelBinding{ModelID: "m", Connection: protocol.ModelConnection{
	ID: "lent-openai-1", Name: "openai", Provider: "openai", AuthMode: protocol.AuthCredentials, Revision: "1", AuthID: "lent-openai-1",
	Authentication: protocol.Authentication{Configured: true, Type: protocol.AuthAPIKey},
}}

func run(id protocol.ID, created protocol.Millis, requests ...protocol.ID) protocol.Run {
	return protocol.Run{SpaceID: key.SpaceID, SessionID: key.SessionID, ID: id, Text: "素数", Status: protocol.RunAccepted, Phase: protocol.PhasePreparing,
		CreatedAt: created, RequestIDs: requests}
}

// starts is the admission of a request that starts a run at once.
func starts(id protocol.ID, sequence protocol.Int, runID protocol.ID) ledger.Admitted {
	r := run(runID, 1000+protocol.Millis(sequence), id)
	return ledger.Admitted{Request: request(id, sequence, runID, "start"), Run: &r}
}

func steers(id protocol.ID, sequence protocol.Int, runID protocol.ID) ledger.Admitted {
	return ledger.Admitted{Request: request(id, sequence, runID, "steer")}
}

const digest = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"

// apart is the admission of a request of which one text lies in the store.
func apart(id protocol.ID, sequence protocol.Int, runID protocol.ID) ledger.Admitted {
	f := starts(id, sequence, runID)
	f.Request = ledger.WithInput(f.Request, protocol.Input{Parts: []protocol.InputPart{protocol.TextPart("short"), protocol.TextPart("a long text")}})
	f.Texts = []ledger.Text{{Part: 1, ID: digest, Size: 11}}
	return f
}

// withTexts is the payload of an admission of a text and a file, with what it says of texts in the store.
func withTexts(texts string) []byte {
	return []byte(`{"request":{"requestId":"a","input":{"parts":[{"kind":"text","text":""},{"kind":"reference","target":{"kind":"file","spaceId":"s",` +
		`"location":{"kind":"relative","path":"p"}}}]}},"texts":[` + texts + `]}`)
}

// ends is a run's end as a completed one has it.
func ends(r protocol.Run, status protocol.RunStatus, paused bool) ledger.Ended {
	r.Status, r.Phase, r.FinishedAt = status, protocol.PhaseIdle, r.CreatedAt+500
	f := ledger.Ended{Run: r, Paused: paused}
	for i, id := range r.RequestIDs {
		e := ledger.End{RequestID: id, Status: protocol.RequestCompleted, Delivery: protocol.RequestDelivery{Status: protocol.DeliveryEntered, MessageIDs: []protocol.ID{"m-" + id}}}
		if status == protocol.RunFailed {
			r.Error = &protocol.Failure{Code: "provider", Message: "the model answered 500"}
			e.Status, e.Error, f.Run = protocol.RequestFailed, r.Error, r
		}
		if i == 0 {
			e.ModelAttempts = []protocol.ModelAttempt{{CallID: r.ID, Binding: binding, StartedAt: r.CreatedAt, FinishedAt: r.FinishedAt, Status: protocol.AttemptStatus(status),
				Usage: &protocol.Usage{Input: 3, TotalTokens: 3}, Error: r.Error}}
		}
		f.Requests = append(f.Requests, e)
	}
	return f
}

func late(id protocol.ID) ledger.Settled {
	return ledger.Settled{Requests: []ledger.End{{RequestID: id, Status: protocol.RequestNotEntered,
		Delivery: protocol.RequestDelivery{Status: protocol.DeliveryNotEntered, Reason: "the run ended"}}}}
}

func apply(facts ...ledger.Fact) *ledger.State {
	s := ledger.NewState()
	for _, f := range facts {
		s.Apply(f)
	}
	return s
}

// replayed is the state that the facts' records give.
func replayed(t interface {
	Helper()
	Fatal(...any)
}, facts ...ledger.Fact) *ledger.State {
	t.Helper()
	records, err := ledger.Records(facts...)
	if err != nil {
		t.Fatal(err)
	}
	s := ledger.NewState()
	for _, r := range records {
		if err := s.Replay(r); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// same compares states; an empty list and none are the same to everybody who reads them.
func same(a, b *ledger.State) string { return cmp.Diff(a, b, cmpopts.EquateEmpty()) }

// history draws facts in an order that a session can produce: runs one after the other, steers into the active one, late steers,
// failures, pauses, and perhaps a run that is not over at the end.
func history(t *rapid.T) []ledger.Fact {
	var facts []ledger.Fact
	var active *protocol.Run
	sequence := protocol.Int(0)
	for range rapid.IntRange(0, 15).Draw(t, "facts") {
		id := protocol.ID(fmt.Sprintf("request-%d", sequence))
		switch rapid.SampledFrom([]string{"start", "steer", "late", "end", "fail", "pause", "continue"}).Draw(t, "fact") {
		case "start":
			if active == nil {
				sequence++
				f := starts(id, sequence, protocol.ID(fmt.Sprintf("run-%d", sequence)))
				f.Request.Submission.Input.Parts[0] = drawPart(t)
				if ledger.HasText(f.Request.Input.Parts[0]) && rapid.Bool().Draw(t, "apart") {
					f.Texts = []ledger.Text{{Part: 0, ID: digest, Size: 5}}
				}
				facts, active = append(facts, f), f.Run
			}
		case "steer":
			if active != nil {
				sequence++
				joined := *active
				joined.RequestIDs = append(append([]protocol.ID(nil), active.RequestIDs...), id)
				facts, active = append(facts, steers(id, sequence, active.ID)), &joined
			}
		case "late":
			sequence++
			facts = append(facts, steers(id, sequence, "run-gone"), late(id))
		case "end", "fail":
			if active != nil {
				status := rapid.SampledFrom([]protocol.RunStatus{protocol.RunCompleted, protocol.RunFailed, protocol.RunCancelled}).Draw(t, "status")
				end := ends(*active, status, rapid.Bool().Draw(t, "paused"))
				end.Run.Text = rapid.SampledFrom([]string{end.Run.Text, ""}).Draw(t, "text")
				facts, active = append(facts, end), nil
			}
		default:
			facts = append(facts, ledger.QueueChanged{SessionID: rapid.SampledFrom([]protocol.ID{"session-1", "session-2"}).Draw(t, "session"), Paused: rapid.Bool().Draw(t, "paused")})
		}
	}
	return facts
}

func drawPart(t *rapid.T) protocol.InputPart {
	path := rapid.StringMatching(`[a-zé 素"\\<]{1,12}`).Draw(t, "path")
	target := protocol.ContentTarget{Kind: "file", SpaceID: "space-1", Location: &protocol.FileLocation{Kind: "relative", Path: path}}
	locator := &protocol.Locator{Format: protocol.Format{ID: "text", Version: "1"}, Value: jsontext.Value(`{"line":1.50}`)}
	switch rapid.IntRange(0, 2).Draw(t, "part") {
	case 0:
		return protocol.TextPart(rapid.String().Draw(t, "text"))
	case 1:
		return protocol.InputPart{Kind: "selection", Text: rapid.String().Draw(t, "text"), Source: &protocol.SelectionSource{Target: target, DraftID: "d", Locator: locator}}
	}
	return protocol.InputPart{Kind: "reference", Target: &target, Locator: locator}
}

// record encodes one fact.
func record(t *testing.T, f ledger.Fact) recordlog.Record {
	t.Helper()
	records, err := ledger.Records(f)
	if err != nil || len(records) != 1 {
		t.Fatal(records, err)
	}
	return records[0]
}
