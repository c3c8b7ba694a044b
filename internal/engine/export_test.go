package engine

import (
	"context"
)

// NewPending returns a message whose payloads may still take room bytes.
func NewPending(d Draft, room int64) *PendingMessage {
	return &PendingMessage{Draft: d, PayloadBytes: MaxAttachmentBytes - room}
}

// ExternaliseAbove moves texts of at least threshold bytes out of a message.
func (s *Store) ExternaliseAbove(d *PendingMessage, threshold int64) error {
	return s.externalise(d, threshold, func() error { return nil })
}

// OnRelease sets what Close calls at its end.
func (c *Context) OnRelease(f func()) { c.release = f }

// OpenHandles returns how many contexts are kept open, and how many of them are in the table.
func (s *Store) OpenHandles() (open, all int) {
	s.handles.mu.Lock()
	defer s.handles.mu.Unlock()
	for _, h := range s.handles.all {
		if h.c != nil {
			open++
		}
	}
	return open, len(s.handles.all)
}

// DuringBurst runs f as if a burst of the projector was running.
func DuringBurst(s *Store, f func()) {
	s.projector.making.Lock()
	defer s.projector.making.Unlock()
	f()
}

// FlushProjection does what Close does about metadata.json.
func FlushProjection(ctx context.Context, c *Context) error { return c.flushProjection(ctx) }
