package engine

import (
	"context"
	"errors"
	"io/fs"
	"math"

	"github.com/ctxdir/ctxdir/branch"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// FileFor returns the file name for a message of line: uuid.Nil if the id serves, or a derived name if a message of
// another line in the same folder has that id. free says that no file has that name.
func (c *Context) FileFor(m *Metadata, line *ctxfolder.Line, id uuid.UUID, free bool) (uuid.UUID, error) {
	var err error
	taken := false
	if !free {
		_, err = c.Dir.StatMessage(line.Folder, id)
		if taken = err == nil; err != nil && !errors.Is(err, fs.ErrNotExist) {
			return uuid.Nil, err
		}
	}
	for i := range m.Lines {
		if other := &m.Lines[i]; !taken && other.Folder == line.Folder && other.ID != line.ID {
			if _, taken, err = c.Log.Find(other.ID, id, math.MaxInt64, false); err != nil {
				return uuid.Nil, err
			}
		}
	}
	if taken {
		return message.DerivedID(line.ID, id.String()), nil
	}
	return uuid.Nil, nil
}

// IDBefore returns the id of the message before a position of a line's history.
func (c *Context) IDBefore(m *Metadata, line uuid.UUID, position int64) (uuid.UUID, error) {
	if position == 0 {
		return uuid.Nil, nil
	}
	if counts, ok, err := c.Log.Counts(line); err != nil || ok && counts.Count > 0 && counts.End() == position {
		return counts.Last, err
	}
	segments, err := branch.Segments(m, line, position-1, position)
	if err != nil {
		return uuid.Nil, err
	}
	entries, err := c.Log.Entries(segments[0].Line, position-1, position)
	if err != nil || len(entries) == 0 {
		return uuid.Nil, err
	}
	return entries[0].ID, nil
}

// recommit writes a commit whose sync failed to a new journal. It returns nil if that made the commit durable.
func (c *Context) recommit(commit *index.Commit, cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.Store.Options.LockTimeout)
	defer cancel()
	if err := c.Dir.Lock.Acquire(ctx); err != nil {
		return cause
	}
	defer c.Dir.Lock.Release()
	if err := c.Dir.Check(); err != nil {
		return errors.Join(cause, err)
	}
	ok, err := c.Log.Recommit(commit)
	if ok {
		return nil
	}
	return errors.Join(cause, err)
}
