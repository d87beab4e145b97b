//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/client"
	"github.com/repa-app/repa/testkit/backend"
	"github.com/repa-app/repa/testkit/modelserver"
)

// sent is one submission and what its front end learned of it.
type sent struct {
	submit protocol.Submit
	got    *protocol.Request // the acknowledgement
	never  bool              // it did not go out
	stands bool              // its run stands still until the backend ends
}

// storm kills a backend again and again while front ends write.
type storm struct {
	t     *testing.T
	p     *backend.Process
	model *modelserver.Server
	dir   string
	space protocol.ID

	mu       sync.Mutex
	random   *rand.Rand
	sessions []protocol.SessionKey
	sent     []*sent
	refused  int
	kept     int // requests of which something lay in the store, counted after each kill
}

// TestKill proves what a backend promises of itself across SIGKILL: an acknowledged request is known for ever, nothing is executed
// or entered twice, what was running is interrupted, and every session can be read.
func TestKill(t *testing.T) {
	rounds := 20
	if os.Getenv("REPA_TEST") == "long" {
		rounds = 100
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("REPA_TEST_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("REPA_TEST_SEED=%d", seed)
	w := &storm{t: t, p: backend.Start(t, backend.Options{}), dir: notes(t), random: rand.New(rand.NewPCG(seed, 0))}
	w.model = modelserver.NewFunc(t, w.answer)
	w.writeSpace()
	var ready, open time.Duration
	checked, unknown, standing := 0, 0, 0
	for round := range rounds {
		first := len(w.sent)
		w.killWhileWriting(round)
		w.p.Restart(t)
		c := w.p.Client(t)
		begin := time.Now()
		openSpace(t, c, w.dir)
		ready, open = max(ready, w.p.ReadyIn), max(open, time.Since(begin))
		for _, s := range w.sent[first:] {
			switch {
			case s.got != nil:
				checked++
			case !s.never:
				unknown++
			}
			if s.stands && s.got != nil {
				standing++
			}
		}
		w.check(c, w.sent[first:])
		w.checkStore(c)
		w.repeatUnknown(c, w.sent[first:])
		c.Drop()
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	w.p.Restart(t)
	c := w.p.Client(t)
	openSpace(t, c, w.dir)
	w.check(c, w.sent)
	t.Logf("%d kills: %d acknowledged requests, %d with unknown outcome, %d runs stood still, %d refusals, %d sessions, %d model requests; "+
		"maximum after a kill: ready in %v, space open in another %v", rounds, checked, unknown, standing, w.refused, len(w.sessions), len(w.model.Requests()), ready, open)
	if checked == 0 || standing == 0 || w.kept == 0 {
		t.Errorf("%d requests, %d standing runs and %d inputs in the store prove nothing", checked, standing, w.kept)
	}
}

func (w *storm) intn(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

// stand is the word by which a prompt asks for a run that does not end.
const stand = "stand still"

// answer is the model: prompts decide whether it stands still; other answers dawdle, or write a file first.
func (w *storm) answer(r *modelserver.RecordedRequest) modelserver.Turn {
	messages, _ := r.JSON["messages"].([]any)
	last, err := json.Marshal(messages[len(messages)-1])
	if err != nil {
		panic(err)
	}
	switch {
	case strings.Contains(string(last), stand):
		return modelserver.Turn{Chunks: []string{"I"}, Hold: "until the end"}
	case strings.Contains(string(last), `"role":"tool"`) || w.intn(2) == 0:
		return modelserver.Turn{Chunks: []string{"a ", "slow ", "answer"}, Delay: time.Millisecond}
	}
	args := fmt.Sprintf(`{"path":"out/%d.md","content":"text\n"}`, r.Number)
	return modelserver.Calls(modelserver.ToolCall{ID: fmt.Sprintf("call-%d", r.Number), Name: "write", Args: args})
}

func (w *storm) writeSpace() {
	c := w.p.Client(w.t)
	defer c.Drop()
	w.space = openSpace(w.t, c, w.dir)
	for range 3 {
		w.sessions = append(w.sessions, must(w.t, c, protocol.SessionCreate, protocol.SpaceParams{SpaceID: w.space}).Key())
	}
}

// killWhileWriting has one writer for each of the newest sessions and kills the backend at a random moment.
func (w *storm) killWhileWriting(round int) {
	w.t.Helper()
	c := w.p.Client(w.t)
	openSpace(w.t, c, w.dir)
	lent := lend(w.t, c, w.model)
	ctx, cancel := context.WithCancel(w.t.Context())
	var writers sync.WaitGroup
	for _, key := range w.sessions[max(0, len(w.sessions)-4):] {
		writers.Go(func() { w.write(ctx, c, key, lent, round) })
	}
	if round%4 == 0 {
		writers.Go(func() { w.create(ctx, c) })
	}
	time.Sleep(time.Duration(5+w.intn(120)) * time.Millisecond) // the random moment; nothing waits for it
	w.p.Kill()
	cancel()
	c.Drop()
	writers.Wait()
}

func (w *storm) create(ctx context.Context, c *client.Client) {
	v, err := client.Call(ctx, c, protocol.SessionCreate, protocol.SpaceParams{SpaceID: w.space})
	if err == nil {
		w.mu.Lock()
		w.sessions = append(w.sessions, v.Key())
		w.mu.Unlock()
	}
}

// write submits one request after the other: starts, steers of the run that it started last, at both models.
func (w *storm) write(ctx context.Context, c *client.Client, key protocol.SessionKey, lent *protocol.RunSelection, round int) {
	var run protocol.ID
	for n := 0; ctx.Err() == nil; n++ {
		text := fmt.Sprintf("What is a cell? (%s, round %d, number %d)", key.SessionID, round, n)
		s := &sent{submit: question(key, text, nil)}
		switch k := w.intn(8); {
		case k < 3 && run != "":
			s.submit.Dispatch = protocol.Dispatch{Kind: "steer", ExpectedRunID: run}
		case k < 5:
			s.submit.Selection = lent
		case k == 5:
			s.submit = question(key, text+" "+stand, lent)
			s.stands = true
		}
		if w.intn(2) == 0 { // piped in, and long enough to lie in the store
			piped := strings.Repeat(fmt.Sprintf("line of %s in round %d\n", key.SessionID, round), 100+w.intn(500))
			s.submit.Input.Parts = append(s.submit.Input.Parts, protocol.TextPart(piped))
		}
		r, err := client.Call(ctx, c, protocol.SessionSubmit, s.submit)
		var refusal *protocol.Error
		w.mu.Lock()
		switch {
		case err == nil:
			s.got = &r
			run = r.RunID
		case errors.As(err, &refusal):
			w.refused++
			w.mu.Unlock()
			continue // session_busy: no record
		default:
			s.never = errors.Is(err, client.ErrNotConnected)
		}
		w.sent = append(w.sent, s)
		w.mu.Unlock()
	}
}

// check holds the restarted backend against what the front ends know.
func (w *storm) check(c *client.Client, all []*sent) {
	w.t.Helper()
	entered := w.readSessions(c)
	asked := len(w.model.Requests())
	for _, s := range all {
		id := s.submit.RequestID
		record := must(w.t, c, protocol.RequestGet, protocol.RequestGetParams{SpaceID: w.space, RequestID: id})
		r := record.Request
		switch {
		case r == nil && s.got != nil:
			w.t.Errorf("acknowledged request %s is unknown", id)
			continue
		case r == nil && entered[id] > 0:
			w.t.Errorf("unknown request %s stands in the history", id)
			continue
		case r == nil:
			continue
		case s.never:
			w.t.Errorf("request %s never went out and is %s", id, r.Status)
			continue
		}
		w.checkRequest(c, s, r, entered[id])
	}
	if again := len(w.model.Requests()); again != asked {
		w.t.Errorf("repeating requests asked the model %d times", again-asked)
	}
	if again := w.readSessions(c); len(again) != len(entered) {
		w.t.Errorf("%d requests stood in the histories, after repeating %d", len(entered), len(again))
	}
}

// checkStore wants the store to be sound and to hold nothing for requests that there are not.
func (w *storm) checkStore(c *client.Client) {
	w.t.Helper()
	s, err := cas.Open(w.t.Context(), filepath.Join(w.dir, ".repa", "cas"), cas.Options{ReadOnly: true})
	if err != nil {
		w.t.Fatal(err)
	}
	defer s.Close()
	v, err := s.Verify(w.t.Context(), nil)
	if err != nil || !v.Sound() {
		w.t.Errorf("store: %+v, %v", v, err)
	}
	for o := range s.AllOwners(cas.OwnerRequest) {
		w.kept++
		r := must(w.t, c, protocol.RequestGet, protocol.RequestGetParams{SpaceID: w.space, RequestID: protocol.ID(o.ID)}).Request
		if r == nil {
			w.t.Errorf("%s holds %d objects and is unknown", o, len(s.Held(o)))
		}
	}
}

func (w *storm) checkRequest(c *client.Client, s *sent, r *protocol.Request, entered int) {
	id := s.submit.RequestID
	if s.got != nil && s.got.RunID != "" && r.RunID != s.got.RunID {
		w.t.Errorf("request %s was of run %s and is of %s", id, s.got.RunID, r.RunID)
	}
	switch r.Status {
	case protocol.RequestQueued, protocol.RequestRunning:
		w.t.Errorf("request %s is %s after a restart", id, r.Status)
	}
	if s.stands && s.got != nil {
		run := must(w.t, c, protocol.RunGet, protocol.RunParams{SpaceID: w.space, RunID: r.RunID}).Run
		if r.Status != protocol.RequestInterrupted || run == nil || run.Status != protocol.RunInterrupted {
			w.t.Errorf("request %s was running and is %s, its run %+v", id, r.Status, run)
		}
	}
	if sent, got := fmt.Sprintf("%+v", s.submit.Input), fmt.Sprintf("%+v", r.Input); sent != got {
		w.t.Errorf("request %s has another input: %d bytes were sent, %d are there", id, len(sent), len(got))
	}
	want := 0
	if r.Delivery.Status == protocol.DeliveryEntered {
		want = 1
	}
	if entered != want || len(r.Delivery.MessageIDs) != want {
		w.t.Errorf("request %s (%s) stands %d times in the history; its delivery is %+v", id, r.Status, entered, r.Delivery)
	}
	again := must(w.t, c, protocol.SessionSubmit, s.submit)
	if again.RequestID != id || again.Status != r.Status || again.RunID != r.RunID || again.Sequence != r.Sequence || again.CreatedAt != r.CreatedAt {
		w.t.Errorf("request %s is %+v and repeated %+v", id, r, again)
	}
	other := s.submit
	other.Input = protocol.Input{Parts: []protocol.InputPart{protocol.TextPart("something else")}}
	if _, err := client.Call(w.t.Context(), c, protocol.SessionSubmit, other); !hasCode(err, protocol.CodeRequestIdConflict) {
		w.t.Errorf("request %s with another text: %v", id, err)
	}
}

// readSessions reads every session and counts the user messages of each request.
func (w *storm) readSessions(c *client.Client) map[protocol.ID]int {
	w.t.Helper()
	listed := map[protocol.ID]bool{}
	entered := map[protocol.ID]int{}
	for _, v := range must(w.t, c, protocol.SessionList, protocol.SpaceParams{SpaceID: w.space}) {
		listed[v.SessionID] = true
		key := protocol.SessionKey{SpaceID: w.space, SessionID: v.SessionID}
		must(w.t, c, protocol.SessionGet, key)
		messages, err := history(w.t.Context(), c, key)
		if err != nil {
			w.t.Fatal(err)
		}
		texts := map[string]bool{}
		for _, m := range messages {
			if m.Role != protocol.RoleUser {
				continue
			}
			entered[m.RequestID]++
			text := m.Content[0].Text
			if texts[text] {
				w.t.Errorf("%q stands twice in session %s", text, v.SessionID)
			}
			texts[text] = true
		}
	}
	for _, key := range w.sessions {
		if !listed[key.SessionID] {
			w.t.Errorf("session %s is gone", key.SessionID)
		}
	}
	return entered
}

// repeatUnknown does what a front end does with an outcome that it does not know: it sends the same again. At the built-in model, which is
// still there, the request is then admitted or was already; the next kill may come into its run.
func (w *storm) repeatUnknown(c *client.Client, all []*sent) {
	w.t.Helper()
	for _, s := range all {
		if s.got != nil || s.submit.Selection != nil || s.submit.Dispatch.Kind != "start" {
			continue
		}
		r, err := client.Call(w.t.Context(), c, protocol.SessionSubmit, s.submit)
		switch {
		case err == nil:
			s.got, s.never = &r, false
		case !hasCode(err, protocol.CodeSessionBusy):
			w.t.Errorf("repeat %s: %v", s.submit.RequestID, err)
		}
	}
}
