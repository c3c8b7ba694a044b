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

// projectDue replaces a metadata.json that is behind its commits. A person may have edited it meanwhile: then the edits
// are taken in. A failure is left to the next writer. The caller holds the lock.
func (c *Context) projectDue() {
	if c.prepare() == nil && c.projectionNow() == ctxfolder.ProjectionStale {
		c.project()
	}
}

// projectStale replaces a stale metadata.json, unless it was edited. The caller holds the lock.
func (c *Context) projectStale() {
	if c.Dir.Check() == nil && c.Log.Refresh() == nil && c.ReadMetadata() == nil && c.projectionNow() == ctxfolder.ProjectionStale {
		c.project()
	}
}

// projectionNow returns the state of metadata.json as this handle knows it.
func (c *Context) projectionNow() ctxfolder.Projection {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.projection
}
