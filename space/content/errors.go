package content

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/space/internal/fault"
)

// Error is a domain error with a stable code, one of the codes of protocol version 1 for content and operations, or match_not_found.
type Error = fault.Error

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

func fail(code, format string, args ...any) *Error { return fault.New(code, format, args...) }

// conflict says that something is not at its base. An empty revision is "not there".
func conflict(what, expected, actual, why string) *Error {
	return fail(codeConflict, "%s was not changed: %s", what, why).With(map[string]any{"path": what, "expected": nullable(expected), "actual": nullable(actual)})
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
		return fault.Wrap(codeNotFound, what+" does not exist", err)
	case errors.Is(err, fs.ErrPermission):
		code, hint = codePermission, "check the permissions of the file and its folder"
	case errors.Is(err, vfs.ErrTooLarge):
		return fault.Wrap(codeLimit, fmt.Sprintf("%s is larger than %d MiB and cannot be read whole", what, maxDocument>>20), err)
	case errors.Is(err, vfs.ErrIsDir):
		return fault.Wrap(codeInput, what+" is a folder, not a file", err)
	}
	return fault.Wrap(code, fmt.Sprintf("%s: %v; %s", what, fault.Reason(err), hint), err)
}

// about names the file in an error of a package that knows only texts; code and details stay.
func about(name string, err error) error {
	code := codeOf(err)
	if code == "" {
		code = codeFailed
	}
	out := fault.Wrap(code, fmt.Sprintf("%s was not changed: %v", name, err), err).With(map[string]any{"path": name})
	var detailed interface{ Details() any }
	if errors.As(err, &detailed) {
		if d, ok := detailed.Details().(map[string]any); ok {
			out.With(d)
		}
	}
	return out
}
