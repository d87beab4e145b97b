package cas

import (
	"fmt"
	"strings"
)

// Errors of this package; each answers Code with a stable code.
var (
	// ErrNotFound: the object is not in the store, or no longer.
	ErrNotFound error = &codedError{"revision_unavailable", "the object is not in the store"}
	// ErrTooLarge: the object is larger than the caller's limit.
	ErrTooLarge error = &codedError{"content_limit", "the object is larger than allowed"}
	// ErrLeaseEnded: the lease was released or ran out; its name is not used again.
	ErrLeaseEnded error = &codedError{"lease_expired", "the lease has ended"}
	// ErrReadOnly: the store was opened for reading, or holds records of a newer version, or what it holds is in doubt.
	ErrReadOnly error = &codedError{"storage", "the store is open for reading only"}
	// ErrClosed: the store was closed.
	ErrClosed error = &codedError{"closed", "the store is closed"}
	// ErrNewerFormat: the store was written by a newer version of the program. Nothing was changed.
	ErrNewerFormat error = &codedError{"content_format_unavailable", "the store has a newer format than this version of Repa reads; use the newer version"}
	// ErrInDoubt: damage may have hidden holds, so nothing may be collected before Repair.
	ErrInDoubt error = &codedError{"invalid_storage", "damage may have hidden what is held, so nothing is collected; repair the store first"}
)

type codedError struct{ code, text string }

func (e *codedError) Error() string { return e.text }

// Code is stable and for programs.
func (e *codedError) Code() string { return e.code }

// InUseError says that another process, or this one, has the store open.
type InUseError struct {
	Dir string
	PID int // 0 when it is not known
}

// Error implements error.
func (e *InUseError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("the store %s is in use by %s; stop it, or open the store for reading only", e.Dir, who)
}

// Code is stable and for programs.
func (e *InUseError) Code() string { return "space_in_use" }

// DamageError says that the bytes of an object are not what its id says, or cannot be found. The file was left as it is.
type DamageError struct {
	ID      ID
	Owners  []Owner
	Segment string // file name
	Offset  int64
	Reason  string
}

// Error implements error.
func (e *DamageError) Error() string {
	var held string
	if len(e.Owners) > 0 {
		names := make([]string, len(e.Owners))
		for i, o := range e.Owners {
			names[i] = o.String()
		}
		held = ", held by " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("object %s is damaged in %s at byte %d (%s)%s; the file was left as it is", e.ID, e.Segment, e.Offset, e.Reason, held)
}

// Code is stable and for programs.
func (e *DamageError) Code() string { return "invalid_storage" }
