package backup

import (
	"context"

	"github.com/ctxdir/ctxdir/internal/engine"
)

// ReadLater takes the snapshot of a backup, calls meanwhile, and reads the messages of the first line.
func ReadLater(ctx context.Context, c *engine.Context, to *engine.Store, meanwhile func() error) (read int, err error) {
	b := &copier{c: c, to: to}
	if err := b.snapshot(ctx); err != nil {
		return 0, err
	}
	if err := meanwhile(); err != nil {
		return 0, err
	}
	line := &b.m.Lines[0]
	counts, _, err := c.Log.Counts(line.ID)
	if err != nil {
		return 0, err
	}
	entries, err := c.Log.Entries(line.ID, counts.Base, counts.End())
	if err != nil {
		return 0, err
	}
	for i := range entries {
		if _, _, err := b.read(line, &entries[i]); err != nil {
			return i, err
		}
	}
	return len(entries), nil
}
