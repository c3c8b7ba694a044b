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
	return public(Error{Op: "replace", Context: b.c.dir.ID, Branch: b.name, ID: id}, err)
}

func (b *Branch) replace(ctx context.Context, id uuid.UUID, told Draft, o replaceOptions) error {
	c := b.c
	if c.store.readOnly {
		return ErrReadOnly // fail before a blob is made
	}
	d := draft{Draft: told}
	blobs := blobsInUse{s: c.store}
	defer blobs.release()
	if err := c.store.complete(&d, c.store.TextThreshold(), func() error { return blobs.hold(ctx) }); err != nil {
		return err
	}
	// The lock is held until the file exists: a slower replacement must not put its older version over a newer one.
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
		if old == nil {
			if env.Prev, env.File, err = c.makeRoom(m, at); err != nil {
				return err
			}
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

// storeAgain makes a draft the content of an unavailable message with the same id; why is the reason it is unavailable.
// The caller holds the lock.
func (c *Context) storeAgain(m *Metadata, name string, at place, d *draft, why error) error {
	if !errors.Is(why, ErrDamaged) && !errors.Is(why, fs.ErrNotExist) {
		return why // the message may be whole, and the draft may differ from it
	}
	prev, file, err := c.makeRoom(m, at)
	if err != nil {
		return err
	}
	return c.supersede(at, nil, &message.Envelope{
		ID: d.ID, Line: at.span.Line, Position: at.entry.Position, Prev: prev, File: file, StoredAt: at.entry.Next(), Branch: name,
		Role: d.Role, Type: d.Type, CreatedAt: d.CreatedAt, OriginID: d.OriginID, Source: d.Source, Body: d.stored, Payloads: d.refs,
	}, c.ride(nil, d.payloads, map[index.Sum]bool{}))
}

// makeRoom prepares another version of an unavailable message. It returns the id of the previous message, and the name
// of the file where that differs from the id. A damaged file goes to trash.
func (c *Context) makeRoom(m *Metadata, at place) (prev, file uuid.UUID, err error) {
	line, ok := m.Line(at.span.Line)
	if !ok {
		return prev, file, fmt.Errorf("%w: line %s is missing", ErrMetadata, at.span.Line)
	}
	if prev, err = c.idBefore(m, line.ID, at.entry.Position); err != nil {
		return prev, file, err
	}
	_, is, why := c.log.ReadFile(line.ID, &at.entry, line.Folder)
	if is == index.FileDamaged {
		if err := c.dir.SetAside(c.dir.MessagePath(line.Folder, at.entry.FileID())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return prev, file, err
		}
	}
	taken := errors.Is(why, index.ErrTaken)
	if at.entry.Lost == "" && !taken {
		return prev, at.entry.File, nil
	}
	// The row of a lost message does not contain the file's name.
	file, err = c.fileFor(m, line, at.entry.ID, !taken)
	return prev, file, err
}

// supersede commits another version of a message, after the payloads it needs, and makes its file. An old version goes
// to trash. The caller holds the lock.
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

// commit writes items to the journal and waits until they are durable. The caller holds the lock.
func (c *Context) commit(items []index.Item) error {
	return c.commitWith(items, (*index.Commit).Wait)
}

// commitDurably is commit, regardless of the store's durability option.
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
