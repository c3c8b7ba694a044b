package engine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"time"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/google/uuid"
)

// completeCopy fills in a draft from its envelope, which comes from another store, and stores the payloads that this store
// lacks.
func (s *Store) completeCopy(d *PendingMessage, hold func() error) error {
	if int64(len(d.Envelope)) > s.Options.MaxMessage {
		return fmt.Errorf("%w: %d bytes exceed the limit of %d", ErrTooLarge, len(d.Envelope), s.Options.MaxMessage)
	}
	env, err := message.Parse(d.Envelope)
	if err != nil {
		return fmt.Errorf("envelope: %w", err)
	}
	if d.ID != uuid.Nil && d.ID != env.ID {
		return fmt.Errorf("%w: the envelope is that of message %s", ErrInvalid, env.ID)
	}
	d.ID, d.Role, d.Type, d.CreatedAt, d.OriginID = env.ID, env.Role, env.Type, env.CreatedAt, env.OriginID
	d.CopyOf, d.Repeats, d.Source, d.References = env.CopyOf, env.Repeats, env.Source, env.References
	d.Body, d.Stored, d.Refs = env.Body, env.Body, blob.Count(env.Body)
	d.storedAt = env.StoredAt.Truncate(time.Microsecond)
	if now := index.Now(); d.storedAt.After(now) { // what is removed stays in the trash as long as its newest message is new
		d.storedAt = now
	}
	refs, err := blob.Refs(env.Body)
	if err != nil {
		return fmt.Errorf("envelope: %w: %w", ErrInvalid, err)
	}
	seen := make(map[blob.Sum]bool, len(refs))
	for _, r := range refs {
		if r.Problem != "" || seen[r.Sum] {
			continue
		}
		seen[r.Sum] = true
		if err := s.takePayload(d, r.Sum, hold); err != nil {
			return fmt.Errorf("payload %s: %w", r.Sum, err)
		}
	}
	return nil
}

// takePayload stores a payload to which an envelope refers, unless it is there. The caller's hold keeps a sweep away from
// it until the record that refers to it is written.
func (s *Store) takePayload(d *PendingMessage, sum blob.Sum, hold func() error) error {
	if err := hold(); err != nil {
		return err
	}
	if there, err := s.Blobs.Share(sum, true); there || err != nil {
		return err
	}
	if d.Payload == nil {
		return fmt.Errorf("%w: the store lacks it", ErrNotExist)
	}
	r, size, err := d.Payload(sum)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // readers find it unavailable, as in the other store
	}
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	var is blob.Sum
	if size <= maxJournalPayload {
		var b []byte
		if b, err = io.ReadAll(io.LimitReader(r, maxJournalPayload+1)); err == nil {
			if is = blob.SumOf(b); is == sum {
				_, err = s.PutPayload(d, hold)(b)
			}
		}
	} else {
		is, _, _, err = s.Blobs.PutReader(&limitedReader{r, d})
	}
	if err == nil && is != sum {
		err = fmt.Errorf("%w: its content has the hash %s", ErrDamaged, is)
	}
	return err
}

// completeGone fills in a draft of a message that another store could not show: a record for its position, without any
// content, which the commit declares gone.
func completeGone(d *PendingMessage) error {
	if d.ID == uuid.Nil || d.Gone != archive.Erased && d.Gone != archive.Lost {
		return fmt.Errorf("%w: an unavailable message needs an id, and is erased or damaged", ErrInvalid)
	}
	d.Draft = Draft{ID: d.ID, Gone: d.Gone, Body: []byte("{}")}
	d.Stored = d.Body
	return nil
}

// stayErased makes a message of another store one that is erased, if the context has it on another line, erased.
func (tx *Tx) stayErased(d *PendingMessage) error {
	if d.Envelope == nil {
		return nil
	}
	if isNew, err := tx.c.Index.IsNew(d.ID); isNew || err != nil {
		return err
	}
	for i := range tx.m.Lines {
		e, ok, err := tx.c.Index.Find(tx.m.Lines[i].ID, d.ID, math.MaxInt64)
		if err != nil {
			return err
		}
		if ok && e.IsErased() {
			*d = PendingMessage{Draft: Draft{ID: d.ID, Gone: archive.Erased}}
			return completeGone(d)
		}
	}
	return nil
}

// addGone adds the record by which a message that this commit appends is gone.
func (tx *Tx) addGone(line uuid.UUID, position int64, gone archive.Gone, size int64) error {
	counts, _, err := tx.c.Index.Counts(line)
	if err != nil {
		return err
	}
	tx.bytes[line] -= size
	tx.items[len(tx.items)-1].Envelope = nil // it gets no file
	item, err := index.GoneItem(line, position, counts.Bytes+tx.bytes[line], gone == archive.Lost)
	if err == nil {
		tx.put(nil, Item{Item: item}, nil)
	}
	return err
}

// commitTime returns when the version of a message counts as committed: as in the store where it was, if it was.
func (d *PendingMessage) commitTime(now time.Time) time.Time {
	if d.storedAt.IsZero() {
		return now
	}
	return d.storedAt
}

// versionTime is commitTime for another version of a message: later than the one before.
func (d *PendingMessage) versionTime(before *index.Entry) time.Time {
	if d.storedAt.After(before.StoredAt()) {
		return d.storedAt
	}
	return before.Next()
}
