package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
)

// Write runs f with the lock held, the metadata current, and the log ready for an append.
func (c *Context) Write(ctx context.Context, f func(m *Metadata) error) error {
	if c.Store.ReadOnly {
		return ErrReadOnly
	}
	deadline := time.Now().Add(c.Store.Options.LockTimeout)
	for {
		err := c.writeOnce(ctx, f)
		if !errors.Is(err, index.ErrBusy) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *Context) writeOnce(ctx context.Context, f func(m *Metadata) error) error {
	if err := c.Store.Acquire(ctx, c.Dir.Lock); err != nil {
		return err
	}
	defer c.Dir.Lock.Release()
	// Within one tenure of the lock, no other process can have written since this handle looked.
	tenure := c.Dir.Lock.Tenure()
	if c.prepared != tenure || !c.Log.Ready() || c.Current().Renaming != nil {
		c.prepared = 0
		if err := c.prepare(); err != nil {
			return err
		}
		c.prepared = tenure
	}
	return f(c.Current())
}

// prepare brings the handle up to date for a write. The caller holds the lock.
func (c *Context) prepare() error {
	if err := c.Dir.Check(); err != nil {
		return err
	}
	if err := c.ReadMetadata(); err != nil {
		return err
	}
	if err := c.Problem(); err != nil {
		return fmt.Errorf("%w; repair mends it", err)
	}
	if err := c.Log.Prepare(); err != nil {
		return err
	}
	if c.doubtful {
		// The file may be there without being durable. What builds on it must not be acknowledged before it is certain.
		// The failed sync is not retried: the same content is written again, to another file.
		if _, err := c.Dir.WriteMetadata(c.Current()); err != nil {
			return err
		}
		c.doubtful = false
		if err := c.ReadMetadata(); err != nil {
			return err
		}
	}
	return c.finishRenaming()
}

// finishRenaming finishes the rename of a branch folder. The caller holds the lock.
func (c *Context) finishRenaming() error {
	m := c.Current()
	if m.Renaming == nil {
		return nil
	}
	if err := c.Dir.FinishRenaming(*m.Renaming); err != nil {
		return err
	}
	done := m.Clone()
	done.Renaming = nil
	return c.WriteMetadata(done)
}

// WriteMetadata commits a change of the metadata. The caller holds the lock.
func (c *Context) WriteMetadata(m *Metadata) error {
	m.Revision++
	stamp, err := c.Dir.WriteMetadata(m)
	if err != nil {
		c.doubtful, c.prepared = true, 0
		return err
	}
	c.Dir.SetRenaming(m.Renaming)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.metadata, c.stamp = m, stamp
	return nil
}

// Change changes the metadata. With positions, the change relies on messages: it makes them durable first, since those
// of other processes may not be yet.
//
// Crash order: the journal's copy comes first. It counts only once metadata.json has its revision, so replacing that
// file commits the change.
func (c *Context) Change(ctx context.Context, positions bool, f func(m *Metadata) error) error {
	return c.use(func() error { return c.changeNow(ctx, positions, f) })
}

// MakeDurable makes every known record of the journal durable, those of other processes included.
func (c *Context) MakeDurable(ctx context.Context) error {
	var commit *index.Commit
	err := c.Write(ctx, func(*Metadata) error {
		commit = c.Log.Barrier()
		return nil
	})
	if err == nil {
		err = commit.Sync()
	}
	return err
}

func (c *Context) changeNow(ctx context.Context, positions bool, f func(m *Metadata) error) error {
	return c.Write(ctx, func(current *Metadata) error {
		m := current.Clone()
		if err := f(m); err != nil {
			return err
		}
		m.UpdatedAt = time.Now().UTC()
		next := m.Clone()
		next.Revision++
		positions = positions && !c.Log.Durable()
		commit := c.Log.Append([]index.Item{{Kind: index.KindMetadata, Body: ctxfolder.RawMetadata(next)}})
		if commit.Err != nil {
			return commit.Err
		}
		if positions {
			if err := commit.Sync(); err != nil {
				return err
			}
		}
		return c.WriteMetadata(m)
	})
}

// Update changes title, config, state, parent, unknown members, and the system prompts and further members of branches.
// It undoes what f does to ids, lines, branch names, the active branch, revision and times: other methods change these.
func (c *Context) Update(ctx context.Context, f func(m *Metadata) error) error {
	blobs := BlobHold{Store: c.Store}
	defer blobs.Release()
	err := c.Change(ctx, false, func(m *Metadata) error {
		fixed := m.Clone()
		if err := f(m); err != nil {
			return err
		}
		edited := m.Branches
		for i := range edited {
			prompt, err := c.Store.ExternalisePrompt(edited[i].SystemPrompt, func() error { return blobs.Hold(ctx) })
			if err != nil {
				return err
			}
			edited[i].SystemPrompt = prompt
		}
		m.ID, m.Lines, m.Removed, m.Renaming = fixed.ID, fixed.Lines, fixed.Removed, fixed.Renaming
		m.ActiveBranch, m.Revision, m.CreatedAt, m.Branches = fixed.ActiveBranch, fixed.Revision, fixed.CreatedAt, fixed.Branches
		for i := range m.Branches {
			if j := slices.IndexFunc(edited, func(b ctxfolder.Branch) bool { return b.Name == m.Branches[i].Name }); j >= 0 {
				m.Branches[i].SystemPrompt, m.Branches[i].Extra = edited[j].SystemPrompt, edited[j].Extra
			}
		}
		if m.State != nil && !json.Valid(m.State) {
			return fmt.Errorf("%w: state is not valid JSON", ErrInvalid)
		}
		return nil
	})
	return Wrap(Error{Op: "update", Context: c.Dir.ID}, err)
}

// Exclusively runs f with other writers and folds of the context locked out, and log and metadata up to date.
func (c *Context) Exclusively(ctx context.Context, f func() error) error {
	var failed error
	err := c.Store.AcquireWith(ctx, func(ctx context.Context) error {
		return c.Log.Exclusively(ctx, func() error {
			if failed = c.ReadMetadata(); failed == nil {
				failed = f()
			}
			return nil
		})
	})
	return errors.Join(err, failed)
}
