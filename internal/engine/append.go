package engine

import (
	"context"
	"slices"

	"github.com/google/uuid"
)

// Append adds one message at the end of the branch and returns its position. With full durability the message is on
// disk when Append returns: exactly one fdatasync, which concurrent appends share, has covered it.
//
// A retry is safe. If a message has the ID and an equal body, Append returns its position; if its body differs, Append
// fails with [ErrConflict]. If that message is damaged or lost, there is nothing to compare: the body becomes its
// content again, in its place. An error that wraps [ErrDurability] leaves open whether the message is there. ctx
// cancels waiting for the lock, never a commit half-way.
func (b *Branch) Append(ctx context.Context, d Draft, opts ...WriteOption) (AppendResult, error) {
	results, err := b.AppendBatch(ctx, []Draft{d}, opts...)
	if err != nil {
		return AppendResult{}, err
	}
	return results[0].AppendResult, results[0].Err
}

// AppendBatch adds messages in order, with one commit and one fdatasync for all, and writes the files in parallel. The
// results report for each message whether it is durable. If a message is refused for its content, the others are still
// stored. An error means that the batch stopped early, or before the first message. The stored messages are then the
// first ones of the batch.
func (b *Branch) AppendBatch(ctx context.Context, drafts []Draft, opts ...WriteOption) ([]BatchResult, error) {
	results, err := Use(b.c, func() ([]BatchResult, error) { return b.appendBatch(ctx, drafts, opts) })
	return results, b.fail("append", err)
}

func (b *Branch) appendBatch(ctx context.Context, drafts []Draft, opts []WriteOption) ([]BatchResult, error) {
	c := b.c
	o, err := conditionsOf(opts, "position", "sequence")
	if err != nil {
		return nil, err
	}
	if c.Store.ReadOnly {
		return nil, b.fail("append", ErrReadOnly) // before any blob is made
	}
	blobs := BlobHold{Store: c.Store}
	defer blobs.Release()
	pending, refused := c.Store.completeAll(drafts, c.Store.TextThreshold(), func() error { return blobs.Hold(ctx) })
	for i := range refused {
		err := Wrap(Error{Op: "append", Context: c.Dir.ID, Branch: b.name, ID: drafts[i].ID}, refused[i].Err)
		if refused[i].Err = err; err != nil && !isDraftError(err) {
			return nil, err
		}
	}
	results := refused
	tx, err := c.run(ctx, true, conditions{sequence: o.sequence}, func(tx *Tx) error {
		results = slices.Clone(refused)
		return tx.add(b.name, pending, o, results)
	})
	if err = b.fail("append", err); err != nil {
		for i := range results {
			if r := &results[i]; r.Err == nil && !tx.stored[r] {
				r.Err = err
			}
		}
	}
	return results, err
}

// Replace gives the message with an id another body, for example during streaming. The position stays; the old version
// goes to the context's trash. Replace fails with [ErrErased] if the message was erased, and with [ErrShared] when another
// branch shows it too, unless [Shared] is given.
func (b *Branch) Replace(ctx context.Context, id uuid.UUID, d Draft, opts ...WriteOption) error {
	o, err := conditionsOf(opts, "position", "sequence", "shared")
	if err == nil {
		err = b.c.use(func() error { return b.replace(ctx, id, d, o) })
	}
	return Wrap(Error{Op: "replace", Context: b.c.Dir.ID, Branch: b.name, ID: id}, err)
}

func (b *Branch) replace(ctx context.Context, id uuid.UUID, draft Draft, o conditions) error {
	c := b.c
	if c.Store.ReadOnly {
		return ErrReadOnly // fail before a blob is made
	}
	d := PendingMessage{Draft: draft}
	blobs := BlobHold{Store: c.Store}
	defer blobs.Release()
	if err := c.Store.Complete(&d, c.Store.TextThreshold(), func() error { return blobs.Hold(ctx) }); err != nil {
		return err
	}
	_, err := c.run(ctx, false, conditions{sequence: o.sequence}, func(tx *Tx) error { return tx.replace(b.name, id, &d, o) })
	return err
}
