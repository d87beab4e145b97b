package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/llm/sse"
)

// stream is a response body that yields the events in canonical form: one event per blank line, one data line per event, an
// event name only where the format has names. It never returns an error but io.EOF: faults are recorded in the exchange, since
// SDKs log them or replace them by their own.
type stream struct {
	body    io.Closer
	raw     *bufio.Reader
	dec     *sse.Decoder
	format  Format
	x       *exchange
	out     bytes.Buffer
	started bool
	events  int
	ended   bool
}

func newStream(body io.ReadCloser, format Format, x *exchange) *stream {
	s := &stream{body: body, format: format, x: x}
	s.raw = bufio.NewReader(&watched{body, x})
	s.dec = sse.NewDecoder(s.raw)
	return s
}

// watched tells the exchange that bytes arrive.
type watched struct {
	r io.Reader
	x *exchange
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 {
		w.x.alive()
	}
	return n, err
}

func (s *stream) Read(p []byte) (int, error) {
	for s.out.Len() == 0 {
		if s.ended {
			return 0, io.EOF
		}
		s.next()
	}
	return s.out.Read(p)
}

// Close never fails: whoever closes has what it wanted.
func (s *stream) Close() error {
	s.ended = true
	_ = s.body.Close()
	return nil
}

func (s *stream) end(fault *llm.Error) {
	s.ended = true
	if fault != nil {
		s.x.fail(fault)
	}
}

func (s *stream) next() {
	if !s.started {
		s.started = true
		if s.document() {
			return
		}
	}
	ev, err := s.dec.Next()
	switch {
	case err == io.EOF && s.events == 0:
		words := "it ended without a single event"
		if junk := s.dec.Junk(); junk != "" {
			words = fmt.Sprintf("it began with %q", junk)
		}
		s.end(&llm.Error{Kind: llm.KindProtocol, Words: words})
	case err == io.EOF:
		s.end(nil)
	case err == sse.ErrTooLong:
		s.end(&llm.Error{Kind: llm.KindProtocol, Words: err.Error()})
	case err != nil:
		s.end(&llm.Error{Kind: llm.KindInterrupted, Retryable: true, Words: err.Error(), Cause: err})
	default:
		s.event(ev)
	}
}

// document recognises a body that is no event stream but one document: an error sent with status 200, a web page.
func (s *stream) document() bool {
	for {
		b, err := s.raw.Peek(1)
		if err != nil {
			return false
		}
		switch b[0] {
		case ' ', '\t', '\r', '\n':
			_, _ = s.raw.Discard(1)
			continue
		case '{', '[', '<':
		default:
			return false
		}
		break
	}
	body, _ := io.ReadAll(io.LimitReader(s.raw, maxErrorBody))
	if p := parseError(body); hasError(body) {
		p.Kind, p.Retryable = llm.Classify(p.code, p.tagged)
		s.end(&p.Error)
		return true
	}
	if body[0] == '<' {
		s.end(&llm.Error{Kind: llm.KindProtocol, Words: "it is " + plainWords(body)})
		return true
	}
	s.end(&llm.Error{Kind: llm.KindProtocol, Words: fmt.Sprintf("it is one document: %.80s", body)})
	return true
}

func hasError(body []byte) bool {
	var doc struct {
		Error json.RawMessage `json:"error"`
	}
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	return json.Unmarshal(body, &doc) == nil && !isNone(doc.Error)
}

func (s *stream) event(ev sse.Event) {
	data := bytes.TrimSpace(ev.Data)
	switch {
	case len(data) == 0:
		return
	case string(data) == "[DONE]":
		s.events++
		s.end(nil)
		return
	case json.Valid(data):
		s.object(ev.Name, data)
		return
	}
	// Some servers leave out the blank lines between their events.
	lines := bytes.Split(data, []byte("\n"))
	for _, line := range lines {
		switch {
		case s.ended:
			return
		case len(lines) > 1 && (json.Valid(line) || string(line) == "[DONE]"):
			s.event(sse.Event{Data: line})
		case ev.Open:
			s.end(&llm.Error{Kind: llm.KindInterrupted, Retryable: true, Words: "the stream ended inside an event"})
		default:
			s.end(&llm.Error{Kind: llm.KindProtocol, Words: fmt.Sprintf("an event is no JSON: %.80q", data)})
		}
	}
}

func (s *stream) object(name string, data []byte) {
	var doc struct {
		Type  string          `json:"type"`
		Error json.RawMessage `json:"error"`
	}
	if data[0] != '{' || json.Unmarshal(data, &doc) != nil {
		s.end(&llm.Error{Kind: llm.KindProtocol, Words: fmt.Sprintf("an event has an unknown form: %.80s", data)})
		return
	}
	s.events++
	if !isNone(doc.Error) || name == "error" {
		p := parseError(data)
		p.Kind, p.Retryable = llm.Classify(p.code, p.tagged)
		s.end(&p.Error)
		return
	}
	if len(doc.Error) > 0 {
		data = withoutError(data) // the SDKs take even a null for an error
	}
	if s.format == Anthropic {
		if doc.Type != "" {
			name = doc.Type
		}
		s.out.WriteString("event: " + name + "\n")
	}
	s.out.WriteString("data: ")
	_ = json.Compact(&s.out, data)
	s.out.WriteString("\n\n")
}

func withoutError(data []byte) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return data
	}
	delete(fields, "error")
	out, err := json.Marshal(fields)
	if err != nil {
		return data
	}
	return out
}
