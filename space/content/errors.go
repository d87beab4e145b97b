package content

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/repa-app/repa/cas/vfs"
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

// Code returns the stable code, one of the codes of protocol version 1 for content and operations, or match_not_found.
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

// Codes of errors.
const (
	codeInput       = "invalid_input"
	codeCursor      = "invalid_cursor"
	codeNotFound    = "not_found"
	codePermission  = "permission_required"
	codeConflict    = "revision_conflict"
	codeUnsupported = "unsupported_content"
	codeFormat      = "unsupported_format"
	codeLimit       = "content_limit"
	codeRecovery    = "recovery_required"
	codeIDConflict  = "operation_id_conflict"
	codePruned      = "history_pruned"
	codeFailed      = "operation_failed"
	codeRegistered  = "already_registered"
	codePatch       = "invalid_patch"
	codeGone        = "revision_unavailable"
	codeStorage     = "storage"
	codeInvalid     = "invalid_storage"
)

func fail(code, format string, args ...any) *Error {
	return &Error{code: code, message: fmt.Sprintf(format, args...)}
}

func (e *Error) with(details map[string]any) *Error {
	e.details = details
	return e
}

// conflict says that something is not at its base. An empty revision is "not there".
func conflict(what, expected, actual, why string) *Error {
	return fail(codeConflict, "%s was not changed: %s", what, why).with(map[string]any{"path": what, "expected": nullable(expected), "actual": nullable(actual)})
}

func nullable(revision string) any {
	if revision == "" {
		return nil
	}
	return revision
}

// codeOf is the code of a domain error, or "".
func codeOf(err error) string {
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		return coded.Code()
	}
	return ""
}

// diskError gives an error of the disk its code and a sentence about the object.
func diskError(what string, err error) error {
	if err == nil || codeOf(err) != "" {
		return err
	}
	code, hint := codeStorage, "check the disk and try again"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Error{code: codeNotFound, message: what + " does not exist", cause: err}
	case errors.Is(err, fs.ErrPermission):
		code, hint = codePermission, "check the permissions of the file and its folder"
	case errors.Is(err, vfs.ErrTooLarge):
		return &Error{code: codeLimit, message: fmt.Sprintf("%s is larger than %d MiB and cannot be read whole", what, maxDocument>>20), cause: err}
	case errors.Is(err, vfs.ErrIsDir):
		return &Error{code: codeInput, message: what + " is a folder, not a file", cause: err}
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

// about names the file in an error of a package that knows only texts; code and details stay.
func about(name string, err error) error {
	out := &Error{code: codeOf(err), message: fmt.Sprintf("%s was not changed: %v", name, err), cause: err}
	if out.code == "" {
		out.code = codeFailed
	}
	out.details = map[string]any{"path": name}
	var detailed interface{ Details() any }
	if errors.As(err, &detailed) {
		if d, ok := detailed.Details().(map[string]any); ok {
			for k, v := range d {
				out.details[k] = v
			}
		}
	}
	return out
}
