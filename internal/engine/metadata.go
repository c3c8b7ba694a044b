package engine

import (
	"context"
	"errors"
	"io/fs"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/journal"
)

// ReadMetadata reads the metadata that counts now, according to the log and metadata.json. An unusable metadata.json is
// noted: see [Context.Problem].
func (c *Context) ReadMetadata() error {
	if stamp, known := c.knownMetadata(); known && c.Dir.MetadataStamp().Same(stamp) {
		return nil
	}
	for { // until nothing in this process reads on or commits between the look and its result
		m, committed, is, stamp, err := c.effectiveMetadata()
		if m == nil {
			return err
		}
		c.mu.Lock()
		if now, nerr := c.Index.Metadata(); nerr != nil || now != committed {
			c.mu.Unlock()
			continue
		}
		c.metadata, c.journaled, c.projection, c.stamp, c.broken = m, committed, is, stamp, err
		var access *fs.PathError
		torn := !errors.As(c.broken, &access) || errors.Is(c.broken, fs.ErrNotExist)
		if torn && committed != nil {
			c.broken = nil
		}
		c.mu.Unlock()
		return nil
	}
}

// effectiveMetadata returns the metadata that counts: what was committed, with what a person changed in metadata.json.
// With [ctxfolder.ProjectionUnusable], err is about metadata.json; m is nil if nothing replaces it.
func (c *Context) effectiveMetadata() (m, committed *Metadata, is ctxfolder.Projection, stamp ctxfolder.Stamp, err error) {
	for try := 0; ; try++ {
		if committed, err = c.Index.Metadata(); err != nil {
			return nil, nil, ctxfolder.ProjectionUnusable, stamp, err
		}
		m, is, stamp, err = c.Dir.EffectiveMetadata(committed)
		if is != ctxfolder.ProjectionNewer || committed == nil || try > 0 {
			return m, committed, is, stamp, err
		}
		if err := c.Index.Refresh(); err != nil { // another process committed meanwhile
			return nil, nil, ctxfolder.ProjectionUnusable, stamp, err
		}
	}
}

// knownMetadata returns the version of metadata.json from which the handle has its metadata, if the log's metadata is
// still the same.
func (c *Context) knownMetadata() (stamp ctxfolder.Stamp, known bool) {
	committed, err := c.Index.Metadata()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stamp, err == nil && c.metadata != nil && c.broken == nil && committed == c.journaled
}

// Problem returns why an open context is not in order, or nil if nothing is known. A damaged or missing metadata.json
// is not a problem if a log committed the metadata: a crash can tear the file, and the next write replaces it. One
// that cannot be read may have edits.
func (c *Context) Problem() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Classify(c.broken)
}

// Refresh reads what other processes committed, and makes later reads check whether message files were edited by hand.
// Until then a second access to a loaded message does no I/O.
func (c *Context) Refresh(ctx context.Context) error {
	return Wrap(Error{Op: "refresh", Context: c.Dir.ID}, c.use(func() error { return c.refresh(ctx) }))
}

func (c *Context) refresh(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		err = c.Dir.Check()
	}
	if err == nil {
		err = c.Index.Refresh()
	}
	if err == nil {
		err = c.ReadMetadata()
	}
	c.Loader.Refresh()
	return Wrap(Error{Op: "refresh", Context: c.Dir.ID}, err)
}

// projectionNow returns the state of metadata.json as this handle knows it.
func (c *Context) projectionNow() ctxfolder.Projection {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.projection
}

// catchUp reads what other processes wrote. The caller holds the lock.
func (c *Context) catchUp() error {
	if stamp, known := c.knownMetadata(); !known || !c.Dir.Has(stamp) {
		if err := c.Dir.Check(); err != nil {
			return err
		}
		if err := c.ReadMetadata(); err != nil { // first: another version of the format is left alone
			return err
		}
	}
	if err := c.Index.Prepare(); err != nil {
		return err
	}
	if _, known := c.knownMetadata(); !known { // a seal in the background may have read on before Prepare did
		if err := c.ReadMetadata(); err != nil {
			return err
		}
	}
	return c.nameDurably()
}

// nameDurably makes the name of a new context's folder durable: its creator may have been killed before. The process that
// committed to it since then has done so. The caller holds the lock.
func (c *Context) nameDurably() error {
	if c.named {
		return nil
	}
	is, err := c.Index.IsFresh()
	if err == nil && is {
		err = c.Store.FS.SyncDir(".")
	}
	c.named = err == nil
	return err
}

// takeEdits commits what a person changed in metadata.json, or what only metadata.json has. The file as found goes to
// the trash. The caller holds the lock.
//
// Crash order: the file is replaced after its content is committed. Until that is durable, the file says the same once
// more. The new file is durable before anything else is committed: the old one would count as an edit again.
func (c *Context) takeEdits() error {
	m, is := c.Current(), c.projectionNow()
	if is != ctxfolder.ProjectionNewer && !c.Dir.IsBlankMetadata() {
		if err := ctxfolder.TrashCopy(c.Dir, ctxfolder.TrashDamaged, ctxfolder.MetadataFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if is == ctxfolder.ProjectionEdited || is == ctxfolder.ProjectionNewer {
		m = m.Clone()
		m.Revision++
		if err := c.commitMetadata(m); err != nil {
			return err
		}
	}
	stamp, err := c.Dir.WriteMetadata(m)
	if err != nil {
		return err
	}
	c.noteChange(nil, m)
	return c.committedMetadata(m, stamp)
}

// commitMetadata commits metadata, durably. The caller holds the lock.
func (c *Context) commitMetadata(m *Metadata) error {
	return c.CommitDurably([]Item{{Item: journal.Item{Kind: journal.Metadata, Body: ctxfolder.RawMetadata(m)}}})
}

// committedMetadata notes that metadata.json has the committed metadata.
func (c *Context) committedMetadata(m *Metadata, stamp ctxfolder.Stamp) error {
	committed, err := c.Index.Metadata()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.metadata, c.journaled, c.projection, c.stamp, c.broken = m, committed, ctxfolder.ProjectionCurrent, stamp, nil
	return err
}

// prepare brings the handle up to date for a write; metadata.json may stay stale. The caller holds the lock.
func (c *Context) prepare() error {
	if err := c.catchUp(); err != nil {
		return err
	}
	switch is := c.projectionNow(); {
	case is == ctxfolder.ProjectionCurrent || is == ctxfolder.ProjectionStale:
		return nil
	case is == ctxfolder.ProjectionUnusable && c.Dir.IsMetadataBeingWritten():
		return nil // the log has the metadata
	}
	return c.takeEdits()
}

// project replaces metadata.json, unsynced. The file follows its commit like a message file, and several commits in a burst
// are one replacement. A failure costs nothing: the next writer does it, and takes in an edit that came meanwhile. The
// caller holds the lock.
func (c *Context) project() {
	c.mu.Lock()
	m, seen := c.metadata, c.stamp
	c.mu.Unlock()
	if stamp, err := c.Dir.ProjectMetadata(m, seen); err == nil {
		_ = c.committedMetadata(m, stamp)
	}
}

// projectDue replaces a metadata.json that is behind its commits, or takes in edits. A failure is left to the next
// writer, and so is an unusable file: somebody may be writing it. The caller holds the lock.
func (c *Context) projectDue() {
	if c.catchUp() == nil {
		_ = c.settleProjection()
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

// RemovalTime returns the time of a removal: the current time, or the time of the newest commit if that is later. With
// a clock that was set back, what is removed must not look old.
func (c *Context) RemovalTime(m *Metadata) time.Time {
	at := c.Store.Now()
	if m.UpdatedAt.After(at) {
		at = m.UpdatedAt
	}
	if _, newest, err := c.Index.AllCounts(); err == nil && newest.After(at) {
		at = newest
	}
	return at.UTC()
}

// Exclusively runs f with other writers and seals of the context locked out, and index and metadata up to date.
func (c *Context) Exclusively(ctx context.Context, f func() error) error {
	if c.Store.ReadOnly {
		return ErrReadOnly
	}
	return c.Store.AcquireWith(ctx, func(ctx context.Context) error {
		if err := c.Store.Acquire(ctx, c.Dir.SealLock); err != nil {
			return err
		}
		defer c.Dir.SealLock.Release()
		if err := c.Store.Acquire(ctx, c.Dir.Lock); err != nil {
			return err
		}
		defer c.Dir.Lock.Release()
		c.prepared = 0 // f may do anything
		err := c.catchUp()
		if err == nil {
			err = c.settleProjection()
		}
		if err == nil {
			err = f()
		}
		return err
	})
}
