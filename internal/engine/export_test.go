package engine

import (
	"context"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/google/uuid"
)

// NewPending returns a message whose payloads may still take room bytes.
func NewPending(d Draft, room int64) *PendingMessage {
	return &PendingMessage{Draft: d, payloadBytes: MaxAttachmentBytes - room}
}

// ExternaliseAbove moves texts of at least threshold bytes out of a message.
func (s *Store) ExternaliseAbove(d *PendingMessage, threshold int64) error {
	return s.externalise(d, threshold, func() error { return nil })
}

// OnRelease sets what Close calls at its end.
func (c *Context) OnRelease(f func()) { c.release = f }

// Forgotten returns the contexts that a list would have to read again.
func (s *Store) Forgotten(ids []uuid.UUID) (forgotten []uuid.UUID) {
	var x examination
	s.readSummaries(&x)
	for _, id := range ids {
		if !slices.ContainsFunc(x.known, func(r *cachedSummary) bool { return r.id == id && s.current(r) != nil }) {
			forgotten = append(forgotten, id)
		}
	}
	return forgotten
}

// RepairBlobs repairs the blobs as a repair of the whole store does, after before ran with writers still admitted.
func (s *Store) RepairBlobs(ctx context.Context, before func() error, tell func(Repaired) bool) (left int, err error) {
	c := s.newChecker(CheckOptions{})
	c.payloads.Alone = func(ctx context.Context, f func() error) error {
		if err := before(); err != nil {
			return err
		}
		return s.blobsAlone(ctx, f)
	}
	for id := range s.IDs() {
		err := c.withContext(id, func(x *integrity.Context) error { return x.Check(ctx, func(Finding) bool { return true }) })
		if err != nil {
			return 0, err
		}
	}
	return c.store().RepairBlobs(ctx, false, tell)
}

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

// ForgetCheck makes the next list examine all files.
func (s *Store) ForgetCheck() {
	s.listed.mu.Lock()
	defer s.listed.mu.Unlock()
	s.listed.head.checked = 0
}

// ResolutionOf exports resolutionOf.
func ResolutionOf(at int64) time.Duration { return resolutionOf(at) }
