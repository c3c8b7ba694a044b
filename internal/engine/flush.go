package engine

import (
	"context"
	"errors"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
)

// Flush waits until every message of the context has its file. Files follow their commits a moment later; other
// programs see all of them after Flush. It also writes files that a killed process had not written, or that could not
// be made before. An error means that a file is missing, on a full disk for example; the history has the message, and
// Flush can be repeated.
func (c *Context) Flush(ctx context.Context) error {
	return Wrap(Error{Op: "flush", Context: c.Dir.ID}, c.use(func() error { return c.flush(ctx) }))
}

func (c *Context) flush(ctx context.Context) error {
	if c.Store.ReadOnly {
		return ErrReadOnly
	}
	_ = c.awaitFiles(writers) // what could not be made is made now, unless somebody did and sealed its message
	_, err := c.makeMissing(ctx, writers)
	return errors.Join(err, c.flushProjection(ctx))
}

// MakeDurable makes every known record of the log durable, those of other processes included.
func (c *Context) MakeDurable(ctx context.Context) error {
	var commit *index.Commit
	err := c.Write(ctx, func(*Metadata) error {
		commit = c.Index.Barrier()
		return nil
	})
	if err == nil {
		err = commit.Sync()
	}
	return err
}

// Seal makes segments of all that logs have, now. A log that is long enough is sealed by itself. While another process
// seals the context, Seal waits.
func (c *Context) Seal(ctx context.Context) error {
	if c.Store.ReadOnly {
		return Wrap(Error{Op: "seal", Context: c.Dir.ID}, ErrReadOnly)
	}
	return Wrap(Error{Op: "seal", Context: c.Dir.ID}, c.use(func() error {
		return errors.Join(c.sealAll(ctx), c.flushProjection(ctx))
	}))
}

// flushProjection replaces metadata.json if that is due.
func (c *Context) flushProjection(ctx context.Context) error {
	if !c.Store.projector.removeContext(c) {
		return nil
	}
	if err := c.Store.Acquire(ctx, c.Dir.Lock); err != nil {
		return err
	}
	defer c.Dir.Lock.Release()
	c.projectDue()
	return nil
}

// queuePending leaves the files of what pending returned to the projector. A commit that follows those messages is
// durable: so are they, even if the process that wrote them saw its sync fail.
func (c *Context) queuePending(b *fileBatch) {
	c.messageFiles.mu.Lock()
	c.messageFiles.checked = true
	c.messageFiles.mu.Unlock()
	b.queue()
}

// AwaitFiles waits for the files of earlier commits of every process, see [ctxfolder.Dir.AwaitFiles]. The caller holds
// the context's lock.
func (c *Context) AwaitFiles(ctx context.Context) error { return c.Store.awaitFiles(ctx, c.Dir) }

func (s *Store) awaitFiles(ctx context.Context, dir *ctxfolder.Dir) error {
	s.projector.run(writers)
	return s.AcquireWith(ctx, dir.AwaitFiles)
}
