package engine

import (
	"context"
	"errors"
	"io/fs"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/journal"
)

// Write runs f with the lock held, the metadata current, and the log ready for an append.
func (c *Context) Write(ctx context.Context, f func(m *Metadata) error) error {
	if c.Store.ReadOnly {
		return ErrReadOnly
	}
	if err := c.Store.Acquire(ctx, c.Dir.Lock); err != nil {
		return err
	}
	defer c.Dir.Lock.Release()
	// Within one tenure of the lock, no other process can have written since this handle looked.
	tenure := c.Dir.Lock.Tenure()
	if c.prepared != tenure || !c.Index.Ready() {
		c.prepared = 0
		if err := c.prepare(); err != nil {
			return err
		}
		c.prepared = tenure
		c.projectSoon()
	}
	return f(c.Current())
}

// prepare brings the handle up to date for a write; metadata.json may stay stale. The caller holds the lock.
func (c *Context) prepare() error {
	if err := c.catchUp(); err != nil {
		return err
	}
	if is := c.projectionNow(); is != ctxfolder.ProjectionCurrent && is != ctxfolder.ProjectionStale {
		return c.takeEdits()
	}
	return nil
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

// Change changes the metadata as f says.
func (c *Context) Change(ctx context.Context, f func(m *Metadata) error) error {
	return c.use(func() error {
		_, err := c.run(ctx, false, conditions{}, func(tx *Tx) error {
			tx.m, tx.changed = tx.m.Clone(), true
			return f(tx.m)
		})
		return err
	})
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

// ReplaceMetadata commits metadata in place of the current one, in a group with other records, for upkeep: the context does
// not count as updated. The caller holds the lock.
func (c *Context) ReplaceMetadata(m *Metadata, before ...Item) error {
	tx := &Tx{c: c}
	tx.reset(m)
	tx.changed, tx.upkeep, tx.items, tx.of = true, true, before, make([]*BatchResult, len(before))
	return tx.write()
}

// Update changes title, labels, config, state, parent, unknown members, and the system prompts and further members of
// branches. It undoes what f does to ids, kind, lines, branch names, the active branch, revision and times: other
// methods change these.
func (c *Context) Update(ctx context.Context, f func(m *Metadata) error, opts ...WriteOption) error {
	return c.one(ctx, "update", "", func(tx *Tx) error { return tx.Update(f) }, opts...)
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
