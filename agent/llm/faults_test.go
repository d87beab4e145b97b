package llm_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/testkit/modelserver"
)

// failure performs a call that must fail.
func failure(t *testing.T, p llm.Provider, req *llm.Request) (*llm.Message, *llm.Error) {
	t.Helper()
	m, err := ask(t, p, req)
	var e *llm.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v (%T), message %+v", err, err, m)
	}
	if strings.Contains(err.Error(), canary) || strings.Contains(e.Words, canary) {
		t.Errorf("the key is in the error: %v", err)
	}
	return m, e
}

func TestHTTPErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		turn      modelserver.Turn
		kind      llm.Kind
		code      string
		retryable bool
		after     time.Duration
		text      string
	}{
		{"wrong key", modelserver.Turn{Status: 401, Error: "Incorrect API key provided: " + canary + "."}, llm.KindAuth, "auth_required", false, 0, "Incorrect API key provided: [key removed]."},
		{"forbidden", modelserver.Turn{Status: 403, Error: "not for you"}, llm.KindAuth, "auth_required", false, 0, "not for you"},
		{"rate limit", modelserver.Turn{Status: 429, Error: "slow down", RetryAfter: "7"}, llm.KindRateLimited, "provider", true, 7 * time.Second, "Wait 7s"},
		{"fault", modelserver.Turn{Status: 500, Error: "we broke"}, llm.KindServer, "provider", true, 0, "we broke"},
		{"overloaded", modelserver.Turn{Status: 529, Error: "Overloaded"}, llm.KindOverloaded, "provider", true, 0, "Try again later"},
		{"no model", modelserver.Turn{Status: 404, Error: "no such model"}, llm.KindNotFound, "provider", false, 0, "Check the name of the model"},
		{"too long", modelserver.Turn{Status: 400, Error: "This model's maximum context length is 8192 tokens."}, llm.KindOverflow, "provider", false, 0, "compact"},
		{"bad request", modelserver.Turn{Status: 400, Error: "temperature is odd"}, llm.KindInvalid, "provider", false, 0, "temperature is odd"},
		{"web page", modelserver.Turn{Status: 502, ErrorBody: "<html><head><title>Bad Gateway</title></head></html>"}, llm.KindServer, "provider", true, 0, "a web page titled Bad Gateway"},
		{"empty", modelserver.Turn{Status: 503, ErrorBody: " "}, llm.KindOverloaded, "provider", true, 0, "answered 503"},
		{"plain error string", modelserver.Turn{Status: 400, ErrorBody: `{"error":"model is not here"}`}, llm.KindInvalid, "provider", false, 0, "model is not here"},
		{"redirect", modelserver.Turn{Status: 307, Header: http.Header{"Location": {"http://127.0.0.1:9/elsewhere"}}}, llm.KindInvalid, "provider", false, 0, "redirects"},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachFamily(t, func(t *testing.T, f family) {
				server := modelserver.New(t, c.turn)
				m, e := failure(t, f.connect(t, f.base(server)), f.request(user("q")))
				if e.Kind != c.kind || e.Code() != c.code || e.Retryable != c.retryable || e.RetryAfter != c.after || e.Status != c.turn.Status {
					t.Errorf("error %+v", e)
				}
				url := server.URL() + f.path
				if e.URL != url || !strings.Contains(e.Error(), url) || !strings.Contains(e.Error(), c.text) || !strings.HasPrefix(e.Error(), f.name) {
					t.Errorf("text %q; want it to name %s and say %q", e, url, c.text)
				}
				if m.StopReason != llm.StopError || len(m.Content) != 0 {
					t.Errorf("message %+v", m)
				}
				if n := len(server.Requests()); n != 1 {
					t.Errorf("%d requests: the SDK repeats on its own", n)
				}
			})
		})
	}
}

func TestKeyAdvice(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, f family) {
		server := modelserver.NewFunc(t, func(*modelserver.RecordedRequest) modelserver.Turn { return modelserver.Turn{Status: 401} })
		variable := map[string]string{"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "google": "GEMINI_API_KEY"}[f.name]
		_, e := failure(t, f.connect(t, f.base(server)), f.request(user("q")))
		if !strings.Contains(e.Error(), "Check the API key") || !strings.Contains(e.Error(), variable) {
			t.Errorf("with a key: %v", e)
		}
		_, e = failure(t, f.provider(f.base(server), "", server.Client()), f.request(user("q")))
		if !strings.Contains(e.Error(), "No API key is set") || !strings.Contains(e.Error(), variable) {
			t.Errorf("without a key: %v", e)
		}
	})
}

func TestDeadEndpoint(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	eachFamily(t, func(t *testing.T, f family) {
		_, e := failure(t, f.connect(t, "http://name:"+canary+"@"+address+"/v1"), f.request(user("q")))
		if e.Kind != llm.KindUnreachable || e.Retryable || e.Status != 0 || strings.Contains(e.URL, "name") {
			t.Errorf("error %+v", e)
		}
		for _, part := range []string{"http://" + address, "refused", "server is running"} {
			if !strings.Contains(e.Error(), part) {
				t.Errorf("%q does not say %q", e, part)
			}
		}
	})
}

// TestRefused: only a server of this machine that is not running is given up at once; another machine may be starting.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		host      string
		ip        string
		cause     error
		retryable bool
	}{
		{"localhost:11434", "127.0.0.1", syscall.ECONNREFUSED, false},
		{"localhost:11434", "::1", syscall.ECONNREFUSED, false},
		{"127.9.9.9:80", "127.9.9.9", syscall.ECONNREFUSED, false},
		{"127.0.0.1:80", "127.0.0.1", syscall.ECONNRESET, true},
		{"models.example", "192.0.2.1", syscall.ECONNREFUSED, true},
		{"models.example", "192.0.2.1", syscall.EHOSTUNREACH, true},
	} {
		t.Run(c.ip+" "+c.cause.Error(), func(t *testing.T) {
			eachFamily(t, func(t *testing.T, f family) {
				client := &http.Client{Transport: &http.Transport{DialContext: func(_ context.Context, network, _ string) (net.Conn, error) {
					return nil, &net.OpError{Op: "dial", Net: network, Addr: &net.TCPAddr{IP: net.ParseIP(c.ip), Port: 80}, Err: os.NewSyscallError("connect", c.cause)}
				}}}
				_, e := failure(t, f.provider("http://"+c.host, canary, client), f.request(user("q")))
				if e.Kind != llm.KindUnreachable || e.Retryable != c.retryable || !errors.Is(e, c.cause) {
					t.Errorf("error %+v", e)
				}
			})
		})
	}
}

func TestImpossibleAddress(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, f family) {
		for _, base := range []string{"http://[::1", "ftp://127.0.0.1/v1", "nonsense"} {
			_, e := failure(t, f.connect(t, base), f.request(user("q")))
			if e.Kind != llm.KindInvalid && e.Kind != llm.KindUnreachable {
				t.Errorf("%s: %+v", base, e)
			}
		}
	})
}

func TestGarbage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, says string }{
		"page":       {"<!doctype html><title>Login</title>", "a web page titled Login"},
		"text":       {"hello there\nthis is no stream\n", "hello there"},
		"empty":      {"", "without a single event"},
		"broken":     {"data: {\"choices\": [\n\n", "an event is no JSON"},
		"number":     {"data: 17\n\n", "unknown form"},
		"types":      {`data: {"type":5,"choices":7,"candidates":"x"}` + "\n\n", "valid stream"},
		"document":   {`{"object":"list","data":[]}`, "one document"},
		"binary":     {"\x00\xff\xfe\x01", "without a single event"},
		"only pings": {": ping\n\n: ping\n\n", "without a single event"},
	} {
		t.Run(name, func(t *testing.T) {
			eachFamily(t, func(t *testing.T, f family) {
				server := modelserver.New(t, modelserver.Turn{Garbage: []byte(c.body)})
				m, e := failure(t, f.connect(t, f.base(server)), f.request(user("q")))
				if e.Kind != llm.KindProtocol || e.Retryable || !strings.Contains(e.Error(), "valid stream") || e.URL != server.URL()+f.path {
					t.Errorf("error %+v", e)
				}
				if name != "binary" && !strings.Contains(e.Error(), c.says) {
					t.Errorf("%q does not say %q", e, c.says)
				}
				if len(m.Content) != 0 {
					t.Errorf("content %+v", m.Content)
				}
			})
		})
	}
}

func TestErrorInsteadOfAStream(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, f family) {
		for _, body := range []string{
			"{\n \"error\": {\"message\": \"the model is overloaded\"}\n}", `data: {"error":{"message":"the model is overloaded"}}`,
			`[{"error":{"message":"the model is overloaded"}}]`, "event: error\ndata: {\"message\":\"the model is overloaded\"}\n\n",
			"data: {\"error\":{\"message\":\"the model is overloaded\"}}\n\ndata: [DONE]\n\n",
		} {
			server := modelserver.New(t, modelserver.Turn{Garbage: []byte(body)})
			_, e := failure(t, f.connect(t, f.base(server)), f.request(user("q")))
			if e.Kind != llm.KindOverloaded || !e.Retryable || !strings.Contains(e.Error(), "the model is overloaded") {
				t.Errorf("%q: %v", body, e)
			}
		}
	})
}

func TestErrorInTheMiddle(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, f family) {
		server := modelserver.New(t, modelserver.Turn{Chunks: []string{"half ", "an answer"}, MidStreamError: "the engine died, key " + canary})
		m, e := failure(t, f.connect(t, f.base(server)), f.request(user("q")))
		if m.Text() != "half an answer" || m.StopReason != llm.StopError {
			t.Errorf("message %+v", m)
		}
		if e.Kind != llm.KindServer || !e.Retryable || !strings.Contains(e.Error(), "the engine died, key [key removed]") {
			t.Errorf("error %+v", e)
		}
	})
}

// cutTurn has everything that a stream can hold, and is small enough to be cut at every byte.
var cutTurn = modelserver.Turn{
	Thinking: "想", Chunks: []string{"你好", "，世界"}, Usage: modelserver.Usage{Input: 3, Output: 2},
	ToolCalls: []modelserver.ToolCall{{ID: "c1", Name: "f", Args: `{"a":1}`}},
}

// TestCutAnywhere breaks the stream behind each byte, as a lost connection and as a regular end. Only a stream whose terminal
// event came may count as complete, and what is kept is the beginning of the answer.
func TestCutAnywhere(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, f family) {
		whole := modelserver.Body(f.format, cutTurn)
		terminal := map[modelserver.Format]string{
			modelserver.OpenAI: `"finish_reason":"tool_calls"`, modelserver.Anthropic: `{"type":"message_stop"}`, modelserver.Gemini: `"finishReason":"STOP"`,
		}[f.format]
		complete := strings.Index(string(whole), terminal) + len(terminal)
		server := modelserver.NewFunc(t, func(r *modelserver.RecordedRequest) modelserver.Turn {
			turn := cutTurn
			turn.CutAfter, turn.CutClean = r.Number/2, r.Number%2 == 1
			if turn.CutAfter == 0 {
				turn.CutAfter = modelserver.CutAtStart
			}
			return turn
		})
		p := f.connect(t, f.base(server))
		for n := range 2 * (len(whole) + 1) {
			cut, clean := n/2, n%2 == 1
			m, err := ask(t, p, f.request(user("q")))
			if !strings.HasPrefix("你好，世界", m.Text()) {
				t.Fatalf("cut at %d: text %q", cut, m.Text())
			}
			if err == nil && (cut < complete || m.Text() != "你好，世界" || len(m.ToolCalls()) != 1 || string(m.ToolCalls()[0].Arguments) != `{"a":1}`) {
				t.Fatalf("cut at byte %d of %d (clean %v) counts as complete: %+v", cut, len(whole), clean, m)
			}
			if err == nil && !clean && f.format != modelserver.Anthropic && cut < len(whole)-2 {
				t.Fatalf("a connection lost at byte %d of %d counts as a complete answer", cut, len(whole))
			}
			if err != nil && clean && cut == len(whole) {
				t.Fatalf("the whole stream counts as cut: %v", err)
			}
			var e *llm.Error
			if err != nil && (!errors.As(err, &e) || e.URL == "") {
				t.Fatalf("cut at %d: %v", cut, err)
			}
		}
	})
}

func TestAbort(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, f family) {
		server := modelserver.New(t, modelserver.Turn{Chunks: []string{"first"}, Hold: "end"})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		m, err := askContext(ctx, t, f.connect(t, f.base(server)), f.request(user("q")), func(e llm.Event) {
			if e.Type == llm.EventDelta {
				cancel()
			}
		})
		var e *llm.Error
		if m.StopReason != llm.StopAborted || m.Text() != "first" || !errors.Is(err, context.Canceled) || !errors.As(err, &e) || e.Kind != llm.KindAborted || e.Retryable {
			t.Errorf("message %+v, error %v", m, err)
		}
		if !strings.Contains(err.Error(), "was stopped") {
			t.Errorf("text %q", err)
		}
	})
}

func TestAbortBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, f family) {
		server := modelserver.New(t, modelserver.Turn{Hold: "answer"})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-server.Started("answer")
			cancel()
		}()
		m, err := askContext(ctx, t, f.connect(t, f.base(server)), f.request(user("q")), nil)
		if m.StopReason != llm.StopAborted || !errors.Is(err, context.Canceled) {
			t.Errorf("message %+v, error %v", m, err)
		}
		m, err = askContext(ctx, t, f.connect(t, f.base(server)), f.request(user("q")), nil)
		if m.StopReason != llm.StopAborted || !errors.Is(err, context.Canceled) || len(server.Requests()) != 1 {
			t.Errorf("with a context that is done: %+v, %v, %d requests", m, err, len(server.Requests()))
		}
	})
}

func TestAbortKeepsAHalfToolCall(t *testing.T) {
	t.Parallel()
	server := modelserver.New(t, modelserver.Turn{ToolCalls: []modelserver.ToolCall{{ID: "c1", Name: "write", Args: `{"text":"long"}`}}})
	f := families[0]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m, _ := askContext(ctx, t, f.connect(t, f.base(server)), f.request(user("q")), func(e llm.Event) {
		if e.Type == llm.EventDelta && e.Block == llm.BlockToolCall {
			cancel()
		}
	})
	if m.StopReason != llm.StopAborted || len(m.ToolCalls()) != 1 || m.ToolCalls()[0].Name != "write" || m.ToolCalls()[0].ArgumentsError == "" {
		t.Errorf("message %+v", m)
	}
}
