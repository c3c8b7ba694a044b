package trash

import (
	"context"

	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/collected"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/sweep"
)

// MaxLogBytes bounds collected.jsonl.
const MaxLogBytes = collected.MaxBytes

// IsCollectionDue reports whether the last collection was long enough ago.
func IsCollectionDue(s *engine.Store) bool { return isCollectionDue(s) }

// SweepAround sweeps one blob and calls marked once the marks are known: what refers to it, and what a writer does
// then.
func SweepAround(ctx context.Context, s *engine.Store, sum blob.Sum, marked func(map[blob.Sum]bool), moved func(engine.TrashItem)) error {
	before, err := sweep.WaitForWriters(ctx, s)
	if err != nil {
		return err
	}
	marks, err := sweep.Mark(ctx, s)
	if err != nil {
		return err
	}
	marked(marks)
	w := sweep.Sweeper{Store: s, Before: before, Found: []blob.Sum{sum}, Yield: func(x engine.TrashItem) bool { moved(x); return true }}
	_, err = w.Flush(ctx)
	return err
}

// Limited returns options with which an automatic collection archives fewer bytes of a context.
func (o CollectOptions) Limited(bytes int64) CollectOptions { o.limit = bytes; return o }
