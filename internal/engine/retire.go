package engine

import (
	"context"
	"errors"
	"time"

	"github.com/ctxdir/ctxdir/index"
)

// RetireJournals begins a new journal in place of all others, so that no journal holds what the context lost for good.
// remove, which may be nil, runs before that, with the locks of the context held and every message that counts in its
// file, row or pack. after, which may be nil, runs without the locks. If a replacement or a fold comes in between,
// everything begins again. Journals of another history move to the trash.
//
// Crash order: a fold settles the journals, so that their messages and payloads are durable in their places. Then the
// new journal begins, index.json names it alone, and the others go.
func (c *Context) RetireJournals(ctx context.Context, remove, after func() error) error {
	deadline := time.Now().Add(c.Store.Options.LockTimeout)
	for {
		err := c.Store.AcquireWith(ctx, func(ctx context.Context) error { return c.Log.Fold(ctx, true) })
		if err == nil {
			err = c.Exclusively(ctx, func() error {
				err := c.Log.TrashStrays(ctx)
				if err == nil && remove != nil {
					err = remove()
				}
				if err == nil {
					err = c.Log.Retire()
				}
				return err
			})
		}
		if err == nil && after != nil {
			err = after()
		}
		if !errors.Is(err, index.ErrBusy) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
