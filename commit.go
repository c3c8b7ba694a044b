package ctxdir

import (
	"context"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// Tx is a commit in preparation: see [Context.Commit]. Its methods do what the methods of [Branch] and [Context] of the
// same name do, as one commit. Each sees what the methods before it did. When one fails, the commit fails.
type Tx struct {
	e *engine.Tx
}

// CommitResult is the result of a commit.
type CommitResult struct {
	Sequence uint64         // the number of the newest commit now, as in [Summary].Sequence
	Appended []AppendResult // of the appended messages, in order
}

// Commit makes the changes of f one commit: after a crash, all of them are there or none. One fdatasync covers it, as
// for an append. So a message and the state that belongs to it change together:
//
//	_, err := c.Commit(ctx, func(tx *ctxdir.Tx) error {
//		tx.Rewind("main", 4)
//		tx.Append("main", drafts...)
//		return tx.Update(func(m *ctxdir.Metadata) error { m.State = state; return nil })
//	})
//
// f runs under the lock of the context, on its newest state, and may run a second time: it must change nothing but tx,
// and must not write to the context in another way. If f returns an error, nothing is committed. Commit
// takes a Position, if it appends a message, and a Sequence.
func (c *Context) Commit(ctx context.Context, f func(tx *Tx) error, opts ...WriteOptions) (CommitResult, error) {
	var failed error
	done, err := c.e.Commit(ctx, func(e *engine.Tx) error {
		failed = f(&Tx{e})
		return failed
	}, writeOptions(opts)...)
	if failed != nil {
		return CommitResult{}, failed
	}
	result := CommitResult{Sequence: done.Sequence}
	for _, r := range done.Appended {
		result.Appended = append(result.Appended, AppendResult{ID: r.ID, Position: r.Position, Existed: r.Existed})
	}
	return result, err
}

// Metadata returns the metadata as the commit leaves it so far.
func (tx *Tx) Metadata() *Metadata { return metadata(tx.e.Metadata()) }

// Len returns the number of messages that a branch shows, including those that the commit appends.
func (tx *Tx) Len(branch string) (int64, error) {
	return tx.e.Len(branch)
}

// Append adds messages at the end of a branch. Unlike [Branch.AppendBatch], it fails if one message is refused.
func (tx *Tx) Append(branch string, drafts ...Draft) error {
	return tx.e.Append(branch, engineDrafts(drafts))
}

// Replace gives a message another body. It cannot replace a message that the same commit appends. It takes a Position
// and Shared.
func (tx *Tx) Replace(branch string, id uuid.UUID, d Draft, opts ...WriteOptions) error {
	return tx.e.Replace(branch, id, d.engine(), writeOptions(opts)...)
}

// NewBranch adds a branch without messages.
func (tx *Tx) NewBranch(name string) error { return tx.e.NewBranch(name) }

// Fork adds a branch that begins with the first n messages of the branch from.
func (tx *Tx) Fork(name, from string, n int64) error { return tx.e.Fork(name, from, n) }

// Rewind makes a branch show only its first n messages.
func (tx *Tx) Rewind(branch string, n int64) error { return tx.e.Rewind(branch, n) }

// Switch makes a branch the active one.
func (tx *Tx) Switch(branch string) error { return tx.e.Switch(branch) }

// RenameBranch renames a branch. The folder of its messages keeps its name.
func (tx *Tx) RenameBranch(branch, to string) error { return tx.e.Rename(branch, to) }

// RemoveBranch removes a branch, but not the active one.
func (tx *Tx) RemoveBranch(branch string) error { return tx.e.Remove(branch) }

// Update changes the same members of the metadata as [Context.Update].
func (tx *Tx) Update(f func(m *Metadata) error) error { return tx.e.Update(updateOf(f)) }
