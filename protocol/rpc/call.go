package rpc

import (
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol"
)

// Call is one incoming call. Whoever holds it answers it once, by Reply or Fail, from any goroutine; the first answer counts and
// further ones are ignored. An answer to a closed peer goes nowhere.
type Call struct {
	Method string
	Params jsontext.Value // nil when absent

	peer     *Peer
	id       jsontext.Value
	batch    *batch
	counted  bool
	answered atomic.Bool
}

// Reply answers with a result. A jsontext.Value is taken as encoded already and not looked at again; any other value is encoded
// here. A result that cannot be encoded becomes an internal error.
func (c *Call) Reply(result any) {
	raw, err := protocol.Encode(result)
	if err != nil {
		c.Fail(err)
		return
	}
	c.answer(func(b []byte) []byte {
		b = append(b, `,"result":`...)
		if len(raw) == 0 {
			return append(b, "null"...)
		}
		return append(b, raw...)
	}, len(raw))
}

// Fail answers with an error, as protocol.FaultOf turns it into one.
func (c *Call) Fail(err error) {
	raw := encodeFault(protocol.FaultOf(err))
	c.answer(func(b []byte) []byte { return append(append(b, `,"error":`...), raw...) }, len(raw))
}

func (c *Call) answer(body func([]byte) []byte, size int) {
	if c.answered.Swap(true) {
		return
	}
	if c.counted {
		c.peer.inFlight.Add(-1)
	}
	b := make([]byte, 0, len(`{"jsonrpc":"2.0","id":,"result":}`)+len(c.id)+size)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, c.id...)
	b = append(body(b), '}')
	if c.batch != nil {
		c.batch.add(c.peer, b)
		return
	}
	c.peer.send(b)
}

// encodeFault writes an error object. A fault whose data is not JSON becomes an internal error.
func encodeFault(f *protocol.Fault) jsontext.Value {
	raw, err := protocol.Encode(f)
	if err != nil {
		raw, _ = protocol.Encode(protocol.FaultOf(err)) // numbers and fixed text always encode
	}
	return raw
}

// refusal is the whole frame for a request that cannot be answered under its own id.
func refusal(f *protocol.Fault) []byte {
	b := append([]byte(nil), `{"jsonrpc":"2.0","id":null,"error":`...)
	return append(append(b, encodeFault(f)...), '}')
}

// batch gathers the answers of one batch and sends them as one array when the last is in.
type batch struct {
	mu      sync.Mutex
	missing int
	out     []byte
}

func (b *batch) add(p *Peer, answer []byte) {
	b.mu.Lock()
	if len(b.out) == 0 {
		b.out = append(b.out, '[')
	} else {
		b.out = append(b.out, ',')
	}
	b.out = append(b.out, answer...)
	b.missing--
	whole := b.missing == 0
	b.mu.Unlock()
	if whole {
		p.send(append(b.out, ']'))
	}
}
