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

// projectBehind replaces a stale metadata.json behind its commits. If the lock is taken, it leaves that to its holder,
// or to the next call.
func (c *Context) projectBehind() (done bool) {
	if ok, err := c.Dir.Lock.TryAcquire(); !ok || err != nil {
		return false
	}
	defer c.Dir.Lock.Release()
	c.projectNow()
	return true
}

// flushProjection is projectBehind, but waits for the lock.
func (c *Context) flushProjection(ctx context.Context) error {
	if !c.Store.projector.removeContext(c) {
		return nil
	}
	if err := c.Store.Acquire(ctx, c.Dir.Lock); err != nil {
		return err
	}
	defer c.Dir.Lock.Release()
	c.projectNow()
	return nil
}

// projectNow replaces a stale metadata.json. A person may have edited the file since the commit: then the edits count,
// and the next write takes them in. The caller holds the lock.
func (c *Context) projectNow() {
	if c.Dir.Check() == nil && c.ReadMetadata() == nil && c.projectionNow() == ctxfolder.ProjectionStale {
		c.project()
	}
}

// projectionNow returns the state of metadata.json as this handle knows it.
func (c *Context) projectionNow() ctxfolder.Projection {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.projection
}
