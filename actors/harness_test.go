package actors_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/repa-app/repa/actors"
	"github.com/repa-app/repa/agent/connection"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/client"
	"github.com/repa-app/repa/protocol/server"
	"github.com/repa-app/repa/testkit/frames"
	"github.com/repa-app/repa/testkit/modelserver"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

const testToken = "0123456789abcdef0123456789abcdef"

// world is a whole backend behind a real server, with a scripted model at a real endpoint.
type world struct {
	t       testing.TB
	backend *actors.Backend
	server  *server.Server
	model   *modelserver.Server
	log     *lockedBuffer
	stop    func()
	done    chan struct{} // closed when the backend has ended

	mu    sync.Mutex
	turns []modelserver.Turn
}

type lockedBuffer struct {
	mu      sync.Mutex
	b       strings.Builder
	written *sync.Cond // on mu
}

func newLog() *lockedBuffer {
	l := &lockedBuffer{}
	l.written = sync.NewCond(&l.mu)
	return l
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written.Broadcast()
	return l.b.Write(p)
}

// wait returns when the log has a text.
func (l *lockedBuffer) wait(t testing.TB, text string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for !strings.Contains(l.b.String(), text) {
		l.written.Wait()
	}
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start runs a backend until the test ends. change may edit the options.
func start(t testing.TB, change func(*actors.Options)) *world {
	t.Helper()
	w := &world{t: t, log: newLog(), done: make(chan struct{})}
	w.model = modelserver.NewFunc(t, w.next)
	lent, err := connection.Lend("scripted", connection.OpenAI, w.model.OpenAIURL(), "key")
	if err != nil {
		t.Fatal(err)
	}
	bound, err := lent.Bind("scripted")
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	opts := actors.Options{Log: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Random: rand.Reader, PID: os.Getpid(), Default: bound,
		HTTP: &http.Client{Transport: transport}}
	if change != nil {
		change(&opts)
	}
	if w.backend, err = actors.New(opts); err != nil {
		t.Fatal(err)
	}
	w.server, err = server.Listen(server.Options{Token: testToken, Logger: opts.Log, Backend: w.backend, CheckResults: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served, ran := make(chan error, 1), make(chan error, 1)
	go func() { served <- w.server.Serve() }()
	go func() {
		err := w.backend.Run(ctx)
		close(w.done)
		if serr := w.server.Shutdown(context.Background()); err == nil {
			err = serr
		}
		ran <- err
	}()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Errorf("end of the backend: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("end of the server: %v", err)
		}
		if err := w.backend.Close(); err != nil {
			t.Errorf("close the backend: %v", err)
		}
		transport.CloseIdleConnections()
	})
	t.Cleanup(func() {
		w.stop()
		if t.Failed() {
			t.Log(w.log.String())
		}
	})
	return w
}

// script sets the next answers of the model; after them it answers "ok".
func (w *world) script(turns ...modelserver.Turn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turns = turns
}

func (w *world) next(*modelserver.RecordedRequest) modelserver.Turn {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.turns) == 0 {
		return modelserver.Text("ok")
	}
	turn := w.turns[0]
	w.turns = w.turns[1:]
	return turn
}

func (w *world) dial() *client.Client {
	w.t.Helper()
	c, err := client.Dial(context.Background(), client.Options{URL: w.server.URL(), Token: testToken})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Drop)
	return c
}

// call makes a call that must succeed.
func call[P, R any](w *world, c *client.Client, m *protocol.Call[P, R], p P) R {
	w.t.Helper()
	r, err := client.Call(context.Background(), c, m, p)
	if err != nil {
		w.t.Fatalf("%s: %v", m.Name, err)
	}
	return r
}

// session opens a fresh space and makes a session in it.
func (w *world) session(c *client.Client) (protocol.Space, protocol.SessionKey) {
	w.t.Helper()
	s := call(w, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: w.directory()})
	v := call(w, c, protocol.SessionCreate, protocol.SpaceParams{SpaceID: s.ID})
	return s, v.Key()
}

func (w *world) directory() string {
	return filepath.Join(w.t.TempDir(), "space")
}

func submission(key protocol.SessionKey, id, text string) protocol.Submit {
	return protocol.Submit{Target: key, RequestID: protocol.ID(id), Dispatch: protocol.Dispatch{Kind: "start"},
		Input: protocol.Input{Parts: []protocol.InputPart{protocol.TextPart(text)}}}
}

// ended waits until a run is over.
func (w *world) ended(c *client.Client, key protocol.SessionKey, run protocol.ID) protocol.Run {
	w.t.Helper()
	ctx := context.Background()
	r, err := client.Watch(ctx, c, key.Scope())
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Close(ctx)
	for {
		for _, v := range r.Snapshot().Sessions {
			for _, run_ := range v.Runs {
				if run_.ID == run && run_.Status.Terminal() {
					return run_
				}
			}
		}
		if _, err := r.Next(ctx); err != nil {
			w.t.Fatal(err)
		}
	}
}

// frameHarness plays the protocol's example exchanges against a world.
type frameHarness struct{ *world }

func (h frameHarness) URL() string                  { return h.server.URL() }
func (h frameHarness) Token() string                { return testToken }
func (h frameHarness) NewDirectory() string         { return h.directory() }
func (h frameHarness) Connection() (string, string) { return "lent-openai-scripted", "scripted" }
func (h frameHarness) Release(name string)          { h.model.Release(name) }

func (h frameHarness) Model(turns []frames.Turn) {
	var out []modelserver.Turn
	for _, turn := range turns {
		m := modelserver.Turn{Chunks: turn.Chunks, Hold: turn.Hold}
		if turn.Error != nil {
			m.Status, m.Error = http.StatusBadRequest, turn.Error.Text
		}
		if turn.Tool == "wait" {
			m.ToolCalls = []modelserver.ToolCall{{ID: "wait-1", Name: "search", Args: `{"query":"anything"}`}}
		}
		out = append(out, m)
	}
	h.script(out...)
}

// Frames whose methods this backend serves. The others need queues and interactions.
func TestFrames(t *testing.T) {
	for _, name := range []string{"01-handshake", "02-handshake-bad-token", "03-handshake-bad-version", "04-before-initialize", "05-host-key",
		"06-invalid-requests", "08-unknown-method-and-notification", "09-bad-params", "12-submit-start", "13-submit-duplicate",
		"15-submit-refused", "16-steer-accepted", "24-subscription-snapshot", "25-subscription-resume", "31-content-write-read",
		"32-content-write-conflict", "34-content-edit", "35-content-patch-base-conflict", "36-upload-hold-release", "39-run-submit-shorthand", "40-detach-and-shutdown"} {
		t.Run(name, func(t *testing.T) {
			frames.Play(t, filepath.Join("testdata", "frames", name+".json"), filepath.Join("testdata", "methods.json"),
				func(t testing.TB, _ frames.Server) frames.Harness { return frameHarness{start(t, nil)} })
		})
	}
}
