package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/google/uuid"
)

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

// add appends messages to a branch. results has one for each draft; a draft whose result has an error already is left
// out. In a batch, a draft that is refused for its content gets an error there.
func (tx *Tx) add(name string, drafts []PendingMessage, o conditions, results []BatchResult) error {
	info, err := branch.Get(tx.m, name)
	if err != nil {
		return err
	}
	line, ok := tx.m.Line(info.Line)
	if !ok {
		return fmt.Errorf("%w: line %s not found", ErrMetadata, info.Line)
	}
	next, err := tx.end(line.ID)
	if err != nil {
		return err
	}
	if o.position != nil && *o.position != next && (o.exact || !tx.isRetry(line.ID, drafts, *o.position)) {
		return fmt.Errorf("%w: expected %d, but the next one is %d", ErrPosition, *o.position, next)
	}
	prev, err := tx.idBefore(line.ID, next)
	if err != nil {
		return err
	}
	now := index.Now()
	for i := range drafts {
		d, r := &drafts[i], &results[i]
		tx.results = append(tx.results, r)
		if r.Err != nil {
			continue
		}
		err := tx.addOne(name, line, d, r, next, prev, now)
		if err != nil {
			err = Wrap(Error{Op: "append", Context: tx.c.Dir.ID, Branch: name, ID: d.ID}, err)
			if !tx.batch || !isDraftError(err) {
				return err
			}
			r.Err = err
			continue
		}
		if !r.Existed {
			prev = r.ID
			next++
		}
	}
	return nil
}

// addOne appends one message at the position next, unless it exists.
func (tx *Tx) addOne(
	name string, line *ctxfolder.Line, d *PendingMessage, r *BatchResult, next int64, prev uuid.UUID, now time.Time,
) error {
	there, err := tx.findExisting(name, line.ID, d, r)
	if err != nil {
		return err
	}
	if there != nil {
		r.AppendResult, tx.existed = *there, append(tx.existed, r)
		return nil
	}
	if err := tx.stayErased(d); err != nil {
		return err
	}
	if d.Gone != archive.Here && tx.batch {
		return fmt.Errorf("%w: an unavailable message needs a commit", ErrInvalid)
	}
	env := &message.Envelope{
		ID: d.ID, Line: line.ID, Position: next, Prev: prev, StoredAt: d.commitTime(now), Branch: name,
		Role: d.Role, Type: d.Type, CreatedAt: d.CreatedAt, OriginID: d.OriginID, CopyOf: d.CopyOf, Repeats: d.Repeats,
		Source: d.Source, Body: d.Stored, References: d.kept(nil), Payloads: d.Refs,
	}
	if env.ID == uuid.Nil {
		if env.ID, err = uuid.NewV7(); err != nil {
			return err
		}
	}
	raw := env.AppendTo(make([]byte, 0, len(d.Stored)+512))
	env.Body, env.Source, env.References = nil, nil, nil
	tx.put(d.Payloads, MessageItem(journal.Add, env, raw, 0), r)
	if d.Gone != archive.Here {
		if err := tx.addGone(line.ID, next, d.Gone, int64(len(raw))); err != nil {
			return err
		}
	}
	r.AppendResult = AppendResult{ID: env.ID, Position: next}
	tx.fresh[env.ID] = append(tx.fresh[env.ID], freshMessage{line.ID, d, r})
	if tx.lines[line.ID] == nil {
		tx.lines[line.ID] = &txLine{from: next}
	}
	l := tx.lines[line.ID]
	l.ids = append(l.ids, env.ID)
	return nil
}

// isRetry reports whether the first message is already at the expected position: then this is a retry.
func (tx *Tx) isRetry(line uuid.UUID, drafts []PendingMessage, expect int64) bool {
	if len(drafts) == 0 || drafts[0].ID == uuid.Nil {
		return false
	}
	p, err := tx.c.Find(tx.m, line, drafts[0].ID)
	return err == nil && p.Entry.Position == expect && !p.Entry.IsErased()
}

// findExisting looks for a message with the draft's id. It returns its place if the bodies are equal, and fails with
// ErrConflict if they differ. It stores a damaged or lost message again. One that was erased does not count.
func (tx *Tx) findExisting(name string, line uuid.UUID, d *PendingMessage, r *BatchResult) (there *AppendResult, err error) {
	if d.ID == uuid.Nil {
		return nil, nil
	}
	if f, ok := tx.freshOn(line, d.ID); ok {
		if !bytes.Equal(f.draft.Body, d.Body) {
			return nil, ErrConflict
		}
		there := f.result.AppendResult
		there.Existed = true
		return &there, nil
	}
	if isNew, err := tx.c.Index.IsNew(d.ID); isNew || err != nil {
		return nil, err
	}
	p, err := tx.c.Find(tx.m, line, d.ID)
	if errors.Is(err, ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if d.Gone != archive.Here {
		return &AppendResult{ID: d.ID, Position: p.Entry.Position, Existed: true}, nil
	}
	old, err := tx.c.Loader.Load(context.Background(), p.Span, &p.Entry)
	if err != nil {
		return nil, err
	}
	if errors.Is(old.Unavailable, ErrErased) {
		return nil, nil
	}
	there = &AppendResult{ID: d.ID, Position: p.Entry.Position, Existed: true}
	if old.Unavailable != nil {
		if err := tx.storeAgain(name, p, d, old.Unavailable); err != nil {
			return nil, err
		}
		r.AppendResult = *there
		return there, nil
	}
	if !bytes.Equal(old.Stored, d.Stored) {
		// The threshold may have been different.
		body, err := old.Body(context.Background())
		if err != nil {
			return nil, err // it is unknown whether the bodies are equal
		}
		if !bytes.Equal(body, d.Body) {
			return nil, ErrConflict
		}
	}
	return there, nil
}
