package protocol

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol/internal/shape"
)

// ID names a space, session, request, run, host, connection or anything else that has a name of its own: 1 to 128 of the
// characters A-Z a-z 0-9 _ and -.
type ID string

const idPattern = "^[a-zA-Z0-9_-]+$"

// maxID is the version-1 limit: long enough for every digest and path-safe on every file system.
const maxID = 128

// ShapeText states the rule of an ID to the shape check.
func (ID) ShapeText() shape.Text {
	return shape.Text{Min: 1, Max: maxID, Pattern: idPattern, Match: idCharacters}
}

// Valid says whether the text fits the rule of an ID.
func (id ID) Valid() bool {
	return len(id) >= 1 && len(id) <= maxID && idCharacters([]byte(id))
}

func idCharacters(text []byte) bool {
	for _, c := range text {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return len(text) > 0
}

// Revision names one state of something. It is never empty and means nothing beyond equality.
type Revision string

// ShapeText states the rule of a Revision to the shape check.
func (Revision) ShapeText() shape.Text { return shape.Text{Min: 1} }

// NullRevision is a Revision or null; nil is null.
type NullRevision = *Revision

// HostKey is the secret of a front-end host: 64 lower-case hexadecimal digits.
type HostKey string

// ShapeText states the rule of a HostKey to the shape check.
func (HostKey) ShapeText() shape.Text {
	return shape.Text{Min: 64, Max: 64, Pattern: "^[a-f0-9]{64}$", Match: func(text []byte) bool {
		for _, c := range text {
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
		return true
	}}
}

// Millis is a point in time: milliseconds since 1970 in UTC. The wire calls it a number, so a fraction may come in.
type Millis float64

// MillisOf drops what is finer than a millisecond.
func MillisOf(t time.Time) Millis { return Millis(t.UnixMilli()) }

// Time gives the same moment as a time.Time, without the fraction.
func (m Millis) Time() time.Time { return time.UnixMilli(int64(m)) }

// Int is a whole number between -2^53 and 2^53, the range that every JSON reader keeps. It reads 1.0 and 1e2 as whole, as JSON Schema does.
type Int int64

// UnmarshalJSONFrom refuses fractions and what is out of range.
func (n *Int) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if exact, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		*n = Int(exact)
		return nil
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return fmt.Errorf("%s is no whole number", raw)
	}
	*n = Int(f)
	return nil
}

// Nullable is an optional member that may also be null: absent, null and a value are three different things.
// The zero value is absent.
type Nullable[T any] struct {
	Present bool
	Value   *T // nil is null
}

// IsZero makes an absent member disappear from the text.
func (n Nullable[T]) IsZero() bool { return !n.Present }

// ShapeOf states the rule of a Nullable to the shape check: T or null.
func (Nullable[T]) ShapeOf() reflect.Type { return reflect.TypeFor[T]() }

// MarshalJSONTo writes null or the value.
func (n Nullable[T]) MarshalJSONTo(enc *jsontext.Encoder) error {
	return json.MarshalEncode(enc, n.Value)
}

// UnmarshalJSONFrom reads null or a value.
func (n *Nullable[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	n.Present, n.Value = true, nil
	return json.UnmarshalDecode(dec, &n.Value)
}

// Null is the result of methods that only confirm.
type Null struct{}

// ShapeOf states to the shape check that only null fits.
func (Null) ShapeOf() reflect.Type { return nil }

// MarshalJSONTo writes null.
func (Null) MarshalJSONTo(enc *jsontext.Encoder) error { return enc.WriteToken(jsontext.Null) }

// UnmarshalJSONFrom reads whatever is there; the shape check has seen that it is null.
func (*Null) UnmarshalJSONFrom(dec *jsontext.Decoder) error { return dec.SkipValue() }

// Empty is the params object of methods that take none.
type Empty struct{}

// Failure is why a run, request or background request ended badly, as it stands in records.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Format names a data format and its version.
type Format struct {
	ID      string `json:"id"`
	Version string `json:"version"`
}

// ResourceRef names stored bytes of a space.
type ResourceRef struct {
	SpaceID   ID     `json:"spaceId"`
	ID        ID     `json:"id"`
	MediaType string `json:"mediaType"`
}
