package modelserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// RecordedRequest is a request as it arrived.
type RecordedRequest struct {
	Number int    // 0 for the first
	Format Format // empty for a path that is none of the three
	Method string
	Path   string
	Query  string
	Header http.Header
	Body   []byte
	JSON   map[string]any // nil when the body is no JSON object
	Model  string
}

// Handler plays a script. It is safe for concurrent use.
type Handler struct {
	turn func(*RecordedRequest) Turn

	mu       sync.Mutex
	requests []RecordedRequest
	released map[string]chan struct{}
	started  map[string]chan struct{}
}

// NewHandler plays the turns in the order in which requests arrive, and answers "ok" afterwards.
func NewHandler(turns ...Turn) *Handler {
	return NewHandlerFunc(func(r *RecordedRequest) Turn {
		if r.Number < len(turns) {
			return turns[r.Number]
		}
		return Text("ok")
	})
}

// NewHandlerFunc asks turn for the answer to each request. It is called concurrently and must not change the request.
func NewHandlerFunc(turn func(*RecordedRequest) Turn) *Handler {
	return &Handler{turn: turn, released: map[string]chan struct{}{}, started: map[string]chan struct{}{}}
}

// Requests returns the requests for answers so far, in the order in which they arrived.
func (h *Handler) Requests() []RecordedRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]RecordedRequest(nil), h.requests...)
}

// Release lets the turns with this Hold go on, also those that only come to it later.
func (h *Handler) Release(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	closeOnce(signal(h.released, name))
}

// Started returns a channel that is closed when a turn with this Hold has sent everything but its end.
func (h *Handler) Started(name string) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return signal(h.started, name)
}

func signal(m map[string]chan struct{}, name string) chan struct{} {
	if m[name] == nil {
		m[name] = make(chan struct{})
	}
	return m[name]
}

func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// ServeHTTP answers with the next turn; any other path is 404 and takes none.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client left
	}
	format := formatOf(r)
	if format == "" {
		http.Error(w, fmt.Sprintf(`{"error":{"message":"modelserver has no %s %s"}}`, r.Method, r.URL.Path), http.StatusNotFound)
		return
	}
	recorded := h.record(r, format, body)
	turn := h.turn(&recorded)
	h.play(w, r, format, &turn)
}

func formatOf(r *http.Request) Format {
	path := r.URL.Path
	switch {
	case r.Method != http.MethodPost:
		return ""
	case strings.HasSuffix(path, "/chat/completions"):
		return OpenAI
	case strings.HasSuffix(path, "/v1/messages"):
		return Anthropic
	case strings.Contains(path, "/models/") && strings.HasSuffix(path, ":streamGenerateContent"):
		return Gemini
	}
	return ""
}

func (h *Handler) record(r *http.Request, format Format, body []byte) RecordedRequest {
	out := RecordedRequest{
		Format: format, Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header.Clone(), Body: body,
	}
	_ = json.Unmarshal(body, &out.JSON) // a body that is no object stays nil
	out.Model, _ = out.JSON["model"].(string)
	if format == Gemini {
		_, rest, _ := strings.Cut(r.URL.Path, "/models/")
		out.Model = strings.TrimSuffix(rest, ":streamGenerateContent")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	out.Number = len(h.requests)
	h.requests = append(h.requests, out)
	return out
}

func (h *Handler) play(w http.ResponseWriter, r *http.Request, format Format, t *Turn) {
	for name, values := range t.Header {
		w.Header()[name] = values
	}
	if t.RetryAfter != "" {
		w.Header().Set("Retry-After", t.RetryAfter)
	}
	out := &writer{w: w, left: -1, clean: t.CutClean}
	switch {
	case t.CutAfter == CutAtStart:
		out.left = 0
	case t.CutAfter > 0:
		out.left = t.CutAfter
	}
	if t.Status != 0 && t.Status != http.StatusOK {
		body := t.ErrorBody
		if body == "" {
			body = errorBody(format, t.Status, t.Error)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(t.Status)
		out.write(body)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	out.flush()
	if t.Garbage != nil {
		out.write(string(t.Garbage))
		return
	}
	head, tail := events(format, t)
	for _, event := range head {
		if !pause(r, t.Delay) || !out.write(event) {
			return
		}
	}
	if t.Hold != "" && !h.hold(r, t.Hold) {
		return
	}
	for _, event := range tail {
		if !out.write(event) {
			return
		}
	}
}

// hold returns false when the client left.
func (h *Handler) hold(r *http.Request, name string) bool {
	h.mu.Lock()
	closeOnce(signal(h.started, name))
	released := signal(h.released, name)
	h.mu.Unlock()
	select {
	case <-released:
		return true
	case <-r.Context().Done():
		return false
	}
}

func pause(r *http.Request, d time.Duration) bool {
	if d == 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-r.Context().Done():
		return false
	}
}

// writer counts the bytes of the body down to the cut.
type writer struct {
	w     http.ResponseWriter
	left  int // -1: no cut
	clean bool
}

func (o *writer) flush() {
	if f, ok := o.w.(http.Flusher); ok {
		f.Flush()
	}
}

// write sends and flushes. At the cut it breaks the connection, or returns false for a clean end.
func (o *writer) write(s string) bool {
	cut := o.left >= 0 && len(s) >= o.left
	if cut {
		s = s[:o.left]
	}
	_, err := io.Copy(o.w, bytes.NewReader([]byte(s)))
	o.flush()
	if cut {
		if !o.clean {
			panic(http.ErrAbortHandler) // net/http closes the connection without ending the body
		}
		return false
	}
	if o.left > 0 {
		o.left -= len(s)
	}
	return err == nil
}

// Server is a handler that listens on loopback.
type Server struct {
	*Handler
	http *httptest.Server
}

// New starts a server with a script of turns. It is closed when the test ends.
func New(tb testing.TB, turns ...Turn) *Server { return start(tb, NewHandler(turns...)) }

// NewFunc starts a server that asks turn for each answer.
func NewFunc(tb testing.TB, turn func(*RecordedRequest) Turn) *Server {
	return start(tb, NewHandlerFunc(turn))
}

func start(tb testing.TB, h *Handler) *Server {
	tb.Helper()
	s := &Server{Handler: h, http: httptest.NewServer(h)}
	tb.Cleanup(func() {
		s.http.CloseClientConnections() // ends turns that still hold
		s.http.Close()
	})
	return s
}

// URL is the server's root.
func (s *Server) URL() string { return s.http.URL }

// OpenAIURL is the base address for Chat Completions clients.
func (s *Server) OpenAIURL() string { return s.http.URL + "/v1" }

// AnthropicURL is the base address for Messages clients.
func (s *Server) AnthropicURL() string { return s.http.URL }

// GeminiURL is the base address for Gemini clients.
func (s *Server) GeminiURL() string { return s.http.URL }

// Client is an HTTP client whose connections are closed with the server.
func (s *Server) Client() *http.Client { return s.http.Client() }
