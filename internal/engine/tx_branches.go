package engine

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// Len returns the number of messages that a branch shows, with those that this commit appends.
func (tx *Tx) Len(name string) (int64, error) {
	b, err := branch.Get(tx.m, name)
	if err != nil {
		return 0, err
	}
	return tx.end(b.Line)
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
		if m.UpdatedAt.After(fixed.UpdatedAt) {
			tx.updatedAt = m.UpdatedAt
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
