// Package fault is the domain error of a space: a stable code and a sentence for people.
package fault

import (
	"errors"
	"fmt"
	"io/fs"
)

// Error is a domain error. Its text names the object and what to do. It is immutable once it is returned.
type Error struct {
	code    string
	message string
	details map[string]any
	cause   error
}

// New is an error with a code and a sentence.
func New(code, format string, args ...any) *Error {
	return &Error{code: code, message: fmt.Sprintf(format, args...)}
}

// Wrap is an error that another one caused.
func Wrap(code, message string, cause error) *Error {
	return &Error{code: code, message: message, cause: cause}
}

// Error implements error.
func (e *Error) Error() string { return e.message }

// Code returns the stable code.
func (e *Error) Code() string { return e.code }

// Details returns data for programs, or nil.
func (e *Error) Details() any {
	if e.details == nil {
		return nil
	}
	return e.details
}

// Detail returns one member of the details, nil when it is not there.
func (e *Error) Detail(name string) any { return e.details[name] }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

// With adds data for programs.
func (e *Error) With(details map[string]any) *Error {
	if e.details == nil {
		e.details = map[string]any{}
	}
	for k, v := range details {
		e.details[k] = v
	}
	return e
}

// Reason strips the path from an error of the disk: the sentence around it names the object already.
func Reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
