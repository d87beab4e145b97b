package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/internal/fake"
	"github.com/repa-app/repa/protocol/rpc"
	"github.com/repa-app/repa/protocol/server"
	"github.com/repa-app/repa/testkit/frames"
)

// call sends a text and gives the next message.
func call(t *testing.T, socket *frames.Socket, text string) string {
	t.Helper()
	if err := socket.WriteText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return next(t, socket)
}

func next(t *testing.T, socket *frames.Socket) string {
	t.Helper()
	answer, err := socket.Read()
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func dial(t *testing.T, base string) *frames.Socket {
	t.Helper()
	socket, err := frames.Dial(base, "/rpc", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	return socket
}

func initialized(t *testing.T, base string) *frames.Socket {
	t.Helper()
	socket := dial(t, base)
	answer := call(t, socket, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"versions":[1],"token":"`+fake.Token+`"}}`)
	if !strings.Contains(answer, `"result"`) {
		t.Fatal(answer)
	}
	return socket
}

// number gives the error number of an answer, 0 for a result.
func number(t *testing.T, answer string) int {
	t.Helper()
	var a struct {
		Error struct{ Code int }
	}
	if err := json.Unmarshal([]byte(answer), &a); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	return a.Error.Code
}

func closedWith(t *testing.T, socket *frames.Socket) int {
	t.Helper()
	for {
		_, err := socket.Read()
		var closed *frames.ClosedError
		if errors.As(err, &closed) {
			return closed.Code
		}
		if err != nil {
			t.Fatalf("no close frame: %v", err)
		}
	}
}

const list = `{"jsonrpc":"2.0","id":7,"method":"space.list"}`

func TestFragmentsOfOneByte(t *testing.T) {
	socket := initialized(t, fake.New("s").Serve(t).URL())
	for i := range len(list) {
		opcode := frames.OpContinuation
		if i == 0 {
			opcode = frames.OpText
		}
		if err := socket.WriteFrame(i == len(list)-1, opcode, []byte{list[i]}); err != nil {
			t.Fatal(err)
		}
	}
	if answer := next(t, socket); answer != `{"jsonrpc":"2.0","id":7,"result":[]}` {
		t.Error(answer)
	}
}

func TestMessageSizes(t *testing.T) {
	base := fake.New("s").Serve(t).URL()
	fits := initialized(t, base)
	padding := strings.Repeat(" ", 8<<20-len(list))
	if answer := call(t, fits, list+padding); number(t, answer) != 0 {
		t.Errorf("8 MiB: %s", answer)
	}
	tooLarge := initialized(t, base)
	go func() { _ = tooLarge.WriteText([]byte(list + padding + " x")) }() // the server may close before it has read everything
	if code := closedWith(t, tooLarge); code != 1009 {
		t.Errorf("more than 8 MiB: closed with %d", code)
	}
	if answer := call(t, fits, list); number(t, answer) != 0 {
		t.Errorf("the other connection suffers: %s", answer)
	}
}

func TestWhatIsNoJSON(t *testing.T) {
	socket := initialized(t, fake.New("s").Serve(t).URL())
	for _, text := range []string{
		"", " ", "{", "[", "nul", "{}x", list + list, "\xff", `{"jsonrpc":"2.0","id":"` + "\xff" + `","method":"space.list"}`,
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"space.list"}`, `{"jsonrpc":"2.0","id":1,"method":"space.list","params":{"a":1,"a":1}}`,
		strings.Repeat("[", 100_000), `{"jsonrpc":"2.0","id":1,"method":"space.list","params":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`,
		`[` + list + `,`, `[` + list + `]]`, `{"id":01}`, `{"jsonrpc":"2.0","id":1,"method":"space.list","params":'x'}`,
	} {
		answer := call(t, socket, text)
		if number(t, answer) != protocol.NumberParse || !strings.Contains(answer, `"id":null`) {
			t.Errorf("%.60q: %s", text, answer)
		}
	}
}

func TestBinaryIsRefused(t *testing.T) {
	socket := initialized(t, fake.New("s").Serve(t).URL())
	if err := socket.WriteFrame(true, frames.OpBinary, []byte(list)); err != nil {
		t.Fatal(err)
	}
	if code := closedWith(t, socket); code != 1003 {
		t.Errorf("closed with %d", code)
	}
}

func TestPingIsAnswered(t *testing.T) {
	socket := initialized(t, fake.New("s").Serve(t).URL())
	for range 1000 { // a flood is answered and nothing else happens
		if err := socket.WriteFrame(true, frames.OpPing, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, opcode, payload, err := socket.ReadFrame(); err != nil || opcode != frames.OpPong || string(payload) != "x" {
			t.Fatalf("opcode %d, %q, %v", opcode, payload, err)
		}
	}
}

func TestBatches(t *testing.T) {
	socket := initialized(t, fake.New("s").Serve(t).URL())
	for text, want := range map[string][]int{
		`[]`: {protocol.NumberInvalidRequest},
		`[1,"x",null,[],{}]`: {protocol.NumberInvalidRequest, protocol.NumberInvalidRequest, protocol.NumberInvalidRequest,
			protocol.NumberInvalidRequest, protocol.NumberInvalidRequest},
		`[` + list + `,{"jsonrpc":"2.0","method":"shutdown"},{"jsonrpc":"2.0","id":8,"method":"nothing"}]`: {0, protocol.NumberUnknownMethod},
		`[` + strings.Repeat(list+",", 256) + list + `]`:                                                   {protocol.NumberInvalidRequest},
	} {
		answer := call(t, socket, text)
		var answers []json.RawMessage
		if !strings.HasPrefix(answer, "[") {
			answers = []json.RawMessage{json.RawMessage(answer)}
		} else if err := json.Unmarshal([]byte(answer), &answers); err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, a := range answers {
			got = append(got, number(t, string(a)))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%.80s: %v, want %v", text, got, want)
		}
	}
	// Notifications alone get no answer: the next message belongs to the next call.
	if err := socket.WriteText([]byte(`[{"jsonrpc":"2.0","method":"space.list"},{"jsonrpc":"2.0","method":"x"}]`)); err != nil {
		t.Fatal(err)
	}
	if answer := call(t, socket, list); answer != `{"jsonrpc":"2.0","id":7,"result":[]}` {
		t.Error(answer)
	}
}

func TestInvalidParamsSayWhere(t *testing.T) {
	socket := initialized(t, fake.New("s").Serve(t).URL())
	answer := call(t, socket, `{"jsonrpc":"2.0","id":1,"method":"session.submit","params":{"target":{"spaceId":"a","sessionId":"b"},"requestId":"r","input":{"parts":[]},"dispatch":{"kind":"start"}}}`)
	if number(t, answer) != protocol.NumberInvalidParams || !strings.Contains(answer, "Invalid params: session.submit: input.parts: must have at least 1 items") {
		t.Error(answer)
	}
}

func TestUnexpectedErrorsDoNotLeak(t *testing.T) {
	backend := fake.New("s")
	backend.Before = func(call *server.Call) bool {
		if call.Method == "space.list" {
			call.Fail(errors.New("secret path"))
			call.Reply(nil) // only the first answer counts
			return true
		}
		return false
	}
	socket := initialized(t, backend.Serve(t).URL())
	answer := call(t, socket, list)
	if number(t, answer) != protocol.NumberInternal || strings.Contains(answer, "secret") {
		t.Error(answer)
	}
}

func TestResultsAreChecked(t *testing.T) {
	backend := fake.New("s")
	backend.Before = func(call *server.Call) bool {
		if call.Method == "space.list" {
			call.Reply([]protocol.Space{{ID: "not an id", Path: "x"}})
			return true
		}
		return false
	}
	socket := initialized(t, backend.Serve(t).URL())
	if answer := call(t, socket, list); number(t, answer) != protocol.NumberInternal {
		t.Error(answer)
	}
}

func TestTooManyCallsAreBusy(t *testing.T) {
	backend := fake.New("s")
	var mu sync.Mutex
	var held []*server.Call
	backend.Before = func(call *server.Call) bool {
		mu.Lock()
		defer mu.Unlock()
		if call.Method == "space.list" {
			held = append(held, call)
			return true
		}
		return false
	}
	socket := initialized(t, backend.Serve(t).URL())
	for range 256 {
		if err := socket.WriteText([]byte(list)); err != nil {
			t.Fatal(err)
		}
	}
	if answer := call(t, socket, list); !strings.Contains(answer, `"code":"busy"`) {
		t.Error(answer)
	}
	mu.Lock()
	for _, c := range held {
		go c.Reply([]protocol.Space{})
	}
	mu.Unlock()
	for range 256 {
		if answer := next(t, socket); number(t, answer) != 0 {
			t.Fatal(answer)
		}
	}
	if answer := call(t, socket, `{"jsonrpc":"2.0","id":9,"method":"state.get","params":{"scope":{}}}`); number(t, answer) != 0 {
		t.Error(answer)
	}
}

// TestNeverReadingClient floods a client that reads nothing with answers, and another with a subscription. The first is closed, the second's changes merge,
// and a third connection notices nothing.
func TestNeverReadingClient(t *testing.T) {
	backend := fake.New("s")
	large := protocol.Space{ID: "large", Path: strings.Repeat("x", 1<<20)}
	flooded := make(chan struct{})
	backend.Before = func(call *server.Call) bool {
		if call.Method == "connection.list" {
			for range 32 { // far more than the system's buffers and ours
				backend.Publish(protocol.Change{Type: protocol.ChangeSpace, Space: &large})
			}
			close(flooded)
		}
		return false
	}
	base := backend.Serve(t).URL()
	answers, watcher, other := initialized(t, base), initialized(t, base), initialized(t, base)
	call(t, watcher, `{"jsonrpc":"2.0","id":1,"method":"subscription.start","params":{"id":"w","scope":{}}}`)
	if answer := next(t, watcher); number(t, answer) != 0 {
		t.Fatal(answer)
	}
	if answer := call(t, other, `{"jsonrpc":"2.0","id":1,"method":"connection.list"}`); number(t, answer) != 0 {
		t.Fatal(answer)
	}
	<-flooded
	for range 40 {
		if err := answers.WriteText([]byte(list)); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		if answer := call(t, other, `{"jsonrpc":"2.0","id":1,"method":"session.list","params":{"spaceId":"x"}}`); number(t, answer) != protocol.NumberDomain {
			t.Fatal(answer)
		}
	}
	total, deliveries := 0, 0
	for total < 32 {
		var update struct {
			Params protocol.SubscriptionUpdate
		}
		if err := json.Unmarshal([]byte(strings.ReplaceAll(next(t, watcher), large.Path, "x")), &update); err != nil {
			t.Fatal(err)
		}
		total, deliveries = total+len(update.Params.Delivery.Changes), deliveries+1
	}
	if total != 32 {
		t.Errorf("%d changes in %d deliveries", total, deliveries)
	}
	if code := closedWith(t, answers); code != 1013 {
		t.Errorf("the one that did not read was closed with %d", code)
	}
}

func TestDetachClosesTheHost(t *testing.T) {
	backend := fake.New("s")
	base := backend.Serve(t).URL()
	socket, other := initialized(t, base), initialized(t, base)
	if err := socket.WriteText([]byte(`{"jsonrpc":"2.0","id":1,"method":"client.detach"}` + "")); err != nil {
		t.Fatal(err)
	}
	if answer := next(t, socket); answer != `{"jsonrpc":"2.0","id":1,"result":null}` {
		t.Error(answer)
	}
	if code := closedWith(t, socket); code != 1000 {
		t.Errorf("closed with %d", code)
	}
	if answer := call(t, other, list); number(t, answer) != 0 {
		t.Errorf("another host: %s", answer)
	}
}

// detachedConn answers nothing: the server must not ask it.
type detachedConn struct{ t *testing.T }

func (c detachedConn) Call(call *server.Call) { c.t.Errorf("%s reached a detached host", call.Method) }
func (c detachedConn) Closed()                {}
func (c detachedConn) Detached() bool         { return true }

type detachedBackend struct {
	*fake.Backend
	t *testing.T
}

func (b detachedBackend) Connect(*rpc.Peer, server.HostIdentity) server.Conn {
	return detachedConn{b.t}
}

func TestDetachedHostIsAnsweredClosed(t *testing.T) {
	backend := fake.New("s")
	base := backend.Serve(t, func(o *server.Options) { o.Backend = detachedBackend{backend, t} }).URL()
	socket := initialized(t, base)
	for _, text := range []string{list, `{"jsonrpc":"2.0","id":1,"method":"nothing"}`, `{"jsonrpc":"2.0","id":1,"method":"space.open"}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"versions":[1],"token":"` + fake.Token + `"}}`} {
		if answer := call(t, socket, text); !strings.Contains(answer, `"code":"closed"`) {
			t.Errorf("%s: %s", text, answer)
		}
	}
}

func TestShutdownClosesWith1000(t *testing.T) {
	backend := fake.New("s")
	s := backend.Serve(t)
	socket, waiting := initialized(t, s.URL()), dial(t, s.URL())
	var running sync.WaitGroup
	running.Go(func() {
		if code := closedWith(t, socket); code != 1000 {
			t.Errorf("closed with %d", code)
		}
	})
	running.Go(func() {
		if code := closedWith(t, waiting); code != 1000 {
			t.Errorf("closed with %d", code)
		}
	})
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	running.Wait()
	if n := backend.Connections(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
}

func TestShutdownCutsWhoDoesNotAnswer(t *testing.T) {
	s := fake.New("s").Serve(t)
	initialized(t, s.URL()) // never reads again, so it does not answer the close
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("shut down: %v", err)
	}
}

// TestTokenStaysSecret looks for the token in everything that comes out: answers, closes and the log.
func TestTokenStaysSecret(t *testing.T) {
	var log bytes.Buffer
	var mu sync.Mutex
	backend := fake.New("s")
	s := backend.Serve(t, func(o *server.Options) {
		o.Logger = slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return log.Write(p)
		}), &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	socket := dial(t, s.URL())
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"versions":[1],"token":"` + fake.Token + `","x":1}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"versions":["` + fake.Token + `"],"token":"` + fake.Token + `"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"versions":[2],"token":"` + fake.Token + `"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"versions":[1],"token":"` + fake.Token + `"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"request.get","params":{"requestId":"x"}}`,
	} {
		if answer := call(t, socket, text); strings.Contains(answer, fake.Token) {
			t.Errorf("answer holds the token: %s", answer)
		}
	}
	_ = socket.Close()
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if strings.Contains(log.String(), fake.Token) || log.Len() == 0 {
		t.Errorf("log: %s", log.String())
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestFreshHostKeyComesFromTheGivenSource(t *testing.T) {
	base := fake.New("s").Serve(t, func(o *server.Options) { o.Random = bytes.NewReader(bytes.Repeat([]byte{0xab}, 32)) }).URL()
	first := dial(t, base)
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"versions":[1],"token":"` + fake.Token + `"}}`
	if answer := call(t, first, hello); !strings.Contains(answer, strings.Repeat("ab", 32)) {
		t.Error(answer)
	}
	if answer := call(t, dial(t, base), hello); number(t, answer) != protocol.NumberInternal {
		t.Errorf("with a source that is dry: %s", answer)
	}
}
