package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// Draft is a message to be stored. Only Body is needed.
type Draft struct {
	ID        uuid.UUID // uuid.Nil: a new UUIDv7
	Role      string    // empty: read from the body, as far as the engine knows its form
	Type      string    // likewise
	CreatedAt time.Time // likewise
	OriginID  string    // the id that the message has elsewhere
	Source    json.RawMessage
	Body      json.RawMessage // the framework's object; kept byte for byte but for insignificant white space

	// Attachments are payloads that the engine reads from elsewhere: base64 of each stands in the body.
	Attachments []Attachment
}

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

// AppendOption configures one append.
type AppendOption func(*appendOptions)

type appendOptions struct {
	expect    *int64 // nil for any
	threshold *int64 // nil: the store's
}

// AtPosition makes an append fail with [ErrPosition] unless its first message gets this position.
func AtPosition(position int64) AppendOption {
	return func(o *appendOptions) { o.expect = &position }
}

// TextThreshold is [WithTextThreshold] for one append.
func TextThreshold(bytes int64) AppendOption {
	return func(o *appendOptions) { o.threshold = &bytes }
}

// Append adds one message at the end of the branch and returns its position. With full durability the message is on
// disk when Append returns: exactly one fdatasync, which concurrent appends share, has covered it.
//
// A retry is safe. If a message has the ID and an equal body, Append returns its position; if its body differs, Append
// fails with [ErrConflict]. If that message is damaged or lost, there is nothing to compare: the body becomes its
// content again, in its place. An error that wraps [ErrDurability] leaves open whether the message is there. ctx
// cancels waiting for the lock, never a commit half-way.
func (b *Branch) Append(ctx context.Context, d Draft, opts ...AppendOption) (AppendResult, error) {
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
func (b *Branch) AppendBatch(ctx context.Context, drafts []Draft, opts ...AppendOption) ([]BatchResult, error) {
	results, err := Use(b.c, func() ([]BatchResult, error) { return b.appendBatch(ctx, drafts, opts) })
	return results, b.fail("append", err)
}

func (b *Branch) appendBatch(ctx context.Context, drafts []Draft, opts []AppendOption) ([]BatchResult, error) {
	a := &appendOp{
		b: b, drafts: make([]PendingMessage, len(drafts)),
		results: make([]BatchResult, len(drafts)), done: make(map[int]bool, len(drafts)), blobs: BlobHold{Store: b.c.Store},
	}
	defer a.blobs.Release()
	if b.c.Store.ReadOnly {
		return nil, b.fail("append", ErrReadOnly) // before any blob is made
	}
	for _, f := range opts {
		f(&a.opts)
	}
	threshold := b.c.Store.TextThreshold()
	if a.opts.threshold != nil {
		threshold = *a.opts.threshold
	}
	for i := range a.drafts {
		d := &a.drafts[i]
		d.Draft = drafts[i]
		if err := b.c.Store.Complete(d, threshold, func() error { return a.blobs.Hold(ctx) }); err != nil {
			err = Wrap(Error{Op: "append", Context: b.c.Dir.ID, Branch: b.name, ID: d.ID}, err)
			if !isDraftError(err) {
				return nil, err
			}
			a.results[i].Err = err
			a.refused = append(a.refused, i)
		}
	}
	err := b.fail("append", a.run(ctx))
	if err != nil {
		for i := range a.results {
			if !a.done[i] && a.results[i].Err == nil {
				a.results[i].Err = err
			}
		}
	}
	return a.results, err
}

// isDraftError reports whether an error is about the draft itself: the rest of a batch can then be stored without it.
// After any other error, as of a full disk, the rest is not stored: a retry would change the order of the messages.
func isDraftError(err error) bool {
	ofDraft := []error{ErrInvalid, ErrTooLarge, ErrConflict, ErrDamaged, ErrErased}
	return slices.ContainsFunc(ofDraft, func(of error) bool { return errors.Is(err, of) })
}

// Complete checks a draft's body, fills in from it what the draft leaves open, and moves its payloads out.
func (s *Store) Complete(d *PendingMessage, threshold int64, hold func() error) error {
	if int64(len(d.Body)) > s.Options.MaxMessage {
		return fmt.Errorf("%w: %d bytes, more than %d", ErrTooLarge, len(d.Body), s.Options.MaxMessage)
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
	if !d.CreatedAt.IsZero() && !message.ValidTime(d.CreatedAt) {
		return fmt.Errorf("%w: created_at is in the year %d", ErrInvalid, d.CreatedAt.UTC().Year())
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

// appendOp is the state of one append.
type appendOp struct {
	b       *Branch
	opts    appendOptions
	drafts  []PendingMessage
	blobs   BlobHold
	results []BatchResult
	done    map[int]bool // results that are final

	line    ctxfolder.Line
	folder  *ctxfolder.Folder // of the line; nil if it cannot be opened
	items   []index.Item
	of      []int // the draft of each item; -1 for a payload
	existed []int // drafts that are stored already
	refused []int // drafts that cannot be stored
	commits []*index.Commit
}

func (a *appendOp) run(ctx context.Context) error {
	c := a.b.c
	err := c.Write(ctx, func(m *Metadata) error {
		err := a.commit(m)
		if len(a.commits) > 0 && len(a.items) > 0 {
			// With the lock held: the files then reach the folder even if a rename gives its name to another one.
			a.folder, _ = c.Dir.OpenFolder(a.line.Folder)
		}
		return err
	})
	if err != nil && len(a.commits) == 0 {
		return err
	}
	written := 0
	for _, commit := range a.commits {
		written += commit.Written
	}
	// The files are written while the records are synced; they get their names afterwards.
	files := a.stage(written)
	if len(a.commits) > 0 {
		c.queueBlobs(a.items[:written], a.commits[0].Journal())
	}
	for _, commit := range a.commits {
		if commit.Written == 0 && commit.Err != nil {
			continue
		}
		if werr := commit.Wait(); werr != nil {
			if werr = c.recommit(commit, werr); werr != nil {
				files.discard()
				return werr
			}
		}
	}
	for _, i := range append(a.of[:written:written], a.existed...) {
		if i >= 0 {
			a.done[i] = true
		}
	}
	files.create()
	c.FoldIfDue()
	return err
}

// CommitBytes bounds one write to the journal, in bytes.
const CommitBytes = 16 << 20

// commit writes the journal records. The caller holds the lock.
func (a *appendOp) commit(m *Metadata) error {
	c := a.b.c
	a.items, a.of, a.existed = nil, nil, nil // left from an attempt that found a broken index
	next, err := a.locate(m)
	if err != nil {
		return err
	}
	line := &a.line
	if expect := a.opts.expect; expect != nil && *expect != next && !a.isRetry(m, *expect) {
		return fmt.Errorf("%w %d was expected, the next one is %d", ErrPosition, *expect, next)
	}
	prev, err := c.IDBefore(m, line.ID, next)
	if err != nil {
		return err
	}
	now := index.Now()
	fresh := map[uuid.UUID]int{}  // ids of this batch
	added := map[index.Sum]bool{} // payloads of this batch
	clear(a.done)
	for i := range a.drafts {
		if slices.Contains(a.refused, i) {
			a.done[i] = true
			continue
		}
		d := &a.drafts[i]
		there, free, err := a.findExisting(m, d, fresh)
		if err != nil {
			if !isDraftError(err) {
				return err
			}
			a.results[i].Err = Wrap(Error{Op: "append", Context: c.Dir.ID, Branch: a.b.name, ID: d.ID}, err)
			a.done[i] = true
			continue
		}
		if there != nil {
			// A retry may overtake the sync of the first attempt, so it waits for its own.
			a.results[i].AppendResult, a.existed = *there, append(a.existed, i)
			continue
		}
		env := &message.Envelope{
			ID: d.ID, Line: line.ID, Position: next, Prev: prev, StoredAt: now, Branch: a.b.name,
			Role: d.Role, Type: d.Type, CreatedAt: d.CreatedAt, OriginID: d.OriginID, Source: d.Source, Body: d.Stored,
			Payloads: d.Refs,
		}
		if env.ID == uuid.Nil {
			if env.ID, err = uuid.NewV7(); err != nil {
				return err
			}
		} else if env.File, err = c.FileFor(m, line, env.ID, free); err != nil {
			return err
		}
		raw := env.AppendTo(make([]byte, 0, len(d.Stored)+512))
		env.Body, env.Source = nil, nil
		for a.items = c.addPayloads(a.items, d.Payloads, added); len(a.of) < len(a.items); {
			a.of = append(a.of, -1)
		}
		a.items = append(a.items, index.Item{Kind: index.KindAppend, Envelope: env, Body: raw})
		a.of = append(a.of, i)
		a.results[i].AppendResult = AppendResult{ID: env.ID, Position: next}
		fresh[env.ID] = i
		prev = env.ID
		next++
	}
	if err := a.flush(); err != nil {
		return err
	}
	if len(a.existed) > 0 && len(a.commits) == 0 {
		a.commits = append(a.commits, c.Log.Barrier())
	}
	return nil
}

// locate finds the line to append to and returns its next position.
func (a *appendOp) locate(m *Metadata) (next int64, err error) {
	info, err := branch.Get(m, a.b.name)
	if err != nil {
		return 0, err
	}
	line, ok := m.Line(info.Line)
	if !ok {
		return 0, fmt.Errorf("%w: line %s is missing", ErrMetadata, info.Line)
	}
	a.line = *line
	return a.b.c.End(m, line.ID)
}

// flush writes the items in pieces. Only an error of the first piece means that nothing was written.
func (a *appendOp) flush() error {
	for from := 0; from < len(a.items); {
		n, size := 0, 0
		for from+n < len(a.items) && (n == 0 || size+len(a.items[from+n].Body) <= CommitBytes) {
			size += len(a.items[from+n].Body)
			n++
		}
		commit := a.b.c.Log.Append(a.items[from : from+n])
		if commit.Err != nil && from == 0 && commit.Written == 0 {
			return commit.Err
		}
		a.commits = append(a.commits, commit)
		if errors.Is(commit.Err, index.ErrBusy) {
			return errors.New(commit.Err.Error()) // without ErrBusy: the append must not begin again at the first item
		}
		if commit.Err != nil {
			return commit.Err
		}
		from += n
	}
	return nil
}
