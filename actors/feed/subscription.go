package feed

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol"
)

// deliveryBytes is about how much one delivery carries: large enough to be efficient, small enough that an answer does not wait
// long behind it.
const deliveryBytes = 256 << 10

// Subscription is one subscriber's view of a scope. Next is for one goroutine; everything else is safe for concurrent use.
type Subscription struct {
	feed  *Feed
	id    protocol.ID
	scope protocol.Scope
	wake  func(*Subscription)

	// Under the feed's lock.
	cursor   int64
	snapshot bool // the next delivery is a snapshot
	first    bool // nothing was delivered yet: an empty delivery is due
	pending  []waiting
	bytes    int
	closed   bool
}

// waiting is an entry that was not fetched yet, or several deltas of one block merged.
type waiting struct {
	*entry
	merged   []byte // the text of all of them; nil for a single entry
	sequence int64  // of the last
	bytes    int
}

// Subscribe adds a subscriber. Its first delivery is ready at once: the changes since cursor when they are still there, else a
// snapshot. wake is called, possibly under the feed's lock, when deliveries become ready; it must not block or call the feed.
func (f *Feed) Subscribe(id protocol.ID, scope protocol.Scope, cursor *string, wake func(*Subscription)) *Subscription {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &Subscription{feed: f, id: id, scope: scope, wake: wake, first: true, snapshot: true}
	if cursor != nil {
		if sequence, ok := f.parseCursor(*cursor); ok {
			if missed, ok := f.missed(scope, sequence); ok {
				s.snapshot, s.cursor = false, sequence
				for _, e := range missed {
					s.queue(e)
				}
			}
		}
	}
	if f.subs[scope] == nil {
		f.subs[scope] = map[*Subscription]struct{}{}
	}
	f.subs[scope][s] = struct{}{}
	return s
}

// missed returns the changes of a scope after a number in order, or false when the rings do not hold all of them any more.
func (f *Feed) missed(scope protocol.Scope, sequence int64) ([]*entry, bool) {
	rings := []*ring{&f.app}
	for id, sp := range f.spaces {
		if scope.SpaceID != "" && scope.SpaceID != id {
			continue
		}
		rings = append(rings, &sp.ring)
		if se := sp.sessions[scope.SessionID]; se != nil {
			rings = append(rings, &se.ring)
		}
	}
	var out []*entry
	for _, r := range rings {
		part, ok := r.since(sequence)
		if !ok {
			return nil, false
		}
		for _, e := range part {
			if protocol.Relevant(scope, e.change) {
				out = append(out, e)
			}
		}
	}
	slices.SortFunc(out, func(a, b *entry) int { return cmp.Compare(a.sequence, b.sequence) })
	return out, true
}

// Close ends the subscription; Next returns nothing from then on.
func (s *Subscription) Close() {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	s.closed, s.pending = true, nil
	if same := s.feed.subs[s.scope]; same != nil {
		delete(same, s)
		if len(same) == 0 {
			delete(s.feed.subs, s.scope)
		}
	}
}

func (s *Subscription) add(e *entry) {
	if s.snapshot {
		return // it will show the change
	}
	s.queue(e)
	if s.bytes > pendingBytes {
		s.renew()
		return
	}
	s.wake(s)
}

// renew makes a snapshot stand for everything that waits.
func (s *Subscription) renew() {
	s.snapshot, s.pending, s.bytes = true, nil, 0
	s.wake(s)
}

func (s *Subscription) queue(e *entry) {
	if n := len(s.pending); n > 0 && e.change.Type == protocol.ChangeDelta {
		if last := &s.pending[n-1]; last.takes(&e.change) {
			last.merge(e)
			s.bytes += len(e.change.Text)
			return
		}
	}
	s.pending = append(s.pending, waiting{entry: e, sequence: e.sequence, bytes: e.size})
	s.bytes += e.size
}

// mergedBytes bounds one merged delta, so that deliveries stay about as large as they should be.
const mergedBytes = 64 << 10

// takes reports whether a delta continues this one.
func (w *waiting) takes(c *protocol.Change) bool {
	a := &w.change
	if len(w.merged) > mergedBytes {
		return false
	}
	return a.Type == protocol.ChangeDelta && a.SpaceID == c.SpaceID && a.SessionID == c.SessionID &&
		a.MessageID == c.MessageID && a.Index == c.Index && a.Kind == c.Kind
}

func (w *waiting) merge(e *entry) {
	if w.merged == nil {
		w.merged = []byte(w.change.Text)
	}
	w.merged = append(w.merged, e.change.Text...)
	w.sequence = e.sequence
	w.bytes += len(e.change.Text)
}

func (w *waiting) encode(scope protocol.Scope) (jsontext.Value, error) {
	if w.merged == nil {
		return w.entry.encode(scope)
	}
	c := w.change
	c.Text = string(w.merged)
	return protocol.Encode(c)
}

// Next implements the peer's source: one subscription.update, or false when there is nothing now.
func (s *Subscription) Next() (method string, params any, ok bool) {
	raw := s.next()
	if raw == nil {
		return "", nil, false
	}
	return protocol.UpdateNotification, raw, true
}

func (s *Subscription) next() jsontext.Value {
	s.feed.mu.Lock()
	if s.closed {
		s.feed.mu.Unlock()
		return nil
	}
	if s.snapshot {
		snapshot := s.feed.snapshot(s.scope)
		s.cursor, s.snapshot, s.first = s.feed.sequence, false, false
		s.feed.mu.Unlock()
		raw, err := protocol.Encode(snapshot)
		if err != nil {
			s.feed.log.Error("a snapshot cannot be encoded", "scope", s.scope, "error", err)
			return nil
		}
		return protocol.SnapshotUpdate(s.id, s.feed.cursor(s.cursor), raw)
	}
	take := s.take()
	if len(take) == 0 && !s.first {
		s.feed.mu.Unlock()
		return nil
	}
	s.first = false
	previous := s.cursor
	if len(take) > 0 {
		s.cursor = take[len(take)-1].sequence
	}
	cursor := s.cursor
	s.feed.mu.Unlock()
	changes := make([]jsontext.Value, 0, len(take))
	for i := range take {
		raw, err := take[i].encode(s.scope)
		if err != nil {
			s.feed.log.Error("a change cannot be encoded and is left out", "type", take[i].change.Type, "error", err)
			continue
		}
		changes = append(changes, raw)
	}
	return protocol.ChangesUpdate(s.id, s.feed.cursor(previous), s.feed.cursor(cursor), changes)
}

// take removes about deliveryBytes from what waits.
func (s *Subscription) take() []waiting {
	n, bytes := 0, 0
	for n < len(s.pending) && (n == 0 || bytes < deliveryBytes) {
		bytes += s.pending[n].bytes
		n++
	}
	out := s.pending[:n:n]
	s.pending = s.pending[n:]
	s.bytes -= bytes
	if len(s.pending) == 0 {
		s.pending = nil
	}
	return out
}
