package rpc

import (
	"bytes"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol"
)

// message is one JSON-RPC object as it came in. Its texts do not share memory with the frame.
type message struct {
	id      jsontext.Value // nil when there is none
	method  string
	params  jsontext.Value
	result  jsontext.Value
	failure jsontext.Value
	form    form
}

type form uint8

const (
	formInvalid form = iota
	formCall
	formNotification
	formAnswer
)

// frame is one WebSocket message: a single object or a batch.
type frame struct {
	messages []message
	batch    bool
}

// maxBatch is as many calls as can be unanswered at once: a longer batch could only be answered with busy, at many times its own size.
const maxBatch = maxInFlight

var (
	errParse = protocol.NewFault(protocol.NumberParse, "Parse error")
	errShape = protocol.NewFault(protocol.NumberInvalidRequest, "Invalid Request")
)

// parse reads a whole frame before anything of it is acted upon. Text that is not JSON (with a duplicate name or invalid UTF-8
// anywhere, too) is errParse; an empty or too long batch is errShape. Objects that are no request are formInvalid. The decoder is only lent, to be
// used for the next frame again.
func parse(dec *jsontext.Decoder, text []byte) (frame, *protocol.Fault) {
	dec.Reset(bytes.NewBuffer(text))
	var f frame
	if dec.PeekKind() == '[' {
		f.batch = true
		if _, err := dec.ReadToken(); err != nil {
			return frame{}, errParse
		}
		count := 0
		for kind := dec.PeekKind(); kind != ']'; kind = dec.PeekKind() {
			m, err := parseMessage(dec)
			if err != nil {
				return frame{}, errParse
			}
			if count++; count <= maxBatch {
				f.messages = append(f.messages, m)
			}
		}
		if _, err := dec.ReadToken(); err != nil {
			return frame{}, errParse
		}
		if count == 0 || count > maxBatch {
			return frame{}, onlyIfEnded(dec)
		}
	} else {
		m, err := parseMessage(dec)
		if err != nil {
			return frame{}, errParse
		}
		f.messages = []message{m}
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return frame{}, errParse
	}
	return f, nil
}

func onlyIfEnded(dec *jsontext.Decoder) *protocol.Fault {
	if _, err := dec.ReadToken(); err != io.EOF {
		return errParse
	}
	return errShape
}

// parseMessage fails only on text that is not JSON.
func parseMessage(dec *jsontext.Decoder) (message, error) {
	if dec.PeekKind() != '{' {
		return message{}, dec.SkipValue()
	}
	if _, err := dec.ReadToken(); err != nil {
		return message{}, err
	}
	var m message
	version, named, broken := false, false, false
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return message{}, err
		}
		field := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return message{}, err
		}
		switch field {
		case "jsonrpc":
			version = string(value) == `"2.0"`
		case "id":
			kind := value.Kind()
			broken = broken || kind != '"' && kind != '0' && kind != 'n'
			m.id = value.Clone()
		case "method":
			if named = value.Kind() == '"'; !named {
				broken = true
				continue
			}
			text, err := jsontext.AppendUnquote(nil, value)
			if err != nil {
				return message{}, err
			}
			m.method = string(text)
		case "params":
			m.params = value.Clone()
		case "result":
			m.result = value.Clone()
		case "error":
			m.failure = value.Clone()
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return message{}, err
	}
	m.form = m.classify(version && !broken, named)
	return m, nil
}

func (m message) classify(sound, named bool) form {
	switch {
	case !sound:
		return formInvalid
	case named && m.id == nil:
		return formNotification
	case named:
		return formCall
	case m.id != nil && (m.result == nil) != (m.failure == nil):
		return formAnswer
	}
	return formInvalid
}
