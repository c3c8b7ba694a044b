package main

import (
	"context"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
)

// defaultGrace is the grace period of [ctxdir.CollectOptions].
const defaultGrace = 7 * 24 * time.Hour

// collectIfDue is the collection at the end of a verb that writes.
func (a *app) collectIfDue(ctx context.Context, s *ctxdir.Store) {
	var messages int64
	_, err := s.Collect(ctx, ctxdir.CollectOptions{All: true, IfDue: true, Archived: func(done ctxdir.ArchiveResult) {
		messages += done.Messages
	}})
	if messages > 0 {
		a.note(`archived %s, as "ctxtool config" shows`, plain.Count(messages, "old message"))
	}
	if err != nil {
		a.detail("garbage collection failed: %v", err)
	}
}
