package ctxdir

import (
	"context"
	"errors"
	"slices"

	"github.com/ctxdir/ctxdir/branch"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// ReplaceOption changes one replace.
type ReplaceOption func(*replaceOptions)

type replaceOptions struct{ shared bool }

// Shared lets Replace change a message that other branches show too.
func Shared() ReplaceOption { return func(o *replaceOptions) { o.shared = true } }

// Replace gives the message of an id another body (requirement "replace a message": streaming updates). Its
// position stays; the old version goes to the context's trash. It is refused with [ErrShared] when another
// branch shows the message too, unless [Shared] is given.
func (b *Branch) Replace(ctx context.Context, id uuid.UUID, d Draft, opts ...ReplaceOption) error {
	var o replaceOptions
	for _, f := range opts {
		f(&o)
	}
	err := b.c.use(func() error { return b.replace(ctx, id, d, o) })
	return public(Error{Op: "replace", Context: b.c.dir.ID, Branch: b.name, ID: id}, err)
}

func (b *Branch) replace(ctx context.Context, id uuid.UUID, told Draft, o replaceOptions) error {
	c := b.c
	if c.store.readOnly {
		return ErrReadOnly // before a blob is made
	}
	d := draft{Draft: told}
	blobs := blobsInUse{s: c.store}
	defer blobs.release()
	if err := c.store.complete(&d, c.store.TextThreshold(), func() error { return blobs.hold(ctx) }); err != nil {
		return err
	}
	// The lock is held until the file is there: a slower replacement must not put its older version over a
	// newer one.
	err := c.write(ctx, func(m *Metadata) error {
		info, err := branch.Get(m, b.name)
		if err != nil {
			return err
		}
		at, err := c.find(m, info.Line, id)
		if err != nil {
			return err
		}
		if !o.shared && branch.Showing(m, at.span.Line, at.entry.Position) > 1 {
			return ErrShared
		}
		old, env, err := c.load.Envelope(at.span, &at.entry)
		if err != nil {
			return err
		}
		env.StoredAt = at.entry.Next()
		env.Role, env.Type, env.Body, env.Payloads = d.Role, d.Type, d.stored, d.refs
		if !d.CreatedAt.IsZero() {
			env.CreatedAt = d.CreatedAt
		}
		return c.supersede(at, old, env, c.ride(nil, d.payloads, map[index.Sum]bool{}))
	})
	c.foldIfDue()
	return err
}

// supersede commits another version of a message, behind the payloads it needs, and makes its file. The old version goes to trash,
// if there is one. The lock is held.
func (c *Context) supersede(at place, old []byte, env *message.Envelope, payloads []index.Item) error {
	raw := env.AppendTo(nil)
	items := slices.Concat(payloads, []index.Item{{Kind: index.KindReplace, Envelope: env, Body: raw, Was: at.entry.Size}})
	if err := c.commit(items); err != nil {
		return err
	}
	if old != nil {
		_ = c.dir.TrashVersion(at.span.Line, at.entry.Position, old, env.StoredAt)
	}
	// A file that cannot be made is no error: the journal holds the version, and the next fold makes the file.
	_ = c.dir.ReplaceMessage(at.span.Folder, env.FileID(), raw, env.StoredAt)
	return nil
}

// commit writes items to the journal and waits until they are durable. The lock is held.
func (c *Context) commit(items []index.Item) error {
	return c.commitWith(items, (*index.Commit).Wait)
}

// commitDurably is commit whatever durability the store was opened with.
func (c *Context) commitDurably(items []index.Item) error {
	return c.commitWith(items, (*index.Commit).Sync)
}

func (c *Context) commitWith(items []index.Item, wait func(*index.Commit) error) error {
	commit := c.log.Append(items)
	if commit.Err != nil {
		return commit.Err
	}
	c.putLater(items, commit.Journal())
	err := wait(commit)
	if err == nil {
		return nil
	}
	ok, rerr := c.log.Recommit(commit)
	if ok {
		return nil
	}
	return errors.Join(err, rerr)
}
