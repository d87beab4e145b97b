package space

import (
	"errors"
	"fmt"
	"io/fs"
)

// Error is a domain error with a stable code. Its text names the object and what to do.
type Error struct {
	code    string
	message string
	details map[string]any
	cause   error
}

// Error implements error.
func (e *Error) Error() string { return e.message }

// Code returns the stable code: space_in_use, invalid_storage, invalid_path, not_directory, permission_denied, not_found,
// invalid_input or storage.
func (e *Error) Code() string { return e.code }

// Details returns data for programs, or nil.
func (e *Error) Details() any {
	if e.details == nil {
		return nil
	}
	return e.details
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

func fail(code, format string, args ...any) *Error {
	return &Error{code: code, message: fmt.Sprintf(format, args...)}
}

// diskError gives an error of the disk its code and a sentence about the object.
func diskError(what string, err error) error {
	code, hint := "storage", "check the disk and try again"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Error{code: "not_found", message: what + " does not exist", cause: err}
	case errors.Is(err, fs.ErrPermission):
		code, hint = "permission_denied", "check the permissions of the file and its folder"
	}
	return &Error{code: code, message: fmt.Sprintf("%s: %v; %s", what, reason(err), hint), cause: err}
}

// reason strips the path from an error of the disk: the sentence around it names the object already.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
