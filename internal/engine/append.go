package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/google/uuid"
)

// Draft is a message to be stored. Only Body is needed.
type Draft struct {
	ID        uuid.UUID // uuid.Nil: a new UUIDv7
	Role      string    // empty: read from the body, as far as the engine knows its form
	Type      string    // likewise
	CreatedAt time.Time // likewise
	OriginID  string    // the id that the message has elsewhere
	// CopyOf and Repeats name messages of the context, which an erase also erases: see [message.Envelope].
	CopyOf, Repeats []uuid.UUID
	Source          json.RawMessage
	// References are an array of references to lines of files, which the engine keeps as it is.
	References json.RawMessage
	Body       json.RawMessage // the framework's object; kept byte for byte but for insignificant white space

	// Attachments are payloads that the engine reads from elsewhere: base64 of each stands in the body.
	Attachments []Attachment
}

// maxReferences bounds the references of a draft, in bytes.
const maxReferences = 1 << 20

// AppendResult is the place of a stored message.
type AppendResult struct {
	ID       uuid.UUID
	Position int64
	Existed  bool // it was there before: with equal content, or damaged or lost
}

// BatchResult is the outcome for one message of a batch: the message is durable, or Err says why not.
type BatchResult struct {
	AppendResult
	Err error
}

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

// isDraftError reports whether an error is about the draft itself: the rest of a batch can then be stored without it.
// After any other error, as of a full disk, the rest is not stored: a retry would change the order of the messages.
func isDraftError(err error) bool {
	ofDraft := []error{ErrInvalid, ErrTooLarge, ErrConflict, ErrDamaged, ErrErased}
	return slices.ContainsFunc(ofDraft, func(of error) bool { return errors.Is(err, of) })
}

// completeAll completes drafts, many of them in parallel. A result has the error of its draft.
func (s *Store) completeAll(drafts []Draft, threshold int64, hold func() error) (pending []PendingMessage, results []BatchResult) {
	pending, results = make([]PendingMessage, len(drafts)), make([]BatchResult, len(drafts))
	complete := func(i int) {
		pending[i].Draft = drafts[i]
		results[i].Err = s.Complete(&pending[i], threshold, hold)
	}
	if s.Options.inOrder {
		for i := range drafts {
			complete(i)
		}
	} else {
		InParallel(len(drafts), complete)
	}
	return pending, results
}

// Complete checks a draft's body, fills in from it what the draft leaves open, and moves its payloads out.
func (s *Store) Complete(d *PendingMessage, threshold int64, hold func() error) error {
	if int64(len(d.Body)) > s.Options.MaxMessage {
		return fmt.Errorf("%w: %d bytes exceed the limit of %d", ErrTooLarge, len(d.Body), s.Options.MaxMessage)
	}
	body, err := message.Compact(d.Body)
	if err != nil {
		return err
	}
	d.Body = body
	if d.Source != nil {
		if d.Source, err = message.Compact(d.Source); err != nil {
			return fmt.Errorf("source: %w", err)
		}
	}
	if d.References != nil {
		if len(d.References) > maxReferences {
			return fmt.Errorf("references: %w: %d bytes exceed the limit of %d", ErrTooLarge, len(d.References), maxReferences)
		}
		if d.References, err = message.CompactArray(d.References); err != nil {
			return fmt.Errorf("references: %w", err)
		}
	}
	if !d.CreatedAt.IsZero() && !message.ValidTime(d.CreatedAt) {
		return fmt.Errorf("%w: created_at: the year %d is out of range", ErrInvalid, d.CreatedAt.UTC().Year())
	}
	role, typ, created := message.Describe(body)
	if d.Role == "" {
		d.Role = role
	}
	if d.Type == "" {
		d.Type = typ
	}
	if d.CreatedAt.IsZero() {
		d.CreatedAt = created
	}
	return s.externalise(d, threshold, hold)
}
