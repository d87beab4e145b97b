package crashfs

import (
	"errors"
	"path"
	"strings"
	"sync"
	"syscall"
)

// Call is one disk call, shown to a fault function before it takes effect. N counts from 1 over the whole disk.
type Call struct {
	N    int
	Op   string // open, create, mkdir, rename, remove, stat, readdir, syncdir, lock, read, write, sync, truncate, preallocate, close
	Path string // from the disk's root
}

// Fault decides about a call: nil lets it through, ErrShortWrite lets half of a write through, anything else fails it without
// effect (but a failed sync drops the dirty state). The error is wrapped in an *fs.PathError, so a bare syscall.Errno looks like the system's.
//
// A Fault is called without a lock on the disk and from several goroutines at once. It may block: the call it decides about
// waits, all others go on. It may use the disk, and is then asked about those calls too.
type Fault func(Call) error

// ErrShortWrite makes a write stop half-way and report io.ErrShortWrite.
var ErrShortWrite = errors.New("short write wanted")

// Errors returns what every operation of a store is to survive at every of its calls: syscall.EIO, ENOSPC, EDQUOT, EMFILE,
// EACCES, EINTR, and ErrShortWrite.
func Errors() []error {
	return []error{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.EACCES, syscall.EINTR, ErrShortWrite}
}

// SetFault installs the fault function; nil removes it.
func (f *FS) SetFault(fault Fault) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.fault = fault
}

// FailNth fails the n-th call from now on (1 is the next one) with err, once. It replaces the fault function.
func (f *FS) FailNth(n int, err error) {
	at := f.Calls() + n
	f.SetFault(func(c Call) error {
		if c.N == at {
			return err
		}
		return nil
	})
}

// matches reports whether the call is op (empty: any) on a path that the path.Match pattern fits: as a whole, or by its last
// element when the pattern has no slash. The empty pattern fits every path. A malformed pattern is a mistake in the test: panic.
func (c Call) matches(op, pattern string) bool {
	name := c.Path
	if !strings.Contains(pattern, "/") {
		name = path.Base(name)
	}
	ok, err := path.Match(pattern, name)
	if err != nil {
		panic("crashfs: pattern " + pattern + ": " + err.Error())
	}
	return (op == "" || op == c.Op) && (ok || pattern == "")
}

// OnNth fails the n-th call of op whose path fits the pattern, counted from 1, once. An empty op or pattern fits all; a pattern
// is one of path.Match, and one without a slash is compared with the last element of the path.
func OnNth(op, pattern string, n int, err error) Fault {
	var mu sync.Mutex
	return func(c Call) error {
		mu.Lock()
		defer mu.Unlock()
		if !c.matches(op, pattern) {
			return nil
		}
		if n--; n == 0 {
			return err
		}
		return nil
	}
}

// Always fails each call that fits, as OnNth says, until the fault is removed: a cause that lasts.
func Always(op, pattern string, err error) Fault {
	return func(c Call) error {
		if c.matches(op, pattern) {
			return err
		}
		return nil
	}
}

// SyncFailsOnce fails the next sync of a file that fits the pattern with syscall.EIO. Later ones claim success, and what was
// written before the failed one is gone all the same.
func SyncFailsOnce(pattern string) Fault { return OnNth("sync", pattern, 1, syscall.EIO) }

// Stall blocks each call that fits, as OnNth says, until release is called, and then lets it through. Entered gets one value for
// each call when it begins to wait; a caller need not receive the values.
func Stall(op, pattern string) (fault Fault, entered <-chan Call, release func()) {
	// 1024 is more calls than a test can have waiting at once; more of them would go unannounced.
	calls, gate := make(chan Call, 1024), make(chan struct{})
	fault = func(c Call) error {
		if !c.matches(op, pattern) {
			return nil
		}
		select {
		case <-gate:
			return nil
		default:
		}
		select {
		case calls <- c:
		default:
		}
		<-gate
		return nil
	}
	return fault, calls, sync.OnceFunc(func() { close(gate) })
}

// First asks the faults in turn and returns the first error. The faults behind it do not see the call.
func First(faults ...Fault) Fault {
	return func(c Call) error {
		for _, fault := range faults {
			if err := fault(c); err != nil {
				return err
			}
		}
		return nil
	}
}
