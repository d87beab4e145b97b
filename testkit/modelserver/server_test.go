package modelserver_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/repa-app/repa/testkit/modelserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var paths = map[modelserver.Format]string{
	modelserver.OpenAI:    "/v1/chat/completions",
	modelserver.Anthropic: "/v1/messages",
	modelserver.Gemini:    "/v1beta/models/gemini-x:streamGenerateContent?alt=sse",
}

func post(t *testing.T, s *modelserver.Server, path, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Test", "yes")
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func TestScriptAndRecord(t *testing.T) {
	t.Parallel()
	for format, path := range paths {
		s := modelserver.New(t, modelserver.Text("first"), modelserver.Text("second"))
		for i, want := range []string{"first", "second", "ok", "ok"} {
			resp := post(t, s, path, `{"model":"m", "n": 1}`)
			body, err := io.ReadAll(resp.Body)
			if err != nil || !strings.Contains(string(body), want) || string(body) != string(modelserver.Body(format, modelserver.Text(want))) {
				t.Errorf("%s, answer %d: %q, %v", format, i, body, err)
			}
		}
		got := s.Requests()
		if len(got) != 4 {
			t.Fatalf("%d requests recorded", len(got))
		}
		r := got[3]
		if r.Number != 3 || r.Format != format || r.Method != "POST" || !strings.HasPrefix(path, r.Path) || string(r.Body) != `{"model":"m", "n": 1}` ||
			r.JSON["n"] != 1.0 || r.Header.Get("X-Test") != "yes" {
			t.Errorf("recorded %+v", r)
		}
	}
}

func TestModelName(t *testing.T) {
	t.Parallel()
	s := modelserver.New(t)
	post(t, s, paths[modelserver.OpenAI], `{"model":"gpt"}`)
	post(t, s, paths[modelserver.Gemini], `not JSON`)
	if got := s.Requests(); got[0].Model != "gpt" || got[1].Model != "gemini-x" || got[1].JSON != nil {
		t.Errorf("recorded %+v", got)
	}
}

func TestOtherPathsTakeNoTurn(t *testing.T) {
	t.Parallel()
	s := modelserver.New(t, modelserver.Text("first"))
	if resp := post(t, s, "/v1/embeddings", "{}"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("status %d", resp.StatusCode)
	}
	body, err := io.ReadAll(post(t, s, paths[modelserver.OpenAI], "{}").Body)
	if err != nil || !strings.Contains(string(body), "first") || len(s.Requests()) != 1 {
		t.Errorf("%q, %v, %d requests", body, err, len(s.Requests()))
	}
}

func TestHTTPError(t *testing.T) {
	t.Parallel()
	for format, path := range paths {
		s := modelserver.New(t,
			modelserver.Turn{Status: 429, Error: "slow down", RetryAfter: "3", Header: http.Header{"X-More": {"1"}}},
			modelserver.Turn{Status: 500, ErrorBody: "plain"})
		resp := post(t, s, path, "{}")
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "3" || resp.Header.Get("X-More") != "1" || !strings.Contains(string(body), `"slow down"`) {
			t.Errorf("%s: %d %v %q %v", format, resp.StatusCode, resp.Header, body, err)
		}
		if body, err := io.ReadAll(post(t, s, path, "{}").Body); err != nil || string(body) != "plain" {
			t.Errorf("%s: %q, %v", format, body, err)
		}
	}
}

func TestCutAtEveryByte(t *testing.T) {
	t.Parallel()
	for format, path := range paths {
		whole := string(modelserver.Body(format, modelserver.Text("你好")))
		for _, clean := range []bool{false, true} {
			s := modelserver.NewFunc(t, func(r *modelserver.RecordedRequest) modelserver.Turn {
				turn := modelserver.Turn{Chunks: []string{"你好"}, CutAfter: r.Number, CutClean: clean}
				if r.Number == 0 {
					turn.CutAfter = modelserver.CutAtStart
				}
				return turn
			})
			for n := range len(whole) + 1 {
				body, err := io.ReadAll(post(t, s, path, "{}").Body)
				if string(body) != whole[:n] || clean != (err == nil) || !clean && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatalf("%s cut at %d, clean %v: %q, %v", format, n, clean, body, err)
				}
			}
		}
	}
}

func TestHoldAndRelease(t *testing.T) {
	t.Parallel()
	s := modelserver.New(t, modelserver.Turn{Chunks: []string{"before"}, Hold: "gate"})
	resp := post(t, s, paths[modelserver.Gemini], "{}")
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	if err != nil || !strings.Contains(line, "before") {
		t.Fatalf("%q, %v", line, err)
	}
	<-s.Started("gate")
	s.Release("gate")
	s.Release("gate") // again is harmless
	if rest, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(rest), "STOP") {
		t.Errorf("%q, %v", rest, err)
	}
}

func TestHoldEndsWhenTheClientLeaves(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	h := modelserver.NewHandler(modelserver.Turn{Hold: "gate"})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://h/v1/messages", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(gone)
		h.ServeHTTP(discard{http.Header{}}, req)
	}()
	<-h.Started("gate")
	cancel()
	<-gone
}

type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

func TestConcurrentRequestsEachTakeOneTurn(t *testing.T) {
	t.Parallel()
	words := []string{"apple", "pear", "plum", "quince"}
	var turns []modelserver.Turn
	for _, w := range words {
		turns = append(turns, modelserver.Text(w))
	}
	s := modelserver.New(t, turns...)
	var mu sync.Mutex
	var all strings.Builder
	var wg sync.WaitGroup
	for range words {
		wg.Go(func() {
			resp, err := s.Client().Post(s.URL()+"/v1/messages", "application/json", strings.NewReader("{}"))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			all.Write(body)
		})
	}
	wg.Wait()
	for _, w := range words {
		if strings.Count(all.String(), w) != 1 {
			t.Errorf("%q was not said exactly once", w)
		}
	}
}

func TestGarbageAndMidStreamError(t *testing.T) {
	t.Parallel()
	for format, path := range paths {
		s := modelserver.New(t, modelserver.Turn{Garbage: []byte("<html>")}, modelserver.Turn{Chunks: []string{"half"}, MidStreamError: "broke"})
		if body, err := io.ReadAll(post(t, s, path, "{}").Body); err != nil || string(body) != "<html>" {
			t.Errorf("%s: %q, %v", format, body, err)
		}
		body, err := io.ReadAll(post(t, s, path, "{}").Body)
		half, broke := strings.Index(string(body), "half"), strings.Index(string(body), `"broke"`)
		if err != nil || half < 0 || broke < half || strings.Contains(string(body), "[DONE]") {
			t.Errorf("%s: %q, %v", format, body, err)
		}
	}
}
