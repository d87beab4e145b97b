package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol"
)

// Limits of version 1 and of this implementation.
const (
	MaxMessage  = 8 << 20 // bytes of one inbound message; fixed by version 1
	MaxBacklog  = 8 << 20 // bytes of unsent frames; fixed by version 1
	maxInFlight = 256     // unanswered calls: far above what a front end needs, far below what would hurt

	pingInterval = 30 * time.Second // fixed by version 1
	writeTimeout = 30 * time.Second // a reader that takes nothing for as long as a ping may stay unanswered is gone
	closeTimeout = 5 * time.Second  // for flushing before a close: as long as the WebSocket library waits for the other side's close
	keepBuffer   = 64 << 10         // a read buffer that once held a large message is not kept
)

// Close codes of version 1.
const (
	CodeNormal        = 1000 // detached or stopped: do not reconnect
	CodeNotJSON       = 1002 // sent by a client to a server that does not speak JSON
	CodeUnsupported   = 1003 // a binary message
	CodeResynchronize = 1013 // too much unsent: reconnect and resynchronise
	CodeNoInitialize  = 4001
)

var (
	// ErrClosed ends a Call whose answer will not come: whether it was carried out is unknown.
	ErrClosed = errors.New("connection closed before the answer came")
	// ErrNotSent ends a Call that did not go out.
	ErrNotSent = errors.New("connection is closed")
	// ErrSlowReader is the end of a peer that left too much unread.
	ErrSlowReader = errors.New("other side reads too slowly")
)

// Handler owns a peer.
type Handler interface {
	// Handle gets each call in the order in which it came. It must not block; the answer may come later and from elsewhere.
	Handle(call *Call)
	// Closed is called once, when the socket is gone and no further Handle comes.
	Closed(err error)
}

// Options of a peer. The zero value is a server's.
type Options struct {
	// Caller says that this end makes calls: answers are matched, and a frame that is not JSON closes the socket with 1002.
	// Otherwise everything that is no call is refused.
	Caller bool
	// Notified gets incoming notifications, in order, on the reading goroutine. Without it they are dropped.
	Notified func(method string, params jsontext.Value)
	// MaxMessage is the size of the largest inbound message; 0 stands for MaxMessage.
	MaxMessage int64
	// PingInterval is for tests; 0 stands for the 30 s of version 1.
	PingInterval time.Duration
}

// Peer is one end of a WebSocket.
type Peer struct {
	ws       *websocket.Conn
	options  Options
	out      *queue
	inFlight atomic.Int64
	watchdog *time.Timer
	slow     atomic.Bool

	mu      sync.Mutex
	pending map[uint64]chan answer
	lastID  uint64
	over    bool
	slots   chan struct{}
}

type answer struct {
	result  jsontext.Value
	failure jsontext.Value
}

// New makes a peer of an open WebSocket. Frames may be queued at once; they go out when Run runs.
func New(ws *websocket.Conn, options Options) *Peer {
	if options.MaxMessage == 0 {
		options.MaxMessage = MaxMessage
	}
	if options.PingInterval == 0 {
		options.PingInterval = pingInterval
	}
	ws.SetReadLimit(options.MaxMessage)
	p := &Peer{ws: ws, options: options, out: newQueue(), pending: map[uint64]chan answer{}, slots: make(chan struct{}, maxInFlight)}
	p.watchdog = time.AfterFunc(writeTimeout, p.Abort)
	p.watchdog.Stop()
	return p
}

// Run reads, writes and pings until the socket is gone, then calls handler.Closed and returns its error. Cancelling ctx closes
// the socket with 1000.
func (p *Peer) Run(ctx context.Context, handler Handler) error {
	stop := context.AfterFunc(ctx, func() { p.Close(CodeNormal, "stopped") })
	defer stop()
	over, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { p.write(over) })
	running.Go(func() { p.ping(over) })
	err := p.read(handler)
	if p.slow.Load() {
		err = ErrSlowReader
	}
	p.out.end()
	cancel()
	if errors.Is(err, websocket.ErrMessageTooBig) {
		// The library has sent the close frame; waiting for the other side's lets it read that frame before the socket goes.
		_ = p.ws.Close(websocket.StatusMessageTooBig, "")
	}
	p.Abort()
	running.Wait()
	p.watchdog.Stop()
	p.abandon()
	handler.Closed(err)
	return err
}

// Close closes the socket after everything that is queued has gone out, within a few seconds. Only the first close counts.
func (p *Peer) Close(code int, reason string) {
	if p.out.close(code, reason) {
		p.limitClosing()
	}
}

func (p *Peer) limitClosing() { p.watchdog.Reset(closeTimeout) }

// Abort cuts the socket at once.
func (p *Peer) Abort() { _ = p.ws.CloseNow() } // it only fails when the socket is gone already, which is what is asked for

// Notify queues a notification. It fails when params cannot be encoded or the peer is closing.
func (p *Peer) Notify(method string, params any) error {
	frame, err := notification(method, params)
	if err != nil {
		return fmt.Errorf("encode notification %s: %w", method, err)
	}
	if !p.send(frame) {
		return ErrNotSent
	}
	return nil
}

// Push queues a source unless it is queued already.
func (p *Peer) Push(source Source) { p.out.push(source) }

func (p *Peer) send(frame []byte) bool {
	ok, overflow := p.out.add(frame)
	if overflow {
		p.slow.Store(true)
		p.limitClosing()
	}
	return ok
}

func (p *Peer) write(over context.Context) {
	for {
		next, closing, ok := p.out.next()
		switch {
		case ok:
			if err := p.writeItem(next); err != nil {
				p.Abort()
				return
			}
		case closing != nil:
			p.watchdog.Stop() // the library limits the handshake itself
			_ = p.ws.Close(websocket.StatusCode(closing.code), closing.reason)
			return
		default:
			select {
			case <-over.Done():
				return
			case <-p.out.wake:
			}
		}
	}
}

// writeItem writes one frame under the watchdog: a context with a deadline would do the same at several times the cost.
func (p *Peer) writeItem(next item) error {
	frame := next.frame
	if next.source != nil {
		var err error
		if frame, err = p.out.pull(next.source); err != nil || frame == nil {
			return err
		}
	}
	closing := p.out.isClosing()
	if !closing {
		p.watchdog.Reset(writeTimeout)
	}
	err := p.ws.Write(context.Background(), websocket.MessageText, frame)
	if !closing && p.watchdog.Stop() && p.out.isClosing() {
		p.limitClosing() // the close came during the write and had set its own, shorter limit
	}
	if next.source == nil {
		p.out.written(len(frame))
	}
	return err
}

func (p *Peer) ping(over context.Context) {
	tick := time.NewTicker(p.options.PingInterval)
	defer tick.Stop()
	for {
		select {
		case <-over.Done():
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(over, p.options.PingInterval)
		err := p.ws.Ping(ctx)
		cancel()
		if err != nil {
			p.Abort()
			return
		}
	}
}

func (p *Peer) read(handler Handler) error {
	var buffer bytes.Buffer
	var dec jsontext.Decoder
	for {
		kind, reader, err := p.ws.Reader(context.Background())
		if err != nil {
			return err
		}
		if buffer.Cap() > keepBuffer {
			buffer = bytes.Buffer{}
		}
		buffer.Reset()
		if _, err := buffer.ReadFrom(reader); err != nil {
			return err
		}
		if kind != websocket.MessageText {
			p.Close(CodeUnsupported, "text messages only")
			continue
		}
		p.receive(&dec, buffer.Bytes(), handler)
	}
}

// receive acts on one frame. After a close has begun nothing more is taken in.
func (p *Peer) receive(dec *jsontext.Decoder, text []byte, handler Handler) {
	if p.out.isClosing() {
		return
	}
	f, fault := parse(dec, text)
	if fault != nil && p.options.Caller {
		p.Close(CodeNotJSON, "not JSON-RPC")
		return
	}
	if fault != nil {
		p.send(refusal(fault))
		return
	}
	var group *batch
	if f.batch {
		group = &batch{}
		for _, m := range f.messages {
			if p.answers(m) {
				group.missing++
			}
		}
	}
	for _, m := range f.messages {
		p.dispatch(m, group, handler)
	}
}

// answers says whether a message gets an answer.
func (p *Peer) answers(m message) bool {
	return m.form == formCall || !p.options.Caller && (m.form == formInvalid || m.form == formAnswer)
}

func (p *Peer) dispatch(m message, group *batch, handler Handler) {
	switch {
	case m.form == formNotification:
		if p.options.Notified != nil {
			p.options.Notified(m.method, m.params)
		}
	case m.form == formCall:
		call := &Call{Method: m.method, Params: m.params, peer: p, id: m.id, batch: group}
		if p.inFlight.Add(1) > maxInFlight {
			p.inFlight.Add(-1)
			call.Fail(protocol.Errorf(protocol.CodeBusy, "this connection has %d unanswered calls; wait for some of them", maxInFlight))
			return
		}
		call.counted = true
		handler.Handle(call)
	case p.options.Caller:
		if m.form == formAnswer {
			p.resolve(m)
		}
	case group != nil:
		group.add(p, refusal(errShape))
	default:
		p.send(refusal(errShape))
	}
}
