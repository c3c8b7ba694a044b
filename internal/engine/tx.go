package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/google/uuid"
)

// Tx is a commit in preparation. It holds the context's lock. Its methods see what the methods before them did, but not
// the bodies of messages that this commit appends. After a method failed, the commit fails.
type Tx struct {
	conditions
	batch bool // each record stands for itself
	c     *Context
	ctx   context.Context
	blobs *BlobHold

	before, after uint64 // the newest commit before and after this one

	m       *Metadata // as this commit leaves it
	changed bool      // m is a changed copy
	upkeep  bool      // which shows nothing new: the time of the last change stays
	failure error     // of the first method that failed

	items    []Item
	of       []*BatchResult // the result of each item; nil for a payload
	results  []*BatchResult // of all appended messages
	existed  []*BatchResult // of those that are stored already
	stored   map[*BatchResult]bool
	lines    map[uuid.UUID]*txLine
	fresh    map[uuid.UUID][]freshMessage // by id; several lines can have one
	payloads map[blob.Sum]bool            // in items
	durable  []func()                     // to call under the lock when the commit is durable

	commits []*index.Commit
	settled bool // they were waited for under the lock
	files   *fileBatch
	pending *fileBatch // the files that a killed process left pending
}

// reset begins the commit again, on the metadata m. The caller holds the lock.
func (tx *Tx) reset(m *Metadata) {
	*tx = Tx{
		conditions: tx.conditions, batch: tx.batch, c: tx.c, ctx: tx.ctx, blobs: tx.blobs, m: m,
		stored: map[*BatchResult]bool{}, payloads: map[blob.Sum]bool{}, fresh: map[uuid.UUID][]freshMessage{},
		lines: map[uuid.UUID]*txLine{},
	}
}

// do runs one change. It remembers the failure, so that f cannot commit half of what it wanted.
func (tx *Tx) do(op, name string, f func() error) error {
	if tx.failure == nil {
		tx.failure = Wrap(Error{Op: op, Context: tx.c.Dir.ID, Branch: name}, f())
	}
	return tx.failure
}

// edit runs one change of the metadata.
func (tx *Tx) edit(op, name string, f func(m *Metadata) error) error {
	return tx.do(op, name, func() error {
		if !tx.changed {
			tx.m, tx.changed = tx.m.Clone(), true
		}
		return f(tx.m)
	})
}

// Metadata returns the metadata as the commit leaves it so far. The caller must not change it.
func (tx *Tx) Metadata() *Metadata { return tx.m }

// Len returns the number of messages that a branch shows, with those that this commit appends.
func (tx *Tx) Len(name string) (int64, error) {
	b, err := branch.Get(tx.m, name)
	if err != nil {
		return 0, err
	}
	return tx.end(b.Line)
}

// Append is [Branch.AppendBatch] in this commit. A draft that cannot be stored fails the commit.
func (tx *Tx) Append(name string, drafts []Draft, opts ...WriteOption) error {
	return tx.do("append", name, func() error {
		o, err := conditionsOf(opts, "position")
		if err != nil {
			return err
		}
		if o.position == nil && len(tx.results) == 0 {
			o.position = tx.position
		}
		pending := make([]PendingMessage, len(drafts))
		for i := range drafts {
			pending[i].Draft = drafts[i]
			if err := tx.c.Store.Complete(&pending[i], tx.c.Store.TextThreshold(), func() error { return tx.blobs.Hold(tx.ctx) }); err != nil {
				return Wrap(Error{Op: "append", Context: tx.c.Dir.ID, Branch: name, ID: drafts[i].ID}, err)
			}
		}
		return tx.add(name, pending, o, make([]BatchResult, len(drafts)))
	})
}

// Replace is [Branch.Replace] in this commit.
func (tx *Tx) Replace(name string, id uuid.UUID, draft Draft, opts ...WriteOption) error {
	return tx.do("replace", name, func() error {
		o, err := conditionsOf(opts, "position", "shared")
		if err != nil {
			return err
		}
		d := PendingMessage{Draft: draft}
		if err := tx.c.Store.Complete(&d, tx.c.Store.TextThreshold(), func() error { return tx.blobs.Hold(tx.ctx) }); err != nil {
			return err
		}
		return tx.replace(name, id, &d, o)
	})
}

// NewBranch is [Context.NewBranch] in this commit.
func (tx *Tx) NewBranch(name string, attrs ...ctxfolder.Member) error {
	return tx.addBranch("new branch", name, attrs, func(m *Metadata, line uuid.UUID) (*ctxfolder.Branch, error) {
		return branch.New(m, name, line)
	})
}

// Fork is [Branch.Fork] in this commit.
func (tx *Tx) Fork(name, from string, at int64, attrs ...ctxfolder.Member) error {
	return tx.addBranch("fork", name, attrs, func(m *Metadata, line uuid.UUID) (*ctxfolder.Branch, error) {
		length, err := tx.Len(from)
		if err != nil {
			return nil, err
		}
		return branch.Fork(m, name, from, at, length, line)
	})
}

func (tx *Tx) addBranch(op, name string, attrs []ctxfolder.Member, add func(*Metadata, uuid.UUID) (*ctxfolder.Branch, error)) error {
	return tx.edit(op, name, func(m *Metadata) error {
		line, err := uuid.NewV7()
		if err != nil {
			return err
		}
		added, err := add(m, line)
		if err != nil {
			return err
		}
		for _, a := range attrs {
			added.Extra.Set(a.Key, a.Value)
		}
		return nil
	})
}

// Rewind is [Branch.Rewind] in this commit.
func (tx *Tx) Rewind(name string, to int64) error {
	return tx.edit("rewind", name, func(m *Metadata) error {
		length, err := tx.Len(name)
		if err != nil {
			return err
		}
		line, err := uuid.NewV7()
		if err != nil {
			return err
		}
		_, err = branch.Rewind(m, name, to, length, line, tx.c.RemovalTime(m))
		return err
	})
}

// Switch is [Context.Switch] in this commit.
func (tx *Tx) Switch(name string) error {
	return tx.edit("switch", name, func(m *Metadata) error { return branch.Switch(m, name) })
}

// Remove is [Context.Remove] in this commit.
func (tx *Tx) Remove(name string) error {
	return tx.edit("remove", name, func(m *Metadata) error { return branch.Remove(m, name, tx.c.RemovalTime(m)) })
}

// Rename is [Context.Rename] in this commit.
func (tx *Tx) Rename(name, to string) error {
	return tx.edit("rename", name, func(m *Metadata) error { return branch.Rename(m, name, to) })
}

// Update is [Context.Update] in this commit.
func (tx *Tx) Update(f func(m *Metadata) error) error {
	return tx.edit("update", "", func(m *Metadata) error {
		fixed := m.Clone()
		if err := f(m); err != nil {
			return err
		}
		edited := m.Branches
		for i := range edited {
			prompt, err := tx.c.Store.ExternalisePrompt(edited[i].SystemPrompt, func() error { return tx.blobs.Hold(tx.ctx) })
			if err != nil {
				return err
			}
			edited[i].SystemPrompt = prompt
		}
		return restoreFixed(m, fixed, edited)
	})
}

// restoreFixed undoes what an update did to the members that other methods change. edited are the branches that it
// left.
func restoreFixed(m, fixed *Metadata, edited []ctxfolder.Branch) error {
	m.ID, m.Kind, m.ExternalID = fixed.ID, fixed.Kind, fixed.ExternalID
	m.Lines, m.Removed = fixed.Lines, fixed.Removed
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
}
