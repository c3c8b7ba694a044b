package storetest

import (
	"context"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// Archive archives the messages of one context, and brings the handle up to date.
func Archive(ctx context.Context, c *engine.Context, o archiving.Options) (done archiving.Result, err error) {
	for done, err = range archiving.Archive(ctx, c.Store, []uuid.UUID{c.ID()}, o) {
	}
	if err == nil {
		err = c.Refresh(ctx)
	}
	return done, err
}
