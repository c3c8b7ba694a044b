package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/ctxdir/ctxdir/branch"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// ReplaceOption configures one replace.
type ReplaceOption func(*replaceOptions)

type replaceOptions struct{ shared bool }

// Shared lets Replace change a message that other branches show too.
func Shared() ReplaceOption { return func(o *replaceOptions) { o.shared = true } }

// Replace gives the message with an id another body, for example during streaming. The position stays; the old version
// goes to the context's trash. Replace fails with [ErrShared] when another branch shows the message too, unless
// [Shared] is given.
func (b *Branch) Replace(ctx context.Context, id uuid.UUID, d Draft, opts ...ReplaceOption) error {
	var o replaceOptions
	for _, f := range opts {
		f(&o)
	}
	err := b.c.use(func() error { return b.replace(ctx, id, d, o) })
	return Wrap(Error{Op: "replace", Context: b.c.Dir.ID, Branch: b.name, ID: id}, err)
}

func (b *Branch) replace(ctx context.Context, id uuid.UUID, draft Draft, o replaceOptions) error {
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
	// The lock is held until the file exists: a slower replacement must not put its older version over a newer one.
	err := c.Write(ctx, func(m *Metadata) error {
		info, err := branch.Get(m, b.name)
		if err != nil {
			return err
		}
		at, err := c.find(m, info.Line, id)
		if err != nil {
			return err
		}
		if !o.shared && branch.Showing(m, at.Span.Line, at.Entry.Position) > 1 {
			return ErrShared
		}
		old, env, err := c.Loader.Envelope(at.Span, &at.Entry)
		if err != nil {
			return err
		}
		if old == nil {
			if env.Prev, env.File, err = c.MakeRoom(m, at); err != nil {
				return err
			}
		}
		env.StoredAt = at.Entry.Next()
		env.Role, env.Type, env.Body, env.Payloads = d.Role, d.Type, d.Stored, d.Refs
		if !d.CreatedAt.IsZero() {
			env.CreatedAt = d.CreatedAt
		}
		return c.Supersede(at, old, env, c.addPayloads(nil, d.Payloads, map[index.Sum]bool{}))
	})
	c.FoldIfDue()
	return err
}

// storeAgain makes a draft the content of an unavailable message with the same id; why is the reason it is unavailable.
// The caller holds the lock.
func (c *Context) storeAgain(m *Metadata, name string, at Place, d *PendingMessage, why error) error {
	if !errors.Is(why, ErrDamaged) && !errors.Is(why, fs.ErrNotExist) {
		return why // the message may be whole, and the draft may differ from it
	}
	prev, file, err := c.MakeRoom(m, at)
	if err != nil {
		return err
	}
	return c.Supersede(at, nil, &message.Envelope{
		ID: d.ID, Line: at.Span.Line, Position: at.Entry.Position, Prev: prev, File: file, StoredAt: at.Entry.Next(), Branch: name,
		Role: d.Role, Type: d.Type, CreatedAt: d.CreatedAt, OriginID: d.OriginID, Source: d.Source, Body: d.Stored, Payloads: d.Refs,
	}, c.addPayloads(nil, d.Payloads, map[index.Sum]bool{}))
}

// MakeRoom prepares another version of an unavailable message. It returns the id of the previous message, and the name
// of the file where that differs from the id. A damaged file moves to the trash.
func (c *Context) MakeRoom(m *Metadata, at Place) (prev, file uuid.UUID, err error) {
	line, ok := m.Line(at.Span.Line)
	if !ok {
		return prev, file, fmt.Errorf("%w: line %s is missing", ErrMetadata, at.Span.Line)
	}
	if prev, err = c.IDBefore(m, line.ID, at.Entry.Position); err != nil {
		return prev, file, err
	}
	_, is, why := c.Log.ReadFile(line.ID, &at.Entry, line.Folder)
	if is == index.FileDamaged {
		if err := c.Dir.SetAside(c.Dir.MessagePath(line.Folder, at.Entry.FileID())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return prev, file, err
		}
	}
	taken := errors.Is(why, index.ErrTaken)
	if at.Entry.Lost == "" && !taken {
		return prev, at.Entry.File, nil
	}
	// The row of a lost message does not contain the file's name.
	file, err = c.FileFor(m, line, at.Entry.ID, !taken)
	return prev, file, err
}

// Supersede commits another version of a message, after the payloads it needs, and makes its file. An old version goes
// to trash. The caller holds the lock.
func (c *Context) Supersede(at Place, old []byte, env *message.Envelope, payloads []index.Item) error {
	raw := env.AppendTo(nil)
	items := slices.Concat(payloads, []index.Item{{Kind: index.KindReplace, Envelope: env, Body: raw, Was: at.Entry.Size}})
	if err := c.commit(items); err != nil {
		return err
	}
	if old != nil {
		_ = c.Dir.TrashVersion(at.Span.Line, at.Entry.Position, old, env.StoredAt)
	}
	// A file that cannot be made is no error: the journal holds the version, and the next fold makes the file.
	_ = c.Dir.ReplaceMessage(at.Span.Folder, env.FileID(), raw, env.StoredAt)
	return nil
}

// commit writes items to the journal and waits until they are durable. The caller holds the lock.
func (c *Context) commit(items []index.Item) error {
	return c.wait(c.Log.Append(items), items, (*index.Commit).Wait)
}

// CommitDurably is commit, regardless of the store's durability option.
func (c *Context) CommitDurably(items []index.Item) error {
	return c.wait(c.Log.Append(items), items, (*index.Commit).Sync)
}

// CommitGroup is CommitDurably for items that belong together: a crash leaves all of them, or none.
func (c *Context) CommitGroup(items []index.Item) error {
	return c.wait(c.Log.AppendGroup(items), items, (*index.Commit).Sync)
}

// wait waits until a commit is durable.
func (c *Context) wait(commit *index.Commit, items []index.Item, wait func(*index.Commit) error) error {
	if commit.Err != nil {
		return commit.Err
	}
	c.queueBlobs(items, commit.Journal())
	err := wait(commit)
	if err == nil {
		return nil
	}
	ok, rerr := c.Log.Recommit(commit)
	if ok {
		return nil
	}
	return errors.Join(err, rerr)
}
