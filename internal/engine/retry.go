package engine

import (
	"bytes"
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

// isRetry reports whether the first message is already at the expected position: then this is a retry.
func (a *appendOp) isRetry(m *Metadata, expect int64) bool {
	if len(a.drafts) == 0 || a.drafts[0].ID == uuid.Nil {
		return false
	}
	p, err := a.b.c.find(m, a.line.ID, a.drafts[0].ID)
	return err == nil && p.Entry.Position == expect
}

// findExisting looks for a message with the draft's id. It returns its place if the bodies are equal, and fails with
// ErrConflict if they differ. It stores a damaged or lost message again. free says that no file in the line's folder
// has the id as its name.
func (a *appendOp) findExisting(m *Metadata, d *PendingMessage, fresh map[uuid.UUID]int) (there *AppendResult, free bool, err error) {
	if d.ID == uuid.Nil {
		return nil, true, nil
	}
	if i, ok := fresh[d.ID]; ok {
		if !bytes.Equal(a.drafts[i].Body, d.Body) {
			return nil, false, Wrap(Error{Op: "append", Context: a.b.c.Dir.ID, Branch: a.b.name, ID: d.ID}, ErrConflict)
		}
		there := a.results[i].AppendResult
		there.Existed = true
		return &there, false, nil
	}
	p, err := a.b.c.findLocked(m, a.line.ID, d.ID)
	if errors.Is(err, ErrNotExist) {
		return nil, p.free, nil
	}
	if err != nil {
		return nil, false, err
	}
	old, err := a.b.c.Loader.Load(context.Background(), p.Span, &p.Entry)
	if err != nil {
		return nil, false, err
	}
	there = &AppendResult{ID: d.ID, Position: p.Entry.Position, Existed: true}
	if old.Unavailable != nil && !errors.Is(old.Unavailable, ErrErased) {
		return there, false, a.b.c.storeAgain(m, a.b.name, p, d, old.Unavailable)
	}
	if old.Unavailable == nil && !bytes.Equal(old.Stored, d.Stored) {
		// The threshold may have been different.
		body, err := old.Body(context.Background())
		if err != nil {
			return nil, false, err // it is unknown whether the bodies are equal
		}
		if !bytes.Equal(body, d.Body) {
			return nil, false, Wrap(Error{Op: "append", Context: a.b.c.Dir.ID, Branch: a.b.name, ID: d.ID}, ErrConflict)
		}
	}
	return there, false, nil
}

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
