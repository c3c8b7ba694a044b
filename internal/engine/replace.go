package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/ctxdir/ctxdir/branch"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/views"
	"github.com/google/uuid"
)

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

// replace gives a message another body.
func (tx *Tx) replace(name string, id uuid.UUID, d *PendingMessage, o conditions) error {
	c := tx.c
	info, err := branch.Get(tx.m, name)
	if err != nil {
		return err
	}
	at, err := c.Find(tx.m, info.Line, id)
	if err != nil {
		return err
	}
	if at.Entry.IsErased() {
		return ErrErased // what a stream still writes must not bring its text back
	}
	if _, twice := tx.freshOn(at.Span.Line, id); twice {
		return fmt.Errorf("%w: one commit can store a message only once", ErrInvalid)
	}
	if o.position != nil && *o.position != at.Entry.Position {
		return fmt.Errorf("%w: expected %d, but the message is at %d", ErrPosition, *o.position, at.Entry.Position)
	}
	if !o.shared && branch.Showing(tx.m, at.Span.Line, at.Entry.Position) > 1 {
		return ErrShared
	}
	old, env, err := c.Loader.Envelope(at.Span, &at.Entry)
	if err != nil {
		return err
	}
	if old == nil {
		if env.Prev, err = c.MakeRoom(tx.m, at); err != nil {
			return err
		}
	}
	env.StoredAt = d.versionTime(&at.Entry)
	env.Role, env.Type, env.Body, env.Payloads = d.Role, d.Type, d.Stored, d.Refs
	env.References = d.kept(env.References)
	// A new version may repeat what the old one did, which the trash keeps.
	env.CopyOf, env.Repeats = union(env.CopyOf, d.CopyOf), union(env.Repeats, d.Repeats)
	if !d.CreatedAt.IsZero() {
		env.CreatedAt = d.CreatedAt
	}
	tx.supersede(at, old, env, d)
	return nil
}

// union returns the ids in a and those that only b has.
func union(a, b []uuid.UUID) []uuid.UUID {
	for _, id := range b {
		if !slices.Contains(a, id) {
			a = append(a, id)
		}
	}
	return a
}

// storeAgain makes a draft the content of an unavailable message with the same id; why is the reason it is unavailable.
func (tx *Tx) storeAgain(name string, at Place, d *PendingMessage, why error) error {
	if !errors.Is(why, ErrDamaged) && !errors.Is(why, fs.ErrNotExist) {
		return why // the message may be whole, and the draft may differ from it
	}
	prev, err := tx.c.MakeRoom(tx.m, at)
	if err != nil {
		return err
	}
	storedAt := d.versionTime(&at.Entry)
	if d.storedAt.Equal(at.Entry.StoredAt()) { // the same version, from another store
		storedAt = d.storedAt
	}
	tx.supersede(at, nil, &message.Envelope{
		ID: d.ID, Line: at.Span.Line, Position: at.Entry.Position, Prev: prev, StoredAt: storedAt, Branch: name,
		Role: d.Role, Type: d.Type, CreatedAt: d.CreatedAt, OriginID: d.OriginID, CopyOf: d.CopyOf, Repeats: d.Repeats, Source: d.Source,
		Body: d.Stored, Payloads: d.Refs, References: d.kept(nil),
	}, d)
	return nil
}

// supersede adds another version of a message. The lock is held until its file exists: a slower replacement must not
// put its older version over a newer one.
func (tx *Tx) supersede(at Place, old []byte, env *message.Envelope, d *PendingMessage) {
	raw := env.AppendTo(nil)
	tx.put(d.Payloads, MessageItem(journal.Replace, env, raw, at.Entry.Size), nil)
	stored := &BatchResult{AppendResult: AppendResult{ID: env.ID, Position: env.Position}}
	tx.fresh[env.ID] = append(tx.fresh[env.ID], freshMessage{at.Span.Line, d, stored})
	tx.durable = append(tx.durable, func() { tx.c.Superseded(at, old, env, raw) })
}

// MakeRoom prepares another version of an unavailable message. It returns the id of the previous message. A damaged file
// moves to the trash.
func (c *Context) MakeRoom(m *Metadata, at Place) (prev uuid.UUID, err error) {
	line, ok := m.Line(at.Span.Line)
	if !ok {
		return prev, fmt.Errorf("%w: line %s not found", ErrMetadata, at.Span.Line)
	}
	if prev, err = c.IDBefore(m, line.ID, at.Entry.Position); err != nil {
		return prev, err
	}
	if _, is, _ := views.Read(c.Dir, line.Folder, &at.Entry); is == views.Damaged {
		err = c.Dir.SetAside(c.Dir.MessagePath(line.Folder, at.Entry.ID))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return prev, err
}

// Supersede commits another version of a message, after the payloads it needs, and makes its file. An old version goes
// to trash. The caller holds the lock.
func (c *Context) Supersede(at Place, old []byte, env *message.Envelope, payloads []Item) error {
	raw := env.AppendTo(nil)
	items := slices.Concat(payloads, []Item{MessageItem(journal.Replace, env, raw, at.Entry.Size)})
	if err := c.CommitItems(items); err != nil {
		return err
	}
	c.Superseded(at, old, env, raw)
	return nil
}

// Superseded makes the file of a version that is committed, unless the message is archived. An old version goes to trash.
// The caller holds the lock.
func (c *Context) Superseded(at Place, old []byte, env *message.Envelope, raw []byte) {
	if old != nil {
		_ = c.Dir.TrashVersion(at.Span.Line, at.Entry.Position, old, env.StoredAt)
	}
	if l, ok := c.Current().Line(at.Span.Line); ok && at.Entry.Position < l.Archived {
		_ = c.Dir.FS.Remove(c.Dir.MessagePath(at.Span.Folder, env.ID)) // of an edit; readers find it stale
		return
	}
	// A file that cannot be made is not an error: the log has the version, and readers take it from there.
	_ = c.Dir.ReplaceMessage(at.Span.Folder, env.ID, raw, env.StoredAt)
}
