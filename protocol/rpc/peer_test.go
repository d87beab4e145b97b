package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/rpc"
	"github.com/repa-app/repa/testkit/frames"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// owner is a Handler made of a function.
type owner struct {
	handle func(*rpc.Call)
	closed chan error
}

func (o *owner) Handle(call *rpc.Call) { o.handle(call) }
func (o *owner) Closed(err error)      { o.closed <- err }

// serve gives the address of a server that makes a peer of each socket and hands it to accept, which returns its handler.
func serve(t testing.TB, options rpc.Options, accept func(*rpc.Peer) func(*rpc.Call)) (string, *owner) {
	t.Helper()
	o := &owner{closed: make(chan error, 1024)} // more than any test has sockets
	var running sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Done()
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		peer := rpc.New(ws, options)
		handle := accept(peer)
		_ = peer.Run(context.Background(), &owner{handle: handle, closed: o.closed})
	}))
	t.Cleanup(func() {
		server.Close()
		running.Wait()
	})
	return server.URL, o
}

// dial gives the calling end.
func dial(t testing.TB, url string, notified func(string, jsontext.Value)) *rpc.Peer {
	t.Helper()
	ws, _, err := websocket.Dial(context.Background(), strings.Replace(url, "http", "ws", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	peer := rpc.New(ws, rpc.Options{Caller: true, Notified: notified, MaxMessage: 64 << 20})
	o := &owner{handle: func(call *rpc.Call) { call.Fail(errors.New("nothing here")) }, closed: make(chan error, 1)}
	done := make(chan struct{})
	go func() { _ = peer.Run(context.Background(), o); close(done) }()
	t.Cleanup(func() {
		peer.Close(rpc.CodeNormal, "")
		<-done
	})
	return peer
}

func echo(*rpc.Peer) func(*rpc.Call) { return func(call *rpc.Call) { call.Reply(call.Params) } }

func TestCallsAndErrors(t *testing.T) {
	url, _ := serve(t, rpc.Options{}, func(*rpc.Peer) func(*rpc.Call) {
		return func(call *rpc.Call) {
			switch call.Method {
			case "echo":
				call.Reply(call.Params)
			case "nothing":
				call.Reply(nil)
			case "domain":
				call.Fail(fmt.Errorf("outer: %w", &protocol.Error{Reason: protocol.CodeNotFound, Message: "gone", Details: map[string]int{"n": 1}}))
			case "fault":
				call.Fail(protocol.NewFault(-32602, "Invalid params"))
			case "mixture":
				call.Reply(protocol.Dispatch{Kind: "start", ExpectedRunID: "x"})
			}
		}
	})
	peer := dial(t, url, nil)
	ctx := context.Background()
	if got, err := peer.Call(ctx, "echo", map[string]int{"a": 1}); err != nil || string(got) != `{"a":1}` {
		t.Errorf("%s %v", got, err)
	}
	if got, err := peer.Call(ctx, "nothing", nil); err != nil || string(got) != `null` {
		t.Errorf("%s %v", got, err)
	}
	_, err := peer.Call(ctx, "domain", nil)
	var domain *protocol.Error
	if !errors.As(err, &domain) || domain.Code() != "not_found" || domain.Message != "gone" || fmt.Sprintf("%s", domain.Details) != `{"n":1}` {
		t.Errorf("%#v", err)
	}
	for method, number := range map[string]int{"fault": -32602, "mixture": -32603} {
		_, err := peer.Call(ctx, method, nil)
		var fault *protocol.Fault
		if !errors.As(err, &fault) || fault.Number != number {
			t.Errorf("%s: %v", method, err)
		}
	}
}

func TestManyCallsAtOnce(t *testing.T) {
	url, _ := serve(t, rpc.Options{}, func(*rpc.Peer) func(*rpc.Call) {
		return func(call *rpc.Call) { go call.Reply(call.Params) }
	})
	peer := dial(t, url, nil)
	var running sync.WaitGroup
	for i := range 2000 { // far more than may be on their way at once: the others wait
		running.Go(func() {
			if got, err := peer.Call(context.Background(), "echo", i); err != nil || string(got) != fmt.Sprint(i) {
				t.Errorf("%d: %s %v", i, got, err)
			}
		})
	}
	running.Wait()
}

// counter is a source with n frames.
type counter struct{ next, n atomic.Int64 }

func (c *counter) Next() (string, any, bool) {
	if c.next.Load() >= c.n.Load() {
		return "", nil, false
	}
	return "tick", c.next.Add(1), true
}

// TestOrder wants the first frame of a source and a notification before the answer that was given after them, and every frame in order.
func TestOrder(t *testing.T) {
	url, _ := serve(t, rpc.Options{}, func(peer *rpc.Peer) func(*rpc.Call) {
		return func(call *rpc.Call) {
			source := &counter{}
			source.n.Store(100)
			if err := peer.Notify("note", "first"); err != nil {
				t.Error(err)
			}
			peer.Push(source)
			peer.Push(source)
			call.Reply("answer")
		}
	})
	socket, err := frames.Dial(url, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := socket.WriteText([]byte(`{"jsonrpc":"2.0","id":1,"method":"start"}`)); err != nil {
		t.Fatal(err)
	}
	want := []string{`{"jsonrpc":"2.0","method":"note","params":"first"}`, `{"jsonrpc":"2.0","method":"tick","params":1}`, `{"jsonrpc":"2.0","id":1,"result":"answer"}`}
	for i := 2; i <= 100; i++ {
		want = append(want, fmt.Sprintf(`{"jsonrpc":"2.0","method":"tick","params":%d}`, i))
	}
	for _, w := range want {
		got, err := socket.Read()
		if err != nil || string(got) != w {
			t.Fatalf("%s %v, want %s", got, err, w)
		}
	}
}

// TestSourcesTakeTurns wants two sources to alternate: neither starves the other.
func TestSourcesTakeTurns(t *testing.T) {
	url, _ := serve(t, rpc.Options{}, func(peer *rpc.Peer) func(*rpc.Call) {
		return func(call *rpc.Call) {
			peer.Push(&named{name: "a", n: 50})
			peer.Push(&named{name: "b", n: 50})
		}
	})
	socket, err := frames.Dial(url, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := socket.WriteText([]byte(`{"jsonrpc":"2.0","id":1,"method":"start"}`)); err != nil {
		t.Fatal(err)
	}
	// The first source may be served alone before the second is pushed; from then on they alternate until one has ended.
	const each = 50
	seen := map[string]int{}
	last := "b"
	for range 2 * each {
		got, err := socket.Read()
		if err != nil {
			t.Fatal(err)
		}
		name := "a"
		if strings.Contains(string(got), `"method":"b"`) {
			name = "b"
		}
		if seen["b"] > 0 && seen["a"] < each && seen["b"] < each && name == last {
			t.Fatalf("two frames of %s in a row after %v", name, seen)
		}
		seen[name]++
		last = name
	}
}

type named struct {
	name string
	n    int
}

func (s *named) Next() (string, any, bool) {
	s.n--
	return s.name, s.n, s.n >= 0
}

func TestCloseFlushesFirst(t *testing.T) {
	url, o := serve(t, rpc.Options{}, func(peer *rpc.Peer) func(*rpc.Call) {
		return func(call *rpc.Call) {
			for i := range 1000 {
				if err := peer.Notify("n", i); err != nil {
					t.Error(err)
				}
			}
			call.Reply("last")
			peer.Close(4002, "done")
			peer.Close(4003, "too late")
			if err := peer.Notify("n", "after"); !errors.Is(err, rpc.ErrNotSent) {
				t.Errorf("notify after close: %v", err)
			}
		}
	})
	socket, err := frames.Dial(url, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := socket.WriteText([]byte(`{"jsonrpc":"2.0","id":1,"method":"x"}`)); err != nil {
		t.Fatal(err)
	}
	count := 0
	for {
		_, err := socket.Read()
		var closed *frames.ClosedError
		if errors.As(err, &closed) {
			if count != 1001 || closed.Code != 4002 || closed.Reason != "done" {
				t.Errorf("%d messages, %v", count, closed)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		count++
	}
	<-o.closed
}

func TestSilentPeerIsCut(t *testing.T) {
	url, o := serve(t, rpc.Options{PingInterval: 20 * time.Millisecond}, echo)
	lively, err := frames.Dial(url, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer lively.Close()
	for range 5 { // answering pings keeps the socket
		_, opcode, payload, err := lively.ReadFrame()
		if err != nil || opcode != frames.OpPing {
			t.Fatalf("opcode %d, %v", opcode, err)
		}
		if err := lively.WriteFrame(true, frames.OpPong, payload); err != nil {
			t.Fatal(err)
		}
	}
	lively.Silent = true
	if _, err := lively.Read(); err == nil {
		t.Error("a socket without pongs got a message")
	}
	<-o.closed
}

func TestCallsEndWithTheSocket(t *testing.T) {
	arrived := make(chan struct{})
	url, o := serve(t, rpc.Options{}, func(peer *rpc.Peer) func(*rpc.Call) {
		return func(call *rpc.Call) {
			if call.Method == "cut" {
				<-arrived
				peer.Abort()
			} else {
				close(arrived)
			}
		}
	})
	peer := dial(t, url, nil)
	waiting := make(chan error, 1)
	go func() { _, err := peer.Call(context.Background(), "never answered", nil); waiting <- err }()
	<-arrived
	if _, err := peer.Call(context.Background(), "cut", nil); !errors.Is(err, rpc.ErrClosed) {
		t.Errorf("cut: %v", err)
	}
	if err := <-waiting; !errors.Is(err, rpc.ErrClosed) {
		t.Errorf("never answered: %v", err)
	}
	if _, err := peer.Call(context.Background(), "after", nil); !errors.Is(err, rpc.ErrNotSent) {
		t.Errorf("after: %v", err)
	}
	<-o.closed
}

func TestCallEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	url, _ := serve(t, rpc.Options{}, func(*rpc.Peer) func(*rpc.Call) {
		return func(call *rpc.Call) {
			if call.Method == "slow" {
				cancel()
				return
			}
			call.Reply(call.Params)
		}
	})
	peer := dial(t, url, nil)
	if _, err := peer.Call(ctx, "slow", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if got, err := peer.Call(context.Background(), "echo", 1); err != nil || string(got) != "1" {
		t.Errorf("the connection suffers: %s %v", got, err)
	}
}

func TestNotificationsReachTheCaller(t *testing.T) {
	url, _ := serve(t, rpc.Options{}, func(peer *rpc.Peer) func(*rpc.Call) {
		return func(call *rpc.Call) {
			for i := range 10 {
				if err := peer.Notify("n", i); err != nil {
					t.Error(err)
				}
			}
			call.Reply(nil)
		}
	})
	var got []string
	peer := dial(t, url, func(method string, params jsontext.Value) { got = append(got, string(params)) })
	if _, err := peer.Call(context.Background(), "x", nil); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != "[0 1 2 3 4 5 6 7 8 9]" {
		t.Error(got)
	}
}

func TestCallerClosesOnWhatIsNoJSON(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer ws.CloseNow()
		if err := ws.Write(context.Background(), websocket.MessageText, []byte("{not json")); err != nil {
			t.Error(err)
		}
		for err == nil { // the call of the test may come before the close
			_, _, err = ws.Read(context.Background())
		}
		if rpc.CloseCode(err) != rpc.CodeNotJSON {
			t.Errorf("closed with %v", err)
		}
	}))
	defer server.Close()
	peer := dial(t, server.URL, nil)
	if _, err := peer.Call(context.Background(), "x", nil); err == nil {
		t.Error("a call was answered by nonsense")
	}
}
