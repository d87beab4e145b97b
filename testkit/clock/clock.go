// Package clock is a wall clock that tests set by hand. Durations and timers in tests use testing/synctest instead; this clock
// is only for what must survive a restart or a jump of the wall clock: times in records and file names.
package clock

import (
	"sync"
	"time"
)

// Clock is a settable clock; safe for concurrent use. The zero value stands at Start.
type Clock struct {
	mu  sync.Mutex
	off time.Duration
}

// Start is where every Clock begins, so that golden files stay the same.
var Start = time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Start.Add(c.off)
}

// Advance moves the clock by d, which may be negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off += d
}
