package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
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

// Appended is the place of a stored message.
type Appended struct {
	ID       uuid.UUID
	Position int64
	Existed  bool // it was there before: with equal content, or damaged or lost
}

// Result is the outcome for one message of a batch: the message is durable, or Err says why not.
type Result struct {
	Appended
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
func (b *Branch) Append(ctx context.Context, d Draft, opts ...AppendOption) (Appended, error) {
	results, err := b.AppendBatch(ctx, []Draft{d}, opts...)
	if err != nil {
		return Appended{}, err
	}
	return results[0].Appended, results[0].Err
}

// AppendBatch adds messages in order, with one commit and one fdatasync for all, and writes the files in parallel. The
// results report for each message whether it is durable. A message that is refused for its content does not keep the
// others from being stored. The error says why nothing was tried, or why the batch was cut short: then the durable
// messages are the first ones.
func (b *Branch) AppendBatch(ctx context.Context, drafts []Draft, opts ...AppendOption) ([]Result, error) {
	results, err := using(b.c, func() ([]Result, error) { return b.appendBatch(ctx, drafts, opts) })
	return results, b.fail("append", err)
}

func (b *Branch) appendBatch(ctx context.Context, drafts []Draft, opts []AppendOption) ([]Result, error) {
	a := &appending{
		b: b, drafts: make([]draft, len(drafts)),
		results: make([]Result, len(drafts)), done: make(map[int]bool, len(drafts)), blobs: blobsInUse{s: b.c.store},
	}
	defer a.blobs.release()
	if b.c.store.readOnly {
		return nil, b.fail("append", ErrReadOnly) // before any blob is made
	}
	for _, f := range opts {
		f(&a.opts)
	}
	threshold := b.c.store.TextThreshold()
	if a.opts.threshold != nil {
		threshold = *a.opts.threshold
	}
	for i := range a.drafts {
		d := &a.drafts[i]
		d.Draft = drafts[i]
		if err := b.c.store.complete(d, threshold, func() error { return a.blobs.hold(ctx) }); err != nil {
			err = public(Error{Op: "append", Context: b.c.dir.ID, Branch: b.name, ID: d.ID}, err)
			if len(drafts) == 1 || !refused(err) {
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
		if len(drafts) == 1 {
			return nil, err
		}
	}
	return a.results, err
}

// refused reports whether an error is about the draft itself: the rest of a batch can then be stored without it. After
// any other error, as of a full disk, the rest is not stored: a retry would change the order of the messages.
func refused(err error) bool {
	return slices.ContainsFunc(
		[]error{ErrInvalid, ErrTooLarge, ErrConflict, ErrDamaged, ErrErased},
		func(of error) bool { return errors.Is(err, of) },
	)
}

// complete checks a draft's body, fills in from it what the draft leaves open, and moves its payloads out.
func (s *Store) complete(d *draft, threshold int64, hold func() error) error {
	if int64(len(d.Body)) > s.opts.maxMessage {
		return fmt.Errorf("%w: %d bytes, more than %d", ErrTooLarge, len(d.Body), s.opts.maxMessage)
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

// appending is the state of one append.
type appending struct {
	b       *Branch
	opts    appendOptions
	drafts  []draft
	blobs   blobsInUse
	results []Result
	done    map[int]bool // results that are final

	line    ctxfolder.Line
	folder  *ctxfolder.Folder // of the line; nil if it cannot be opened
	items   []index.Item
	of      []int // the draft of each item; -1 for a payload
	existed []int // drafts that are stored already
	refused []int // drafts that cannot be stored
	commits []*index.Commit
}

func (a *appending) run(ctx context.Context) error {
	c := a.b.c
	err := c.write(ctx, func(m *Metadata) error {
		err := a.commit(m)
		if len(a.commits) > 0 && len(a.items) > 0 {
			// With the lock held: the files then reach the folder even if a rename gives its name to another one.
			a.folder, _ = c.dir.OpenFolder(a.line.Folder)
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
		c.putLater(a.items[:written], a.commits[0].Journal())
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
	c.foldIfDue()
	return err
}

// commitBytes bounds one write to the journal, in bytes.
const commitBytes = 16 << 20

// commit writes the journal records. The caller holds the lock.
func (a *appending) commit(m *Metadata) error {
	c := a.b.c
	a.items, a.of, a.existed = nil, nil, nil // left from an attempt that found a broken index
	info, err := branch.Get(m, a.b.name)
	if err != nil {
		return err
	}
	line, ok := m.Line(info.Line)
	if !ok {
		return fmt.Errorf("%w: line %s is missing", ErrMetadata, info.Line)
	}
	a.line = *line
	next, err := c.end(m, line.ID)
	if err != nil {
		return err
	}
	if expect := a.opts.expect; expect != nil && *expect != next && !a.retried(m, *expect) {
		return fmt.Errorf("%w %d was expected, the next one is %d", ErrPosition, *expect, next)
	}
	prev, err := c.idBefore(m, line.ID, next)
	if err != nil {
		return err
	}
	now := index.Now()
	fresh := map[uuid.UUID]int{}   // ids of this batch
	riding := map[index.Sum]bool{} // payloads of this batch
	clear(a.done)
	for i := range a.drafts {
		if slices.Contains(a.refused, i) {
			a.done[i] = true
			continue
		}
		d := &a.drafts[i]
		there, free, err := a.existing(m, d, fresh)
		if err != nil {
			if len(a.drafts) == 1 || !refused(err) {
				return err
			}
			a.results[i].Err = err
			a.done[i] = true
			continue
		}
		if there != nil {
			// A retry may overtake the sync of the first attempt, so it waits for its own.
			a.results[i].Appended, a.existed = *there, append(a.existed, i)
			continue
		}
		env := &message.Envelope{
			ID: d.ID, Line: line.ID, Position: next, Prev: prev, StoredAt: now, Branch: a.b.name,
			Role: d.Role, Type: d.Type, CreatedAt: d.CreatedAt, OriginID: d.OriginID, Source: d.Source, Body: d.stored,
			Payloads: d.refs,
		}
		if env.ID == uuid.Nil {
			if env.ID, err = uuid.NewV7(); err != nil {
				return err
			}
		} else if env.File, err = c.fileFor(m, line, env.ID, free); err != nil {
			return err
		}
		raw := env.AppendTo(make([]byte, 0, len(d.stored)+512))
		env.Body, env.Source = nil, nil
		for a.items = c.ride(a.items, d.payloads, riding); len(a.of) < len(a.items); {
			a.of = append(a.of, -1)
		}
		a.items = append(a.items, index.Item{Kind: index.KindAppend, Envelope: env, Body: raw})
		a.of = append(a.of, i)
		a.results[i].Appended = Appended{ID: env.ID, Position: next}
		fresh[env.ID] = i
		prev = env.ID
		next++
	}
	if err := a.flush(); err != nil {
		return err
	}
	if len(a.existed) > 0 && len(a.commits) == 0 {
		a.commits = append(a.commits, c.log.Barrier())
	}
	return nil
}

// retried reports whether the first message is already at the expected position: then this is a retry.
func (a *appending) retried(m *Metadata, expect int64) bool {
	if len(a.drafts) == 0 || a.drafts[0].ID == uuid.Nil {
		return false
	}
	p, err := a.b.c.find(m, a.line.ID, a.drafts[0].ID)
	return err == nil && p.entry.Position == expect
}

// flush writes the items in pieces. Only an error of the first piece means that nothing was written.
func (a *appending) flush() error {
	for from := 0; from < len(a.items); {
		n, size := 0, 0
		for from+n < len(a.items) && (n == 0 || size+len(a.items[from+n].Body) <= commitBytes) {
			size += len(a.items[from+n].Body)
			n++
		}
		commit := a.b.c.log.Append(a.items[from : from+n])
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

// existing looks for a message with the draft's id. It returns its place if the bodies are equal, and fails with
// ErrConflict if they differ. It stores a damaged or lost message again. free says that no file in the line's folder
// has the id as its name.
func (a *appending) existing(m *Metadata, d *draft, fresh map[uuid.UUID]int) (there *Appended, free bool, err error) {
	if d.ID == uuid.Nil {
		return nil, true, nil
	}
	if i, ok := fresh[d.ID]; ok {
		if !bytes.Equal(a.drafts[i].Body, d.Body) {
			return nil, false, public(Error{Op: "append", Context: a.b.c.dir.ID, Branch: a.b.name, ID: d.ID}, ErrConflict)
		}
		there := a.results[i].Appended
		there.Existed = true
		return &there, false, nil
	}
	p, err := a.b.c.find(m, a.line.ID, d.ID)
	if errors.Is(err, ErrNotExist) {
		return nil, p.free, nil
	}
	if err != nil {
		return nil, false, err
	}
	old, err := a.b.c.load.Load(context.Background(), p.span, &p.entry)
	if err != nil {
		return nil, false, err
	}
	there = &Appended{ID: d.ID, Position: p.entry.Position, Existed: true}
	if old.Unavailable != nil && !errors.Is(old.Unavailable, ErrErased) {
		return there, false, a.b.c.storeAgain(m, a.b.name, p, d, old.Unavailable)
	}
	if old.Unavailable == nil && !bytes.Equal(old.Stored, d.stored) {
		// The threshold may have been different.
		body, err := old.Body(context.Background())
		if err != nil {
			return nil, false, err // it is unknown whether the bodies are equal
		}
		if !bytes.Equal(body, d.Body) {
			return nil, false, public(Error{Op: "append", Context: a.b.c.dir.ID, Branch: a.b.name, ID: d.ID}, ErrConflict)
		}
	}
	return there, false, nil
}

// fileFor returns the file name for a message of line: uuid.Nil if the id serves, or a derived name if a message of
// another line in the same folder has that id. free says that no file has that name.
func (c *Context) fileFor(m *Metadata, line *ctxfolder.Line, id uuid.UUID, free bool) (uuid.UUID, error) {
	var err error
	taken := false
	if !free {
		_, err = c.dir.StatMessage(line.Folder, id)
		if taken = err == nil; err != nil && !errors.Is(err, fs.ErrNotExist) {
			return uuid.Nil, err
		}
	}
	for i := range m.Lines {
		if other := &m.Lines[i]; !taken && other.Folder == line.Folder && other.ID != line.ID {
			if _, taken, err = c.log.Find(other.ID, id, math.MaxInt64, false); err != nil {
				return uuid.Nil, err
			}
		}
	}
	if taken {
		return message.DerivedID(line.ID, id.String()), nil
	}
	return uuid.Nil, nil
}

// idBefore returns the id of the message before a position of a line's history.
func (c *Context) idBefore(m *Metadata, line uuid.UUID, position int64) (uuid.UUID, error) {
	if position == 0 {
		return uuid.Nil, nil
	}
	if counts, ok, err := c.log.Counts(line); err != nil || ok && counts.Count > 0 && counts.End() == position {
		return counts.Last, err
	}
	segments, err := branch.Segments(m, line, position-1, position)
	if err != nil {
		return uuid.Nil, err
	}
	entries, err := c.log.Entries(segments[0].Line, position-1, position)
	if err != nil || len(entries) == 0 {
		return uuid.Nil, err
	}
	return entries[0].ID, nil
}

// recommit writes a commit whose sync failed to a new journal. It returns nil if that made the commit durable.
func (c *Context) recommit(commit *index.Commit, cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.store.opts.lockTimeout)
	defer cancel()
	if err := c.dir.Lock.Acquire(ctx); err != nil {
		return cause
	}
	defer c.dir.Lock.Release()
	if err := c.dir.Check(); err != nil {
		return errors.Join(cause, err)
	}
	ok, err := c.log.Recommit(commit)
	if ok {
		return nil
	}
	return errors.Join(cause, err)
}
