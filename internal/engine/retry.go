package engine

import (
	"context"
	"errors"

	"github.com/ctxdir/ctxdir/branch"

	"github.com/ctxdir/ctxdir/index"
	"github.com/google/uuid"
)

// IDBefore returns the id of the message before a position of a line's history.
func (c *Context) IDBefore(m *Metadata, line uuid.UUID, position int64) (uuid.UUID, error) {
	if position == 0 {
		return uuid.Nil, nil
	}
	if counts, ok, err := c.Index.Counts(line); err != nil || ok && counts.Count > 0 && counts.End() == position {
		return counts.Last, err
	}
	segments, err := branch.Segments(m, line, position-1, position)
	if err != nil {
		return uuid.Nil, err
	}
	entries, err := c.Index.Entries(segments[0].Line, position-1, position)
	if err != nil || len(entries) == 0 {
		return uuid.Nil, err
	}
	return entries[0].ID, nil
}

// recover makes a commit durable whose sync failed, in other blocks. It returns nil if it could.
func (c *Context) recover(commit *index.Commit, cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.Store.Options.LockTimeout)
	defer cancel()
	if err := c.Dir.Lock.Acquire(ctx); err != nil {
		return cause
	}
	defer c.Dir.Lock.Release()
	if err := c.Dir.Check(); err != nil {
		return errors.Join(cause, err)
	}
	if err := c.Index.Recover(commit); err != nil {
		return errors.Join(cause, err)
	}
	return nil
}
