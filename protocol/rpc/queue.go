package rpc

import (
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol"
)

// Source gives notifications when the peer has room for one. Next returns false when there is nothing now; Push announces that there is
// again. A frame must stay below what the other side takes as one message: a source that has gathered much gives it in pieces. Next is called from the peer's writing goroutine, never twice at once; a jsontext.Value as params is taken as encoded already.
// A Source is identified by ==, so it is usually a pointer.
type Source interface {
	Next() (method string, params any, ok bool)
}

// queue is what waits to be written, in order. It is bounded by the bytes of its frames; a source counts nothing.
type queue struct {
	mu      sync.Mutex
	items   []item
	head    int
	pushed  map[Source]struct{}
	bytes   int
	closing *closing
	ended   bool
	wake    chan struct{} // holds one token while there may be something to do
}

type item struct {
	frame  []byte
	source Source
}

type closing struct {
	code   int
	reason string
}

func newQueue() *queue {
	return &queue{pushed: map[Source]struct{}{}, wake: make(chan struct{}, 1)}
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// add queues a frame. It says false when the peer is closing; a frame that is one too many for a slow reader starts that closing.
func (q *queue) add(frame []byte) (ok, overflow bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing != nil || q.ended {
		return false, false
	}
	// A frame alone may have any size: a large answer to a reader that keeps up is no backlog.
	if q.bytes > 0 && q.bytes+len(frame) > MaxBacklog {
		q.items, q.head = nil, 0
		q.closing = &closing{CodeResynchronize, "resynchronize"}
		q.signal()
		return false, true
	}
	q.bytes += len(frame)
	q.items = append(q.items, item{frame: frame})
	q.signal()
	return true, false
}

func (q *queue) push(source Source) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, queued := q.pushed[source]; queued || q.closing != nil || q.ended {
		return
	}
	q.pushed[source] = struct{}{}
	q.items = append(q.items, item{source: source})
	q.signal()
}

// close lets what is queued go out first.
func (q *queue) close(code int, reason string) (first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing != nil || q.ended {
		return false
	}
	q.closing = &closing{code, reason}
	q.signal()
	return true
}

// end drops everything: the socket is gone.
func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended, q.items, q.head, q.pushed = true, nil, 0, nil
}

// next takes the first item. Without one it says how the peer is closing, if it is.
func (q *queue) next() (item, *closing, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
		return item{}, q.closing, false
	}
	first := q.items[q.head]
	q.items[q.head] = item{}
	q.head++
	if q.head >= 1024 && q.head*2 >= len(q.items) { // a queue that never runs empty must not grow at its front
		q.items, q.head = append(q.items[:0], q.items[q.head:]...), 0
	}
	if first.source != nil {
		// From here on a Push queues it again: what comes during Next must not be lost.
		delete(q.pushed, first.source)
	}
	return first, nil, true
}

// written gives the room of a frame back.
func (q *queue) written(size int) {
	q.mu.Lock()
	q.bytes -= size
	q.mu.Unlock()
}

// pull asks a source for one frame and queues it again behind what has come since.
func (q *queue) pull(source Source) ([]byte, error) {
	method, params, ok := source.Next()
	if !ok {
		return nil, nil
	}
	frame, err := notification(method, params)
	if err != nil {
		return nil, err
	}
	q.push(source)
	return frame, nil
}

func notification(method string, params any) ([]byte, error) {
	raw, err := protocol.Encode(params)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(`{"jsonrpc":"2.0","method":"","params":}`)+len(method)+len(raw))
	b = append(b, `{"jsonrpc":"2.0","method":`...)
	if b, err = jsontext.AppendQuote(b, method); err != nil {
		return nil, err
	}
	b = append(b, `,"params":`...)
	return append(append(b, raw...), '}'), nil
}

func (q *queue) isClosing() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closing != nil || q.ended
}
