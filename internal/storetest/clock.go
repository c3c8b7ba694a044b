package storetest

import (
	"sync/atomic"
	"time"
)

// clock is a clock that tests set.
type clock struct{ at atomic.Int64 }

// Now returns the time that the clock shows.
func (c *clock) Now() time.Time { return time.Unix(0, c.at.Load()) }

// Set sets the clock.
func (c *clock) Set(at time.Time) { c.at.Store(at.UnixNano()) }

// NewClock returns a clock that shows the current time.
func NewClock() *clock { c := &clock{}; c.Set(time.Now()); return c }

// Jump moves the clock on.
func (c *clock) Jump(d time.Duration) { c.Set(c.Now().Add(d)) }
