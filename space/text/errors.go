package text

import "fmt"

// Error is a domain error with a stable code: unsupported_format, invalid_input or revision_conflict.
type Error struct{ code, message string }

// Error implements error.
func (e *Error) Error() string { return e.message }

// Code returns the stable code.
func (e *Error) Code() string { return e.code }

func fail(code, format string, args ...any) *Error { return &Error{code, fmt.Sprintf(format, args...)} }
