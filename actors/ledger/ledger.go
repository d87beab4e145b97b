package ledger

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/repa-app/repa/cas/recordlog"
	"github.com/repa-app/repa/protocol"
)

// Types of records. Types from 32 up belong to content.
const (
	typeAdmitted = 1
	typeEnded    = 2
	typeSettled  = 3
	typeQueue    = 4

	recordVersion = 1
	// apartVersion is the version of an admission with texts that lie in the store.
	apartVersion = 2
)

// Fact is one of Admitted, Ended, Settled and QueueChanged.
type Fact interface {
	recordType() uint8
	named() bool // what the fact is about has an id
}

// Admitted: a request was accepted. Run is set when it starts one. Texts says which texts of its input lie in the store; neither the
// record nor the state holds those.
type Admitted struct {
	Request protocol.Request `json:"request"`
	Run     *protocol.Run    `json:"run,omitzero"`
	Texts   []Text           `json:"texts,omitzero"`
}

// Ended: a run is over, and with it its requests. Paused says that the session's queue waits from now on. A run without a text has that of
// its admission.
type Ended struct {
	Run      protocol.Run `json:"run"`
	Requests []End        `json:"requests"`
	Paused   bool         `json:"paused"`
}

// Settled: requests ended without a run of their own.
type Settled struct {
	Requests []End `json:"requests"`
}

// QueueChanged: a session's queue was paused or resumed.
type QueueChanged struct {
	SessionID protocol.ID `json:"sessionId"`
	Paused    bool        `json:"paused"`
}

// End is how a request ended.
type End struct {
	RequestID     protocol.ID              `json:"requestId"`
	Status        protocol.RequestStatus   `json:"status"`
	Delivery      protocol.RequestDelivery `json:"delivery"`
	Error         *protocol.Failure        `json:"error,omitzero"`
	ModelAttempts []protocol.ModelAttempt  `json:"modelAttempts,omitzero"`
}

func (Admitted) recordType() uint8     { return typeAdmitted }
func (Ended) recordType() uint8        { return typeEnded }
func (Settled) recordType() uint8      { return typeSettled }
func (QueueChanged) recordType() uint8 { return typeQueue }

func (f Admitted) named() bool {
	return f.Request.RequestID.Valid() && (f.Run == nil || f.Run.ID.Valid()) &&
		!slices.ContainsFunc(f.Texts, func(t Text) bool { return !t.fits(f.Request.Input) })
}
func (f Ended) named() bool        { return f.Run.ID.Valid() && Settled{f.Requests}.named() }
func (f QueueChanged) named() bool { return f.SessionID.Valid() }
func (f Settled) named() bool {
	return !slices.ContainsFunc(f.Requests, func(e End) bool { return !e.RequestID.Valid() })
}

// Records encodes facts for one append.
func Records(facts ...Fact) ([]recordlog.Record, error) {
	out := make([]recordlog.Record, len(facts))
	for i, f := range facts {
		version := uint8(recordVersion)
		if a, ok := f.(Admitted); ok && len(a.Texts) > 0 {
			f, version = a.apart(), apartVersion
		}
		payload, err := json.Marshal(f)
		if err != nil {
			return nil, fmt.Errorf("encode ledger fact: %w", err)
		}
		out[i] = recordlog.Record{Type: f.recordType(), Version: version, Payload: payload}
	}
	return out, nil
}

// State is what the facts say so far.
type State struct {
	Requests map[protocol.ID]*protocol.Request
	Runs     map[protocol.ID]*protocol.Run
	Texts    map[protocol.ID][]Text // by request: the texts of its input that lie in the store, and not in Requests and Runs
	Paused   map[protocol.ID]bool   // sessions whose queue waits
	Next     protocol.Int           // the sequence number of the next admission
	Newer    bool                   // there are records of a newer version: nothing may be appended
}

// NewState is the state of an empty journal.
func NewState() *State {
	return &State{Requests: map[protocol.ID]*protocol.Request{}, Runs: map[protocol.ID]*protocol.Run{}, Texts: map[protocol.ID][]Text{}, Paused: map[protocol.ID]bool{}, Next: 1}
}

// Replay applies a journal record. Errors: a record of a known type whose payload cannot be read; the state is then unchanged.
func (s *State) Replay(r recordlog.Record) error {
	if r.Version > recordVersion && (r.Type != typeAdmitted || r.Version > apartVersion) {
		s.Newer = true
		return nil
	}
	switch r.Type {
	case typeAdmitted:
		return replay[Admitted](s, r)
	case typeEnded:
		return replay[Ended](s, r)
	case typeSettled:
		return replay[Settled](s, r)
	case typeQueue:
		return replay[QueueChanged](s, r)
	}
	s.Newer = true
	return nil
}

func replay[F Fact](s *State, r recordlog.Record) error {
	var f F
	if err := json.Unmarshal(r.Payload, &f); err != nil {
		return fmt.Errorf("ledger record of type %d: %w", r.Type, err)
	}
	if !f.named() {
		return fmt.Errorf("ledger record of type %d: an id is missing or is none", r.Type)
	}
	s.Apply(f)
	return nil
}

// Apply folds a fact into the state. Records in the state are replaced, never changed.
func (s *State) Apply(f Fact) {
	switch f := f.(type) {
	case Admitted:
		if len(f.Texts) > 0 {
			s.Texts[f.Request.RequestID] = f.Texts
			f = f.apart()
		}
		s.Requests[f.Request.RequestID] = &f.Request
		s.Next = max(s.Next, f.Request.Sequence+1)
		if f.Run != nil {
			s.Runs[f.Run.ID] = f.Run
		} else if run := s.Runs[f.Request.RunID]; run != nil {
			joined := *run
			joined.RequestIDs = append(slices.Clone(run.RequestIDs), f.Request.RequestID)
			s.Runs[run.ID] = &joined
		}
	case Ended:
		if admitted := s.Runs[f.Run.ID]; admitted != nil && f.Run.Text == "" {
			f.Run.Text = admitted.Text
		}
		s.Runs[f.Run.ID] = &f.Run
		s.end(f.Requests)
		if f.Paused {
			s.Paused[f.Run.SessionID] = true
		}
	case Settled:
		s.end(f.Requests)
	case QueueChanged:
		if f.Paused {
			s.Paused[f.SessionID] = true
		} else {
			delete(s.Paused, f.SessionID)
		}
	}
}

func (s *State) end(ends []End) {
	for _, e := range ends {
		if r := s.Requests[e.RequestID]; r != nil {
			ended := e.Of(*r)
			s.Requests[e.RequestID] = &ended
		}
	}
}

// Of returns the request as ended.
func (e End) Of(r protocol.Request) protocol.Request {
	r.Status, r.Delivery, r.Error = e.Status, e.Delivery, e.Error
	if e.ModelAttempts != nil {
		r.ModelAttempts = e.ModelAttempts
	}
	return r
}

// interruptedMessage is what a learner reads about a run that a crash ended.
const interruptedMessage = "The backend ended before this run was finished; it was not executed again. What it had done is kept."

// Interrupt makes the facts for the runs and requests that were not over when the journal was opened. Deliveries come from the
// history: entered tells for a request which messages carry it.
func (s *State) Interrupt(now protocol.Millis, entered func(protocol.Request) []protocol.ID) []Fact {
	var facts []Fact
	failure := &protocol.Failure{Code: string(protocol.CodeInterrupted), Message: interruptedMessage}
	ended := map[protocol.ID]bool{}
	for _, run := range sorted(s.Runs) {
		if run.Status.Terminal() {
			continue
		}
		over := *run
		over.Status, over.Phase, over.FinishedAt, over.Error = protocol.RunInterrupted, protocol.PhaseIdle, now, failure
		f := Ended{Run: over, Paused: true}
		for _, id := range run.RequestIDs {
			if r := s.Requests[id]; r != nil && r.Status == protocol.RequestRunning { // a steer may have been settled already
				ended[id] = true
				f.Requests = append(f.Requests, interrupted(*r, failure, entered))
			}
		}
		facts = append(facts, f)
	}
	var rest Settled
	for _, r := range sortedRequests(s.Requests) {
		if r.Status == protocol.RequestRunning && !ended[r.RequestID] {
			rest.Requests = append(rest.Requests, interrupted(*r, failure, entered))
		}
	}
	if len(rest.Requests) > 0 {
		facts = append(facts, rest)
	}
	return facts
}

func interrupted(r protocol.Request, failure *protocol.Failure, entered func(protocol.Request) []protocol.ID) End {
	e := End{RequestID: r.RequestID, Status: protocol.RequestInterrupted, Error: failure,
		Delivery: protocol.RequestDelivery{Status: protocol.DeliveryNotEntered, Reason: "the backend ended before the input entered the history"}}
	if ids := entered(r); len(ids) > 0 {
		e.Delivery = protocol.RequestDelivery{Status: protocol.DeliveryEntered, MessageIDs: ids}
	}
	return e
}

func sorted(runs map[protocol.ID]*protocol.Run) []*protocol.Run {
	var out []*protocol.Run
	for _, r := range runs {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *protocol.Run) int { return compare(a.CreatedAt, b.CreatedAt, a.ID, b.ID) })
	return out
}

func sortedRequests(requests map[protocol.ID]*protocol.Request) []*protocol.Request {
	var out []*protocol.Request
	for _, r := range requests {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *protocol.Request) int { return int(a.Sequence - b.Sequence) })
	return out
}

func compare(a, b protocol.Millis, x, y protocol.ID) int {
	switch {
	case a < b, a == b && x < y:
		return -1
	case a == b && x == y:
		return 0
	}
	return 1
}

// RunsOf returns a session's runs, oldest first, at most the newest n.
func (s *State) RunsOf(session protocol.ID, n int) []protocol.Run {
	out := []protocol.Run{}
	for _, r := range sorted(s.Runs) {
		if r.SessionID == session {
			out = append(out, *r)
		}
	}
	return out[max(0, len(out)-n):]
}
