package feed

import (
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol"
)

// entry is one published change. Its encodings are made at the first use and shared by all subscribers.
type entry struct {
	sequence int64
	change   protocol.Change
	size     int // estimated bytes

	full, slim encoding
}

type encoding struct {
	once sync.Once
	text jsontext.Value
	err  error
}

func (e *encoding) get(c protocol.Change) (jsontext.Value, error) {
	e.once.Do(func() { e.text, e.err = protocol.Encode(c) })
	return e.text, e.err
}

// encode returns the change as a subscriber of the scope gets it.
func (e *entry) encode(scope protocol.Scope) (jsontext.Value, error) {
	if e.change.Type != protocol.ChangeSession || scope.SessionID != "" {
		return e.full.get(e.change)
	}
	c := e.change
	view := slim(*c.Session)
	c.Session = &view
	return e.slim.get(c)
}

// sizeOf estimates what a change weighs, in memory and on the wire: its texts and something for the rest.
func sizeOf(c protocol.Change) int {
	const base = 256
	n := base + len(c.Text)
	if c.Message != nil {
		n += sizeOfMessage(*c.Message)
	}
	if c.Session != nil {
		for _, m := range c.Session.Messages {
			n += base + sizeOfMessage(m)
		}
		n += base * len(c.Session.Runs)
	}
	if c.Request != nil {
		for _, p := range c.Request.Input.Parts {
			n += 2 * len(p.Text) // the submission repeats it
		}
		n += len(c.Request.PromptSettings.Base)
	}
	if c.Run != nil {
		n += len(c.Run.Text)
	}
	return n
}

func sizeOfMessage(m protocol.Message) (n int) {
	n = len(m.Details)
	for _, b := range m.Content {
		n += len(b.Text) + len(b.Arguments) + len(b.Data)
	}
	return n
}

// ring keeps the newest entries up to ringBytes, always at least one.
type ring struct {
	entries []*entry
	bytes   int
	evicted int64 // the number of the newest entry that is gone
}

func (r *ring) add(e *entry) {
	r.entries = append(r.entries, e)
	r.bytes += e.size
	drop := 0
	for r.bytes > ringBytes && drop < len(r.entries)-1 {
		r.bytes -= r.entries[drop].size
		r.evicted = r.entries[drop].sequence
		r.entries[drop] = nil
		drop++
	}
	r.entries = r.entries[drop:]
}

// since returns the entries after a number, oldest first, or false when some are gone.
func (r *ring) since(sequence int64) ([]*entry, bool) {
	if sequence < r.evicted {
		return nil, false
	}
	for i, e := range r.entries {
		if e.sequence > sequence {
			return r.entries[i:], true
		}
	}
	return nil, true
}
