package chat

import (
	"context"
	"errors"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/exchange"
	"github.com/google/uuid"
)

// upload appends messages at their positions, and returns what the store has, read back. A repetition appends nothing.
func (c *Chat) upload(ctx context.Context, u *User, p *exchange.Upload) (done exchange.UploadComplete, err error) {
	done = exchange.UploadComplete{Heads: []exchange.Head{}, Digest: exchange.NewDigest().String()}
	id, err := exchange.SessionContext(p.SessionID)
	if err != nil {
		return done, err
	}
	if len(p.Messages) > 0 {
		if u.Full() {
			return done, errFull
		}
		if err := receive(ctx, u, id, p); err != nil {
			return done, err
		}
	}
	err = u.Store.Use(ctx, id, func(x *ctxdir.Context) error {
		done, err = confirm(ctx, x, p)
		return err
	})
	if errors.Is(err, ctxdir.ErrNotExist) && len(p.Messages) == 0 {
		err = nil // the server has nothing of it
	}
	return done, err
}

// receive appends messages, to a new context if there is none.
func receive(ctx context.Context, u *User, id uuid.UUID, p *exchange.Upload) error {
	drafts := make([]ctxdir.Draft, len(p.Messages))
	for i, m := range p.Messages {
		drafts[i] = ctxdir.Draft{ID: m.ID, Role: m.Role, Type: m.Kind, CreatedAt: m.CreatedAt, Body: m.Body}
	}
	add := func(x *ctxdir.Context) error {
		at := ctxdir.WriteOptions{Position: &p.From}
		_, err := x.Commit(ctx, func(tx *ctxdir.Tx) error { return tx.Append(x.Active().Name(), drafts...) }, at)
		return err
	}
	err := use(ctx, u, p.SessionID, p.Title, add)
	if !errors.Is(err, ctxdir.ErrNotExist) || id.String() != strings.ToLower(p.SessionID) {
		return err
	}
	x, err := u.Store.Create(ctx, ctxdir.Metadata{ID: id, Title: p.Title})
	if errors.Is(err, ctxdir.ErrExist) { // by another connection, meanwhile
		return u.Store.Use(ctx, id, add)
	}
	if err != nil {
		return err
	}
	return errors.Join(add(x), x.Close())
}

// confirm returns the heads of a context, and the digest of messages of its active branch.
func confirm(ctx context.Context, x *ctxdir.Context, p *exchange.Upload) (done exchange.UploadComplete, err error) {
	all, err := x.Branches(ctx)
	if err != nil {
		return done, err
	}
	active := x.Active()
	for _, info := range all {
		b, err := x.Branch(info.Name)
		if err != nil {
			return done, err
		}
		h := exchange.Head{Branch: info.Name}
		last, err := b.Last(ctx, 1)
		if err != nil {
			return done, err
		}
		for _, m := range last {
			h.Len, h.Last = m.Position+1, m.ID
		}
		if len(done.Heads) == exchange.MaxMessages {
			break
		}
		if done.Heads = append(done.Heads, h); h.Branch == active.Name() {
			n := len(done.Heads) - 1
			done.Heads[0], done.Heads[n] = done.Heads[n], done.Heads[0]
		}
	}
	end := int64(ctxdir.End)
	if n := len(p.Messages); n > 0 {
		end = p.From + int64(n)
	}
	digest := exchange.NewDigest()
	for m, err := range active.Messages(ctx, p.From, end) {
		if err == nil {
			err = m.Unavailable
		}
		if err != nil {
			return done, err
		}
		body, err := m.Body(ctx)
		if err != nil {
			return done, err
		}
		digest.Add(m.ID, body)
	}
	done.Digest = digest.String()
	return done, nil
}
