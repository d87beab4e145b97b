package session

import "fmt"

// Error is a domain error with a stable code.
type Error struct {
	code, message string
}

func (e *Error) Error() string { return e.message }

// Code is invalid_storage for a file that cannot be used, storage for a disk that cannot be trusted, invalid_input for an unusable
// id, closed after Close.
func (e *Error) Code() string { return e.code }

// Why a file is refused. In each case it is left untouched.
var (
	ErrNotSession = &Error{"invalid_storage", "the file is not a session: its first entry is not a session header"}
	ErrOldVersion = &Error{"invalid_storage", "the file has an old session format that this version of Repa cannot read; it is kept untouched"}
	ErrNewVersion = &Error{"invalid_storage", "the file was written by a newer program; use a newer version of Repa to open it"}
	ErrTooLarge   = &Error{"invalid_storage", "the session file is larger than 1 GiB and cannot be opened"}
)

// ErrBroken is returned by Append after a write or sync failed: what the disk holds is unknown until the session is opened again.
var ErrBroken = &Error{"storage", "an earlier write of this session did not reach the disk; close and reopen the session"}

// ErrClosed is returned by Append after Close.
var ErrClosed = &Error{"closed", "the session is closed"}

// storageError gives a disk error the code storage.
type storageError struct {
	op  string
	err error
}

func (e *storageError) Error() string { return e.op + ": " + e.err.Error() }
func (e *storageError) Unwrap() error { return e.err }
func (e *storageError) Code() string  { return "storage" }

func diskError(err error, format string, args ...any) error {
	return &storageError{fmt.Sprintf(format, args...), err}
}

func checkVersion(v int) error {
	switch {
	case v > version:
		return fmt.Errorf("session format version %d: %w", v, ErrNewVersion)
	case v < version:
		return fmt.Errorf("session format version %d: %w", v, ErrOldVersion)
	}
	return nil
}
