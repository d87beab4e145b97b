package protocol

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Error is a domain error as it stands on the wire: -32000 with a code, a sentence for people and, for some codes, details.
type Error struct {
	Reason  Code
	Message string
	Details any // encoded as JSON; nil for none
}

// Errorf makes a domain error with a sentence for people.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Reason: code, Message: fmt.Sprintf(format, args...)}
}

func (e *Error) Error() string { return e.Message }

// Code gives the code as every domain error of this project does.
func (e *Error) Code() string { return string(e.Reason) }

// Is makes errors.Is compare by code, so that errors.Is(err, &Error{Reason: CodeNotFound}) works.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Reason == e.Reason
}

// JSON-RPC error numbers. Everything that the domain refuses is NumberDomain with a Code.
const (
	NumberParse          = -32700 // the frame is not JSON
	NumberInvalidRequest = -32600 // the frame is no request
	NumberUnknownMethod  = -32601
	NumberInvalidParams  = -32602
	NumberInternal       = -32603
	NumberUnauthorised   = -32001 // bad token, or a call before initialize
	NumberVersion        = -32002 // no common version; data says which are supported
	NumberDomain         = -32000
)

// Fault is an error object of JSON-RPC. It is an error itself, for everything that is not a domain error.
type Fault struct {
	Number  int            `json:"code"`
	Message string         `json:"message"`
	Data    jsontext.Value `json:"data,omitzero"`
}

func (f *Fault) Error() string { return fmt.Sprintf("%s (%d)", f.Message, f.Number) }

// NewFault makes a fault without data.
func NewFault(number int, format string, args ...any) *Fault {
	return &Fault{Number: number, Message: fmt.Sprintf(format, args...)}
}

// domainData is the data member of a domain error.
type domainData struct {
	Code    string         `json:"code"`
	Details jsontext.Value `json:"details,omitzero"`
}

// internalMessage is all that a front end learns of an unexpected failure: the cause may hold secrets and belongs into the log.
const internalMessage = "Internal error: the backend could not finish this call; its log says why"

// FaultOf turns any error into what goes over the wire: a Fault stays as it is, an error with a code becomes a domain error with its
// own text and, when it has `Details() any`, its details; everything else becomes an internal error without any of its text.
func FaultOf(err error) *Fault {
	var fault *Fault
	if errors.As(err, &fault) {
		return fault
	}
	var coded interface {
		error
		Code() string
	}
	if !errors.As(err, &coded) || coded.Code() == "" {
		return NewFault(NumberInternal, internalMessage)
	}
	data := domainData{Code: coded.Code()}
	if details := detailsOf(coded); details != nil {
		text, err := json.Marshal(details)
		if err != nil {
			return NewFault(NumberInternal, internalMessage)
		}
		data.Details = text
	}
	text, err := json.Marshal(data)
	if err != nil {
		return NewFault(NumberInternal, internalMessage)
	}
	return &Fault{Number: NumberDomain, Message: coded.Error(), Data: text}
}

func detailsOf(err error) any {
	if own, ok := err.(*Error); ok {
		return own.Details
	}
	if detailed, ok := err.(interface{ Details() any }); ok {
		return detailed.Details()
	}
	return nil
}

// ErrorOf is the way back, for clients: a domain error becomes an *Error, everything else stays a *Fault.
func ErrorOf(f *Fault) error {
	var data domainData
	if f.Number != NumberDomain || json.Unmarshal(f.Data, &data) != nil || data.Code == "" {
		return f
	}
	err := &Error{Reason: Code(data.Code), Message: f.Message}
	if data.Details != nil {
		err.Details = data.Details
	}
	return err
}
