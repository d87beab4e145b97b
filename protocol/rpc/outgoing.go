package rpc

import (
	"context"
	"fmt"
	"strconv"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol"
)

// Call makes a call and waits for its answer. At most as many calls are on their way as the other side takes; further ones wait here.
//
// It fails with ErrNotSent when the call did not go out, with the error of ctx when that ended first, with ErrClosed when the socket was
// lost (in both cases nobody knows whether the call was carried out), and otherwise as protocol.ErrorOf says.
func (p *Peer) Call(ctx context.Context, method string, params any) (jsontext.Value, error) {
	raw, err := protocol.Encode(params)
	if err != nil {
		return nil, fmt.Errorf("encode params of %s: %w", method, err)
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrNotSent, ctx.Err())
	}
	id, reply, err := p.expect()
	if err != nil {
		return nil, err
	}
	defer p.forget(id)
	frame, err := request(id, method, raw)
	if err != nil {
		return nil, err
	}
	if !p.send(frame) {
		return nil, ErrNotSent
	}
	select {
	case got, ok := <-reply:
		if !ok {
			return nil, ErrClosed
		}
		return got.value()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func request(id uint64, method string, params jsontext.Value) ([]byte, error) {
	b := make([]byte, 0, len(`{"jsonrpc":"2.0","id":,"method":"","params":}`)+20+len(method)+len(params))
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendUint(b, id, 10)
	b = append(b, `,"method":`...)
	b, err := jsontext.AppendQuote(b, method)
	if err != nil {
		return nil, fmt.Errorf("method name: %w", err)
	}
	b = append(b, `,"params":`...)
	return append(append(b, params...), '}'), nil
}

func (p *Peer) expect() (uint64, chan answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return 0, nil, ErrNotSent
	}
	p.lastID++
	reply := make(chan answer, 1)
	p.pending[p.lastID] = reply
	return p.lastID, reply, nil
}

func (p *Peer) forget(id uint64) {
	p.mu.Lock()
	delete(p.pending, id)
	p.mu.Unlock()
}

// resolve hands an answer to the call that waits for it. Answers that nobody waits for are dropped: their call has given up.
func (p *Peer) resolve(m message) {
	id, err := strconv.ParseUint(string(m.id), 10, 64)
	if err != nil {
		return
	}
	p.mu.Lock()
	reply := p.pending[id]
	delete(p.pending, id)
	p.mu.Unlock()
	if reply != nil {
		reply <- answer{m.result, m.failure}
	}
}

// abandon ends every call that still waits.
func (p *Peer) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	for id, reply := range p.pending {
		close(reply)
		delete(p.pending, id)
	}
}

func (a answer) value() (jsontext.Value, error) {
	if a.failure == nil {
		return a.result, nil
	}
	var fault protocol.Fault
	if err := json.Unmarshal(a.failure, &fault); err != nil || fault.Number == 0 {
		return nil, protocol.NewFault(protocol.NumberInternal, "the other side sent an error that is none")
	}
	return nil, protocol.ErrorOf(&fault)
}

// CloseCode gives the code with which the other side closed the socket, or -1 when it did not say.
func CloseCode(err error) int { return int(websocket.CloseStatus(err)) }
