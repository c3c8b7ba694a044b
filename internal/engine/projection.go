package engine

import (
	"context"

	ctxfolder "github.com/ctxdir/ctxdir/context"
)

// metadata.json follows its commit like a message file. Several commits in a burst are one replacement of the file.

// projectSoon leaves a stale metadata.json to the projector, or replaces it now if files are made on return. The caller
// holds the lock.
func (c *Context) projectSoon() {
	if c.projectionNow() != ctxfolder.ProjectionStale {
		return
	}
	if o := c.Store.Options; o.files == FilesOnReturn || o.inOrder {
		c.project()
		return
	}
	c.Store.projector.addContext(c)
}

// project replaces metadata.json, unsynced. A failure costs nothing: the next writer does it, and takes in an edit that
// came meanwhile. The caller holds the lock.
func (c *Context) project() {
	c.mu.Lock()
	m, seen := c.metadata, c.stamp
	c.mu.Unlock()
	if stamp, err := c.Dir.ProjectMetadata(m, seen); err == nil {
		_ = c.committedMetadata(m, stamp)
	}
}

// projectBehind is projectDue, unless the lock is taken: then that is left to its holder, or to the next call.
func (c *Context) projectBehind() (done bool) {
	if ok, err := c.Dir.Lock.TryAcquire(); !ok || err != nil {
		return false
	}
	defer c.Dir.Lock.Release()
	c.projectDue()
	return true
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

// projectDue replaces a metadata.json that is behind its commits, or takes in edits. A failure is left to the next
// writer, and so is an unusable file: somebody may be writing it. The caller holds the lock.
func (c *Context) projectDue() {
	if c.catchUp() == nil {
		_ = c.settleProjection()
	}
}

// settleProjection takes in edits of metadata.json, or replaces a stale one. The caller holds the lock, and the log is
// up to date.
func (c *Context) settleProjection() error {
	if err := c.ReadMetadata(); err != nil {
		return err
	}
	switch c.projectionNow() {
	case ctxfolder.ProjectionEdited:
		return c.takeEdits()
	case ctxfolder.ProjectionStale:
		c.project()
	}
	return nil
}

// projectionNow returns the state of metadata.json as this handle knows it.
func (c *Context) projectionNow() ctxfolder.Projection {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.projection
}
