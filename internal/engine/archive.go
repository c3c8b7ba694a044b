package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/blob"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// ArchiveOptions selects the messages to archive. The zero value selects all.
type ArchiveOptions struct {
	// OlderThan leaves out younger messages. A message without a time has the age of its file.
	OlderThan time.Duration
	// StoredFor leaves out messages that were committed, or replaced, more recently. It reads no message.
	StoredFor time.Duration
	// KeepLast leaves out the newest messages of each branch, this many.
	KeepLast int64
	// Branch leaves out messages that this branch does not show.
	Branch string
	// DryRun only counts the messages and their bytes.
	DryRun bool
	// limit bounds the length of the envelopes to archive in one call, in bytes; 0 for no bound.
	limit int64
	// Progress receives the number of messages examined so far; nil for no reports.
	Progress func(done, all int64)
}

// ArchiveResult is the result of archiving or unarchiving.
type ArchiveResult struct {
	Context  uuid.UUID
	Messages int64 // moved
	Stayed   int64 // selected but not moved: edited by hand, damaged, or too large
	Before   int64 // bytes of their old files, with packs and the blobs of their payloads
	After    int64 // bytes of their new files
}

// Archive moves messages from their files into a compressed pack. They are read as before, also while others append,
// fork, replace or archive. A message that was edited by hand stays a file: a repair takes the edit in. The pack holds
// copies of the payloads. The next collection removes their blobs unless another context refers to them. Packs that are
// no larger than the added messages are merged into the new pack; without options, all are. For many contexts
// [Store.Archive] takes less space.
//
// Crash order: see [index.Log.Arrange].
func (c *Context) Archive(ctx context.Context, o ArchiveOptions) (ArchiveResult, error) {
	return c.archive(ctx, o, &sharedPayloads{})
}

func (c *Context) archive(ctx context.Context, o ArchiveOptions, with *sharedPayloads) (ArchiveResult, error) {
	done, err := c.arrange(ctx, o.Progress, with, func() (index.Plan, int64, error) { return c.planArchive(ctx, o) })
	return done, Wrap(Error{Op: "archive", Context: c.Dir.ID, Branch: o.Branch}, err)
}

// Unarchive moves all archived messages back to files, byte for byte as they were archived. Payloads become blobs
// again. progress, unless nil, receives the number of messages examined so far.
func (c *Context) Unarchive(ctx context.Context, progress func(done, all int64)) (ArchiveResult, error) {
	done, err := c.arrange(ctx, progress, &sharedPayloads{}, func() (index.Plan, int64, error) {
		uses, err := c.Log.PackUses(ctx)
		plan := index.Plan{File: map[uuid.UUID]index.Spans{}}
		for _, use := range uses {
			AddSpans(plan.File, use.Live)
		}
		return plan, 0, err
	})
	return done, Wrap(Error{Op: "unarchive", Context: c.Dir.ID}, err)
}

// AddSpans adds the positions of more to those of to.
func AddSpans(to, more map[uuid.UUID]index.Spans) {
	for line, spans := range more {
		to[line] = to[line].With(spans)
	}
}

// arrange moves messages as planned. No collection, erase or restore runs meanwhile, so no needed blob or pack goes.
func (c *Context) arrange(
	ctx context.Context, progress func(done, all int64), with *sharedPayloads, plan func() (index.Plan, int64, error),
) (ArchiveResult, error) {
	done, err := Use(c, func() (ArchiveResult, error) { return c.arrangeNow(ctx, progress, with, plan) })
	done.Context = c.Dir.ID
	return done, err
}

func (c *Context) arrangeNow(
	ctx context.Context, progress func(done, all int64), with *sharedPayloads, plan func() (index.Plan, int64, error),
) (done ArchiveResult, err error) {
	if c.Store.ReadOnly {
		return done, ErrReadOnly
	}
	if !with.locked {
		release, err := c.Store.LockCollection(ctx)
		if err != nil {
			return done, err
		}
		defer release()
	}
	taking := &payloadCopier{c: c, ctx: ctx, shared: with, seen: map[blob.Sum]bool{}}
	done, err = c.arrangeLocked(ctx, func() (index.Plan, int64, error) {
		p, stayed, err := plan()
		p.Payloads, p.Progress, p.Compressor = taking.copyFrom, progress, with.compressor
		return p, stayed, err
	})
	done.Before += taking.blobs
	return done, err
}

// arrangeLocked moves messages as planned. The caller holds [CollectionLock].
func (c *Context) arrangeLocked(ctx context.Context, plan func() (index.Plan, int64, error)) (done ArchiveResult, err error) {
	err = c.refresh(ctx) // branches may have been renamed
	if err == nil {
		err = c.foldEdited(ctx, func(ctx context.Context) error { return c.Store.AcquireWith(ctx, c.Log.Update) })
	}
	if err != nil {
		return done, err
	}
	p, stayed, err := plan()
	done.Stayed = stayed
	if err != nil || len(p.Pack) == 0 && len(p.File) == 0 {
		return done, err
	}
	moved, err := c.Log.Arrange(ctx, p)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = fmt.Errorf("%w: waited %v", ErrLocked, c.Store.Options.LockTimeout)
	}
	done.Messages, done.Stayed = moved.Messages, done.Stayed+moved.Stayed
	done.Before, done.After = moved.Freed, moved.Packed
	if len(p.Pack) > 0 {
		done.Before += moved.Files
	} else {
		done.After += moved.Files
	}
	return done, errors.Join(err, c.refresh(ctx))
}

// payloadCopier copies payloads into a pack.
type payloadCopier struct {
	c      *Context
	ctx    context.Context //nolint:containedctx // of one call
	shared *sharedPayloads
	seen   map[blob.Sum]bool
	blobs  int64 // bytes of the blobs that the context needs no longer
}

// copyFrom adds those payloads of a message that no other context of the call refers to.
func (t *payloadCopier) copyFrom(envelope []byte, add func([]byte) error) error {
	env, err := message.ParseTrusted(envelope)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	refs, err := blob.Refs(env.Body)
	if err != nil {
		return nil //nolint:nilerr // the body is the framework's, and refers to nothing
	}
	for _, ref := range refs {
		if ref.Problem != "" || ref.Size > archive.MaxPayload || t.seen[ref.Sum] {
			continue
		}
		t.seen[ref.Sum] = true
		if shared, err := t.shared.isShared(t.ctx, ref.Sum); err != nil {
			return err
		} else if shared {
			continue
		}
		payload, err := t.c.Loader.Payload(ref)
		if err != nil {
			continue // a check reports it
		}
		if err := add(payload); err != nil {
			return err
		}
		if info, err := t.c.Store.FS.Lstat(blob.Path(ref.Sum)); err == nil {
			t.blobs += info.Size()
		}
	}
	return nil
}

// sharedPayloads finds the payloads that several contexts of a call refer to. It reads the contexts once, and skips
// unreadable messages: the answer only affects the space that packs take. A blob goes only when a collection finds no
// reference.
type sharedPayloads struct {
	store    *Store
	contexts []uuid.UUID
	locked   bool // the call holds CollectionLock

	compressor *archive.Compressor // of all packs of the call; nil for one of each

	mu     sync.Mutex
	shared map[blob.Sum]bool // false for a payload that one context refers to
}

func (x *sharedPayloads) isShared(ctx context.Context, sum blob.Sum) (bool, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.shared == nil && len(x.contexts) > 1 {
		x.shared = map[blob.Sum]bool{}
		for _, id := range x.contexts {
			if err := x.read(ctx, id); err != nil {
				return false, err
			}
		}
	}
	return x.shared[sum], nil
}

func (x *sharedPayloads) read(ctx context.Context, id uuid.UUID) error {
	c, err := x.store.Open(ctx, id)
	if err != nil {
		return ctx.Err()
	}
	defer c.Close()
	own := map[blob.Sum]bool{}
	_, _ = c.ReferencesInLines(ctx, false, func(sum blob.Sum) { own[sum] = true })
	for sum := range own {
		_, x.shared[sum] = x.shared[sum]
	}
	return ctx.Err()
}
