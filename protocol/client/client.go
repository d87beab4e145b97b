package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/rpc"
)

const (
	callTimeout    = 15 * time.Second       // fixed by version 1
	reconnectFirst = 250 * time.Millisecond // fixed by version 1; doubled while it fails
	reconnectMost  = 5 * time.Second        // so that a backend that is back is found soon
	detachTimeout  = 2 * time.Second        // for the confirmation of client.detach: the server drops the host by itself in 3 s
	maxMessage     = 64 << 20               // a snapshot may be larger than what a server takes in
)

var (
	// ErrOutcomeUnknown says that a call went out and its answer did not come: it may have been carried out or not.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrNotConnected says that a call did not go out.
	ErrNotConnected = errors.New("not connected to the backend")
)

// Options of a Client. URL and Token are required.
type Options struct {
	URL     string // of the server, for example http://127.0.0.1:4711
	Token   string
	HostKey protocol.HostKey // of an earlier client, to be the same host again; empty for a new host
	// OnClose is called once when the client is disconnected for good, with the reason (nil after Close and Drop). It must not call
	// Close or Drop: those wait for it.
	OnClose func(err error)
}

// Client is a connection to a backend that renews itself.
type Client struct {
	options Options
	stop    context.CancelFunc
	running sync.WaitGroup
	ended   chan struct{} // closed when the client is disconnected for good

	mu       sync.Mutex
	link     *link
	changed  chan struct{} // closed and replaced when link changes
	server   protocol.InitializeResult
	replicas map[protocol.ID]*Replica
	lastID   int
	reason   error
	leaving  bool // Close has begun: the end of the link is wanted
}

// link is one WebSocket of a Client.
type link struct {
	peer *rpc.Peer
	done chan struct{}
	err  error // of its end, to be read after done
}

// Handle implements rpc.Handler: a server calls nothing at a client.
func (l *link) Handle(call *rpc.Call) {
	call.Fail(protocol.NewFault(protocol.NumberUnknownMethod, "Method not found"))
}

// Closed implements rpc.Handler.
func (l *link) Closed(err error) {
	l.err = err
	close(l.done)
}

// Dial connects and initializes. It fails when that does not work the first time.
func Dial(ctx context.Context, options Options) (*Client, error) {
	ctx, cancel := withTimeout(ctx)
	defer cancel()
	life, stop := context.WithCancel(context.Background())
	c := &Client{options: options, stop: stop, ended: make(chan struct{}), changed: make(chan struct{}), replicas: map[protocol.ID]*Replica{}}
	first, err := c.connect(ctx)
	if err != nil {
		stop()
		c.running.Wait()
		return nil, fmt.Errorf("connect to %s: %w", options.URL, err)
	}
	c.setLink(first)
	c.running.Go(func() { c.live(life, first) })
	return c, nil
}

func withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, callTimeout)
}

// Server tells who answered the last initialize, and as which host.
func (c *Client) Server() protocol.InitializeResult {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server
}

// connect opens a socket and initializes it. Its goroutine ends with the socket.
func (c *Client) connect(ctx context.Context) (*link, error) {
	ws, _, err := websocket.Dial(ctx, strings.Replace(c.options.URL, "http", "ws", 1)+"/rpc", &websocket.DialOptions{
		CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		return nil, err
	}
	l := &link{done: make(chan struct{})}
	l.peer = rpc.New(ws, rpc.Options{Caller: true, MaxMessage: maxMessage, Notified: c.notified})
	c.running.Go(func() { _ = l.peer.Run(context.Background(), l) }) // the error is kept by Closed
	c.mu.Lock()
	key := c.options.HostKey
	c.mu.Unlock()
	raw, err := l.peer.Call(ctx, protocol.Initialize.Name, protocol.InitializeParams{
		Versions: []protocol.Int{protocol.Version}, Token: c.options.Token, HostKey: key,
	})
	if err == nil {
		err = c.greeted(raw)
	}
	if err != nil {
		l.peer.Abort()
		<-l.done
		return nil, err
	}
	return l, nil
}

func (c *Client) greeted(raw jsontext.Value) error {
	result, err := protocol.Decode[protocol.InitializeResult](raw)
	if err != nil {
		return badResult(protocol.Initialize.Name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server, c.options.HostKey = result, protocol.HostKey(result.HostKey)
	return nil
}

// live follows one link after the other until there is to be none.
func (c *Client) live(life context.Context, l *link) {
	err := c.follow(life, l)
	c.mu.Lock()
	c.reason = err
	replicas := c.replicas
	c.replicas = nil
	c.mu.Unlock()
	for _, r := range replicas {
		r.end()
	}
	close(c.ended)
	if c.options.OnClose != nil {
		c.options.OnClose(err)
	}
}

func (c *Client) follow(life context.Context, l *link) error {
	for {
		select {
		case <-l.done:
		case <-life.Done():
			l.peer.Abort()
			<-l.done
		}
		c.setLink(nil)
		if life.Err() != nil || c.isLeaving() {
			return nil
		}
		if rpc.CloseCode(l.err) == rpc.CodeNormal {
			return fmt.Errorf("backend ended the connection: %w", l.err)
		}
		var err error
		if l, err = c.reconnect(life); err != nil {
			return err
		}
		if l == nil {
			return nil
		}
	}
}

// reconnect tries until it works, is refused for good or life ends (then both results are nil).
func (c *Client) reconnect(life context.Context) (*link, error) {
	for pause := reconnectFirst; ; pause = min(2*pause, reconnectMost) {
		// Front ends that lost the same backend must not all come back in the same moment.
		timer := time.NewTimer(pause + rand.N(pause/2))
		select {
		case <-timer.C:
		case <-life.Done():
			timer.Stop()
			return nil, nil
		}
		ctx, cancel := context.WithTimeout(life, callTimeout)
		l, err := c.connect(ctx)
		if err == nil {
			err = c.resume(ctx, l)
		}
		cancel()
		if err == nil {
			c.setLink(l)
			return l, nil
		}
		var fault *protocol.Fault
		if errors.As(err, &fault) && (fault.Number == protocol.NumberUnauthorised || fault.Number == protocol.NumberVersion) {
			return nil, fmt.Errorf("backend refuses this client: %w", err)
		}
	}
}

// resume starts every replica again at its last cursor, before calls may use the link.
func (c *Client) resume(ctx context.Context, l *link) error {
	c.mu.Lock()
	replicas := make([]*Replica, 0, len(c.replicas))
	for _, r := range c.replicas {
		replicas = append(replicas, r)
	}
	c.mu.Unlock()
	for _, r := range replicas {
		if _, err := l.peer.Call(ctx, protocol.SubscriptionStart.Name, r.subscription()); err != nil {
			l.peer.Abort()
			<-l.done
			return err
		}
	}
	return nil
}

func (c *Client) setLink(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link = l
	close(c.changed)
	c.changed = make(chan struct{})
}

// connected waits for a link that is another one than ended.
func (c *Client) connected(ctx context.Context, ended *link) (*link, error) {
	for {
		c.mu.Lock()
		l, changed := c.link, c.changed
		c.mu.Unlock()
		if l != nil && l != ended {
			return l, nil
		}
		select {
		case <-changed:
		case <-c.ended:
			c.mu.Lock()
			reason := c.reason
			c.mu.Unlock()
			if reason == nil {
				return nil, ErrNotConnected
			}
			return nil, fmt.Errorf("%w: %w", ErrNotConnected, reason)
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrNotConnected, ctx.Err())
		}
	}
}

// Call makes a call of the protocol and reads its result strictly. initialize, subscription.start, subscription.stop and client.detach belong to the
// client itself.
//
// Failures: ErrNotConnected (it did not go out), ErrOutcomeUnknown (no answer), *protocol.Error (the domain refused), *protocol.Fault (the
// other errors of JSON-RPC, also a result that does not fit).
func Call[P, R any](ctx context.Context, c *Client, method *protocol.Call[P, R], params P) (R, error) {
	var none R
	raw, err := c.call(ctx, method.Name, params)
	if err != nil {
		return none, err
	}
	result, err := protocol.Decode[R](raw)
	if err != nil {
		return none, badResult(method.Name, err)
	}
	return result, nil
}

func badResult(method string, err error) error {
	return protocol.NewFault(protocol.NumberInternal, "The backend's result of %s does not fit the protocol: %v", method, err)
}

func (c *Client) call(ctx context.Context, method string, params any) (jsontext.Value, error) {
	ctx, cancel := withTimeout(ctx)
	defer cancel()
	var l *link
	for {
		var err error
		if l, err = c.connected(ctx, l); err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		raw, err := l.peer.Call(ctx, method, params)
		switch {
		case errors.Is(err, rpc.ErrNotSent) && ctx.Err() == nil:
			continue // this link has just ended: what did not go out may wait for the next one
		case errors.Is(err, rpc.ErrNotSent):
			return nil, fmt.Errorf("%s: %w: %w", method, ErrNotConnected, err)
		case errors.Is(err, rpc.ErrClosed), ctx.Err() != nil && errors.Is(err, ctx.Err()):
			return nil, fmt.Errorf("%s: %w: %w", method, ErrOutcomeUnknown, err)
		}
		return raw, err
	}
}

// Close detaches the host, so that the backend drops its uploads and holds at once, and ends the client. It fails when the backend did not confirm;
// the client has ended all the same.
func (c *Client) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, detachTimeout)
	defer cancel()
	c.mu.Lock()
	c.leaving = true
	l := c.link
	c.mu.Unlock()
	var err error
	if l != nil {
		_, err = l.peer.Call(ctx, protocol.ClientDetach.Name, protocol.Empty{})
	}
	c.Drop()
	if err != nil {
		return fmt.Errorf("detach: %w", err)
	}
	return nil
}

// Drop cuts the connection and ends the client. The backend keeps the host for a few seconds.
func (c *Client) Drop() {
	c.stop()
	c.running.Wait()
}

func (c *Client) isLeaving() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leaving
}

// renew cuts the link, so that the client comes back on a new one.
func (c *Client) renew() {
	c.mu.Lock()
	l := c.link
	c.mu.Unlock()
	if l != nil {
		l.peer.Abort()
	}
}

// notified takes in a delivery. What does not fit the protocol is treated as lost: the replica sees the gap at the next one.
func (c *Client) notified(method string, params jsontext.Value) {
	if method != protocol.UpdateNotification {
		return
	}
	update, err := protocol.Decode[protocol.SubscriptionUpdate](params)
	if err != nil {
		return
	}
	c.mu.Lock()
	r := c.replicas[update.ID]
	c.mu.Unlock()
	if r != nil {
		r.deliver(update.Delivery)
	}
}
