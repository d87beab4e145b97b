package actors

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/repa-app/repa/actors/ledger"
	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/cas/recordlog"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/testkit/crashfs"
)

// durable is the journal and the store of a space on one disk.
type durable struct {
	folders []vfs.FS
	log     *recordlog.Log
	store   *cas.Store
	state   *ledger.State
}

func openDurable(t testing.TB, disk vfs.FS) *durable {
	t.Helper()
	d := &durable{state: ledger.NewState()}
	for _, name := range []string{"journal", "cas"} {
		if err := vfs.MkdirAll(disk, name, 0o700); err != nil {
			t.Fatal(err)
		}
		folder, err := disk.Sub(name)
		if err != nil {
			t.Fatal(err)
		}
		d.folders = append(d.folders, folder)
	}
	var err error
	if d.log, _, err = recordlog.Open(t.Context(), d.folders[0], recordlog.Options{}, d.state.Replay); err != nil {
		t.Fatal(err)
	}
	if d.store, err = cas.Open(t.Context(), "cas", cas.Options{FS: d.folders[1]}); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *durable) close(t testing.TB) {
	t.Helper()
	for _, c := range append([]io.Closer{d.log, d.store}, d.folders[0], d.folders[1]) {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

func admissionOf(id string) ledger.Admitted {
	text := strings.Repeat("text of "+id+"\n", 1000)
	submit := protocol.Submit{Target: protocol.SessionKey{SpaceID: "p", SessionID: "s"}, RequestID: protocol.ID(id), Dispatch: protocol.Dispatch{Kind: "start"},
		Input: protocol.Input{Parts: []protocol.InputPart{protocol.TextPart("short"), protocol.TextPart(text)}}}
	r := protocol.Request{RequestID: submit.RequestID, Target: submit.Target, Submission: submit.Submission(), Input: submit.Input,
		Source: protocol.Source{Kind: "client", HostID: "h"}, Status: protocol.RequestRunning, Delivery: protocol.RequestDelivery{Status: protocol.DeliveryPending},
		RunID: protocol.ID("run-" + id)}
	run := protocol.Run{SpaceID: "p", SessionID: "s", ID: r.RunID, Text: inputText(r.Input), RequestIDs: []protocol.ID{r.RequestID}}
	return ledger.Admitted{Request: r, Run: &run, Texts: longTexts(r.Input)}
}

// Bytes before facts: whatever a power loss at any step leaves, each request in the journal can be read whole and holds its input; each that
// was acknowledged is there; and opening the space drops what is held for requests that are not.
func TestPowerLossWhileAdmitting(t *testing.T) {
	disk := crashfs.New()
	d := openDurable(t, disk)
	trace := disk.Record()
	admissions := map[protocol.ID]ledger.Admitted{}
	for _, id := range []string{"r1", "r2", "r3"} {
		f := admissionOf(id)
		admissions[f.Request.RequestID] = f
		if err := appendAdmission(t.Context(), d.store, d.log, f); err != nil {
			t.Fatal(err)
		}
		trace.Mark(id)
	}
	trace.Stop()
	d.close(t)
	orphans, states := 0, 0
	for i := range trace.Len() + 1 {
		for after := range trace.At(i).Subsets(16) {
			states++
			where := fmt.Sprintf("step %d, state %d", i, states)
			known, nobodys := checkAdmissions(t, where, after, admissions)
			orphans += nobodys
			for _, mark := range trace.Marks() {
				if mark.Step <= i && known.Requests[protocol.ID(mark.Label)] == nil {
					t.Errorf("%s: %s was acknowledged and is gone", where, mark.Label)
				}
			}
			if t.Failed() {
				return
			}
		}
	}
	if orphans == 0 || states < 50 {
		t.Errorf("%d states with %d holds of nobody prove nothing", states, orphans)
	}
}

// checkAdmissions opens what a crash left, wants every known request whole, and returns what is known and how many owners had no request.
func checkAdmissions(t *testing.T, where string, disk vfs.FS, admissions map[protocol.ID]ledger.Admitted) (known *ledger.State, orphans int) {
	t.Helper()
	d := openDurable(t, disk)
	defer d.close(t)
	for id, r := range d.state.Requests {
		found := foundRequest{*r, keptInput{r.Input, d.state.Texts[id], d.store}}
		whole, err := found.whole(t.Context())
		if err != nil || whole.Input.Parts[1].Text != admissions[id].Request.Input.Parts[1].Text {
			t.Errorf("%s: %s cannot be read whole: %v", where, id, err)
		}
		if held := d.store.Held(requestOwner(id)); len(held) != 1 || held[0].String() != admissions[id].Texts[0].ID {
			t.Errorf("%s: %s holds %v", where, id, held)
		}
	}
	for o := range d.store.AllOwners(cas.OwnerRequest) {
		if d.state.Requests[protocol.ID(o.ID)] == nil {
			orphans++
		}
	}
	reconcileRequests(context.Background(), d.store, d.state, slog.New(slog.DiscardHandler))
	for o := range d.store.AllOwners(cas.OwnerRequest) {
		if d.state.Requests[protocol.ID(o.ID)] == nil {
			t.Errorf("%s: %s still holds something", where, o)
		}
	}
	return d.state, orphans
}
