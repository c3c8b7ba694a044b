package ctxdir

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/blob"
	"github.com/ctxdir/ctxdir/branch"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// DefaultArchiveAge is how old messages are archived unless an option says otherwise.
const DefaultArchiveAge = 180 * 24 * time.Hour

// ArchiveOptions says which messages are archived: without anything all of them.
type ArchiveOptions struct {
	// OlderThan leaves those out that are not as old. A message that tells no time of its own is as old as its file.
	OlderThan time.Duration
	// Branch leaves those out that this branch does not show.
	Branch string
	// Progress is told how many messages were looked at; nil for nobody.
	Progress func(done, all int64)
}

// Archived says what archiving did, or undid.
type Archived struct {
	Messages int64 // that were moved
	Stayed   int64 // that were to be moved and stayed where they were: edited by hand, damaged, or too large
	Before   int64 // bytes of the files they were in, packs and the blobs of their payloads included
	After    int64 // bytes of the files they are in
}

// Archive moves messages from their files into a pack, compressed. They are read as before; so are they when others append, fork, replace or archive
// meanwhile. What was edited by hand stays a file: a repair takes the edit in. Payloads are copied into the pack, and their blobs are left to the
// next collection, which removes those that no other context refers to. Packs that are no larger than what is added are made one with it; without
// options, all are. To archive many contexts, [Store.Archive] takes less room.
//
// Crash order: see [index.Log.Arrange].
func (c *Context) Archive(ctx context.Context, o ArchiveOptions) (Archived, error) {
	return c.archive(ctx, o, &sharing{})
}

func (c *Context) archive(ctx context.Context, o ArchiveOptions, with *sharing) (Archived, error) {
	done, err := c.arrange(ctx, o.Progress, with, func() (index.Plan, int64, error) { return c.planArchive(ctx, o) })
	return done, public(Error{Op: "archive", Context: c.dir.ID, Branch: o.Branch}, err)
}

// ArchivedContext is the result of archiving one of several contexts.
type ArchivedContext struct {
	Context uuid.UUID
	Archived
}

// Archive archives contexts one after the other, as [Context.Archive] does; without ids all of the store, where a context without the
// branch of the options has nothing to archive. A payload that several of them refer to stays a blob, which they share. It yields each context;
// one that cannot be archived comes with an error, and the others follow.
func (s *Store) Archive(ctx context.Context, ids []uuid.UUID, o ArchiveOptions) iter.Seq2[ArchivedContext, error] {
	return func(yield func(ArchivedContext, error) bool) {
		all := len(ids) == 0
		if all {
			for id, err := range s.IDs() {
				if err != nil {
					yield(ArchivedContext{}, public(Error{Op: "archive", Path: s.path}, err))
					return
				}
				ids = append(ids, id)
			}
		}
		with := &sharing{store: s, contexts: ids}
		for _, id := range ids {
			done := ArchivedContext{Context: id}
			c, err := s.Context(ctx, id)
			if err == nil {
				done.Archived, err = c.archive(ctx, o, with)
				err = errors.Join(err, c.Close())
			}
			if all && errors.Is(err, ErrNotExist) {
				err = nil // it has no such branch, or was removed meanwhile
			}
			if !yield(done, err) || ctx.Err() != nil {
				return
			}
		}
	}
}

// Unarchive moves all archived messages back to files: byte for byte what was archived. Payloads become blobs again. progress, unless it is
// nil, is told how many messages were looked at.
func (c *Context) Unarchive(ctx context.Context, progress func(done, all int64)) (Archived, error) {
	done, err := c.arrange(ctx, progress, &sharing{}, func() (index.Plan, int64, error) {
		uses, err := c.log.PackUses(ctx)
		plan := index.Plan{File: map[uuid.UUID]index.Spans{}}
		for _, use := range uses {
			add(plan.File, use.Live)
		}
		return plan, 0, err
	})
	return done, public(Error{Op: "unarchive", Context: c.dir.ID}, err)
}

// add adds positions to others.
func add(to, more map[uuid.UUID]index.Spans) {
	for line, spans := range more {
		to[line] = to[line].With(spans)
	}
}

// arrange moves messages as planned. Nobody collects, erases or restores meanwhile, so no blob or pack goes that somebody still needs.
func (c *Context) arrange(ctx context.Context, progress func(done, all int64), with *sharing, plan func() (index.Plan, int64, error)) (Archived, error) {
	return using(c, func() (Archived, error) { return c.arrangeNow(ctx, progress, with, plan) })
}

func (c *Context) arrangeNow(ctx context.Context, progress func(done, all int64), with *sharing, plan func() (index.Plan, int64, error)) (done Archived, err error) {
	if c.store.readOnly {
		return done, ErrReadOnly
	}
	release, err := c.store.lockCollecting(ctx)
	if err != nil {
		return done, err
	}
	defer release()
	err = c.refresh(ctx) // branches may have other names
	if err == nil {
		err = c.store.within(ctx, c.log.Current)
	}
	if err != nil {
		return done, err
	}
	p, stayed, err := plan()
	done.Stayed = stayed
	if err != nil || len(p.Pack) == 0 && len(p.File) == 0 {
		return done, err
	}
	taking := &taking{c: c, ctx: ctx, with: with, seen: map[blob.Sum]bool{}}
	p.Payloads, p.Progress = taking.from, progress
	moved, err := c.log.Arrange(ctx, p)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = fmt.Errorf("%w: waited %v", ErrLocked, c.store.opts.lockTimeout)
	}
	done.Messages, done.Stayed = moved.Messages, done.Stayed+moved.Stayed
	done.Before, done.After = moved.Freed, moved.Packed
	if len(p.Pack) > 0 {
		done.Before += moved.Files + taking.blobs
	} else {
		done.After += moved.Files
	}
	return done, errors.Join(err, c.refresh(ctx))
}

// planArchive chooses the messages that are to be archived, and the packs that are made one with them. stayed counts what would be archived and
// cannot be had.
func (c *Context) planArchive(ctx context.Context, o ArchiveOptions) (plan index.Plan, stayed int64, err error) {
	spans, err := c.archivable(o.Branch)
	if err != nil {
		return plan, 0, err
	}
	before := c.store.now().Add(-o.OlderThan)
	plan.Pack = map[uuid.UUID]index.Spans{}
	var bytes int64
	for _, span := range spans {
		var chosen index.Spans
		for from := span.From; from < span.To; from += rowsAtOnce {
			entries, err := c.log.Entries(span.Line, from, min(from+rowsAtOnce, span.To))
			if err != nil {
				return plan, 0, err
			}
			for i := range entries {
				e := &entries[i]
				if e.Pack != uuid.Nil || e.Lost != "" {
					continue
				}
				if o.OlderThan > 0 {
					m, err := c.load.Load(ctx, span, e)
					if err != nil {
						return plan, 0, err
					}
					if m.Unavailable != nil {
						stayed++
						continue
					}
					if !timeOf(m).Before(before) {
						continue
					}
				}
				chosen.Add(e.Position)
				bytes += e.Size
			}
		}
		if len(chosen) > 0 {
			plan.Pack[span.Line] = plan.Pack[span.Line].With(chosen)
		}
	}
	uses, err := c.log.PackUses(ctx)
	if err != nil {
		return plan, stayed, err
	}
	whole := o.OlderThan == 0 && o.Branch == ""
	if bytes == 0 && (!whole || len(uses) < 2) {
		return plan, stayed, nil
	}
	for _, use := range uses {
		if use.Named && (whole || use.Bytes <= bytes) {
			add(plan.Pack, use.Live)
		}
	}
	return plan, stayed, nil
}

// timeOf is the time of a message, or that of its file.
func timeOf(m *Message) time.Time {
	if m.CreatedAt.IsZero() {
		return m.StoredAt
	}
	return m.CreatedAt
}

// archivable returns what a branch shows, or without a name all lines.
func (c *Context) archivable(name string) (spans []loader.Span, err error) {
	m := c.current()
	if name != "" {
		info, err := branch.Get(m, name)
		if err != nil {
			return nil, err
		}
		end, err := c.end(m, info.Line)
		if err != nil {
			return nil, err
		}
		lines, err := branch.Lines(m, info.Line, end)
		for _, seg := range lines {
			l, _ := m.Line(seg.Line)
			spans = append(spans, loader.Span{Line: seg.Line, Folder: l.Folder, From: seg.From, To: seg.To})
		}
		return spans, err
	}
	for i := range m.Lines {
		l := &m.Lines[i]
		counts, _, err := c.log.Counts(l.ID)
		if err != nil {
			return nil, err
		}
		spans = append(spans, loader.Span{Line: l.ID, Folder: l.Folder, From: counts.Base, To: counts.End()})
	}
	return spans, nil
}

// taking takes payloads along into a pack.
type taking struct {
	c     *Context
	ctx   context.Context //nolint:containedctx // of one call
	with  *sharing
	seen  map[blob.Sum]bool
	blobs int64 // bytes of the blobs that are of no use to the context any more
}

// from adds those of the payloads of a message that the other contexts of the call do not refer to.
func (t *taking) from(envelope []byte, add func([]byte) error) error {
	env, err := message.ParseTrusted(envelope)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	refs, err := blob.Refs(env.Body)
	if err != nil {
		return nil //nolint:nilerr // it is the framework's, and refers to nothing
	}
	for _, ref := range refs {
		if ref.Problem != "" || ref.Size > archive.MaxPayload || t.seen[ref.Sum] {
			continue
		}
		t.seen[ref.Sum] = true
		if shared, err := t.with.shares(t.ctx, ref.Sum); err != nil {
			return err
		} else if shared {
			continue
		}
		payload, err := t.c.load.Payload(ref)
		if err != nil {
			continue // a check tells
		}
		if err := add(payload); err != nil {
			return err
		}
		if info, err := t.c.store.fs.Lstat(blob.Path(ref.Sum)); err == nil {
			t.blobs += info.Size()
		}
	}
	return nil
}

// sharing knows which payloads several contexts of a call refer to. It looks once, at the first question. The answer decides only how much
// room packs take, since a blob goes when a collection finds no reference to it; so messages that cannot be read do not count.
type sharing struct {
	store    *Store
	contexts []uuid.UUID
	several  map[blob.Sum]bool // false of those that one context refers to
}

func (x *sharing) shares(ctx context.Context, sum blob.Sum) (bool, error) {
	if x.several == nil && len(x.contexts) > 1 {
		x.several = map[blob.Sum]bool{}
		for _, id := range x.contexts {
			if err := x.look(ctx, id); err != nil {
				return false, err
			}
		}
	}
	return x.several[sum], nil
}

func (x *sharing) look(ctx context.Context, id uuid.UUID) error {
	c, err := x.store.open(ctx, id)
	if err != nil {
		return ctx.Err()
	}
	defer c.Close()
	own := map[blob.Sum]bool{}
	_, _ = c.referencesInLines(ctx, false, func(sum blob.Sum) { own[sum] = true })
	for sum := range own {
		_, x.several[sum] = x.several[sum]
	}
	return ctx.Err()
}
