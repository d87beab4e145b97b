package llm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/testkit/modelserver"
)

// TestStreamQuirks changes a regular stream in the ways in which servers and proxies do. The answer stays the same.
func TestStreamQuirks(t *testing.T) {
	t.Parallel()
	turn := modelserver.Turn{Thinking: "t", Chunks: []string{"你", "好"}, ToolCalls: []modelserver.ToolCall{{ID: "c1", Name: "f", Args: `{"a":1}`}}}
	for name, change := range map[string]func(string) string{
		"as it is":        func(s string) string { return s },
		"CRLF":            func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
		"no space":        func(s string) string { return strings.ReplaceAll(s, "data: ", "data:") },
		"comments":        func(s string) string { return ": start\n\n" + strings.ReplaceAll(s, "\n\n", "\n: keep-alive\n\n:\n\n") },
		"byte order mark": func(s string) string { return "\ufeff" + s },
		"blank start":     func(s string) string { return "\n\r\n" + s },
		"no last line":    func(s string) string { return strings.TrimRight(s, "\n") },
		"no names":        func(s string) string { return removeLines(s, "event: ") },
		"foreign names":   func(s string) string { return "id: 1\nevent: message\n" + removeLines(s, "event: ") },
		"null errors":     func(s string) string { return strings.ReplaceAll(s, "data: {", `data: {"error":null,`) },
		"one line each":   func(s string) string { return strings.ReplaceAll(removeLines(s, "event: "), "\n\n", "\n") },
		"split lines":     func(s string) string { return strings.ReplaceAll(s, `,"`, ",\ndata: \"") },
		"no [DONE]":       func(s string) string { return strings.ReplaceAll(s, "data: [DONE]\n\n", "") },
	} {
		t.Run(name, func(t *testing.T) {
			eachFamily(t, func(t *testing.T, f family) {
				body := change(string(modelserver.Body(f.format, turn)))
				server := modelserver.New(t, modelserver.Turn{Garbage: []byte(body)})
				m, err := ask(t, f.connect(t, f.base(server)), f.request(user("q")))
				if err != nil {
					t.Fatalf("%v\n%s", err, body)
				}
				if m.Text() != "你好" || len(m.Content) != 3 || string(m.Content[2].Arguments) != `{"a":1}` || m.StopReason != llm.StopToolUse {
					t.Errorf("message %+v", m)
				}
			})
		})
	}
}

func removeLines(s, prefix string) string {
	var out []string
	for line := range strings.SplitSeq(s, "\n") {
		if !strings.HasPrefix(line, prefix) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// answering is an endpoint without a network.
type answering func(*http.Request) *http.Response

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	return a(r), nil
}

func streamOf(r *http.Request, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body, Request: r}
}

// silent is a body that ends only with its request.
type silent struct{ ctx context.Context }

func (s silent) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}
func (silent) Close() error { return nil }

func TestSilentServer(t *testing.T) {
	t.Parallel()
	for _, f := range families {
		synctest.Test(t, func(t *testing.T) {
			p := f.provider("http://model.test", canary, &http.Client{Transport: answering(func(r *http.Request) *http.Response {
				begin := strings.NewReader(string(modelserver.Body(f.format, modelserver.Text("half")))[:40])
				return streamOf(r, struct {
					io.Reader
					io.Closer
				}{io.MultiReader(begin, silent{r.Context()}), silent{}})
			})})
			begin := time.Now()
			_, e := failure(t, p, f.request(user("q")))
			if e.Kind != llm.KindTimeout || !e.Retryable || time.Since(begin) != 5*time.Minute || !strings.Contains(e.Error(), "stopped answering") {
				t.Errorf("%s: %v after %v", f.name, e, time.Since(begin))
			}
		})
	}
}

// FuzzAnswer feeds any bytes as an answer to all three formats. Nothing panics, and an answer counts as complete only
// with a stop reason.
func FuzzAnswer(f *testing.F) {
	for _, fam := range families {
		f.Add(modelserver.Body(fam.format, cutTurn))
		f.Add(modelserver.Body(fam.format, modelserver.Turn{Chunks: []string{"x"}, MidStreamError: "e"}))
	}
	f.Add([]byte(`data: {"candidates":5}`))
	f.Add([]byte("data: {\"type\":\"content_block_delta\",\"index\":9}\n\n"))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":-1}]}}]}\n\n"))
	f.Add([]byte("data: {\"candidates\":[null,{\"content\":{\"parts\":[null,3]}}],\"usageMetadata\":[]}\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, fam := range families {
			p := fam.provider("http://model.test", canary, &http.Client{Transport: answering(func(r *http.Request) *http.Response {
				return streamOf(r, io.NopCloser(bytes.NewReader(body)))
			})})
			m, err := ask(t, p, fam.request(user("q")))
			if err == nil && m.RawStopReason == "" {
				t.Errorf("%s: complete without a stop reason: %+v", fam.name, m)
			}
			if raw, err := json.Marshal(m); err != nil {
				t.Errorf("%s: the message has no JSON form: %v (%s)", fam.name, err, raw)
			}
		}
	})
}
