package protocol

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol/internal/shape"
)

// Decode reads a wire value strictly. The error says where and what is wrong; the value is then zero.
func Decode[T any](text []byte) (T, error) {
	var value, zero T
	if err := shape.For[T]().Check(text); err != nil {
		return zero, err
	}
	if err := json.Unmarshal(text, &value); err != nil {
		return zero, err
	}
	return value, nil
}

// Encode writes a wire value. It fails on a union that mixes variants; it does not check limits, as Validate does. Bytes that are no
// UTF-8, as a file name may have, go out as the replacement character.
func Encode(value any) (jsontext.Value, error) {
	if raw, ok := value.(jsontext.Value); ok {
		return raw, nil
	}
	return json.Marshal(value, jsontext.AllowInvalidUTF8(true))
}

// validate is what every Validate method does.
func validate[T any](value T) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return shape.For[T]().Check(text)
}

// Canonical gives the one text that all equal JSON values share (RFC 8785: sorted names, shortest numbers).
func Canonical(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode value: %w", err)
	}
	raw := jsontext.Value(text)
	if err := raw.Canonicalize(); err != nil {
		return nil, fmt.Errorf("canonical form: %w", err)
	}
	return raw, nil
}

// Equal says whether two submissions are the same payload: equal as JSON, whatever the order of members and the spelling of numbers
// and strings. Submissions that cannot be encoded equal nothing.
func Equal(a, b Submit) bool {
	left, err := Canonical(a)
	if err != nil {
		return false
	}
	right, err := Canonical(b)
	return err == nil && bytes.Equal(left, right)
}

// ChangesUpdate builds the params of a subscription.update from changes that are encoded already, so that one encoding serves all
// subscribers. The texts are trusted: they come from Encode.
func ChangesUpdate(id ID, previousCursor, cursor string, changes []jsontext.Value) jsontext.Value {
	size := 128 + len(id) + len(previousCursor) + len(cursor)
	for _, change := range changes {
		size += len(change) + 1
	}
	b := make([]byte, 0, size)
	b = append(b, `{"id":`...)
	b = quote(b, string(id))
	b = append(b, `,"delivery":{"type":"changes","previousCursor":`...)
	b = quote(b, previousCursor)
	b = append(b, `,"cursor":`...)
	b = quote(b, cursor)
	b = append(b, `,"changes":[`...)
	for i, change := range changes {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, change...)
	}
	return append(b, `]}}`...)
}

// SnapshotUpdate builds the params of a subscription.update from a snapshot that is encoded already.
func SnapshotUpdate(id ID, cursor string, snapshot jsontext.Value) jsontext.Value {
	b := make([]byte, 0, 96+len(id)+len(cursor)+len(snapshot))
	b = append(b, `{"id":`...)
	b = quote(b, string(id))
	b = append(b, `,"delivery":{"type":"snapshot","cursor":`...)
	b = quote(b, cursor)
	b = append(b, `,"snapshot":`...)
	b = append(b, snapshot...)
	return append(b, `}}`...)
}

func quote(b []byte, text string) []byte {
	quoted, err := jsontext.AppendQuote(b, text)
	if err != nil { // invalid UTF-8, which no id or cursor of ours holds; AppendQuote has put the replacement character
		return quoted
	}
	return quoted
}
