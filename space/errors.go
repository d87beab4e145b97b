package space

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/repa-app/repa/space/internal/fault"
)

// Error is a domain error with a stable code: space_in_use, invalid_storage, invalid_path, not_directory, permission_denied, not_found, invalid_input or
// storage.
type Error = fault.Error

func fail(code, format string, args ...any) *Error { return fault.New(code, format, args...) }

// diskError gives an error of the disk its code and a sentence about the object.
func diskError(what string, err error) error {
	code, hint := "storage", "check the disk and try again"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.Wrap("not_found", what+" does not exist", err)
	case errors.Is(err, fs.ErrPermission):
		code, hint = "permission_denied", "check the permissions of the file and its folder"
	}
	return fault.Wrap(code, fmt.Sprintf("%s: %v; %s", what, fault.Reason(err), hint), err)
}
