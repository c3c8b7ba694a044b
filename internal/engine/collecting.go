package engine

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/blob"
	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Collected is something that a collection moved to the trash, or purged from it.
type Collected struct {
	Trashed
	Purged bool // it was in the trash, and is gone for good
}

// Collecting configures a collection.
type Collecting struct {
	Contexts []uuid.UUID   // only these and their trash; empty: all contexts, the store's trash and blobs
	Grace    time.Duration // how long something stays in the trash; see [DefaultGrace]
	DryRun   bool          // report what would be done, and change nothing
}

// Collect moves messages that no branch shows to the trash of their context, purges what was removed longer ago than
// the grace period, and sweeps blobs: see [Store.Sweep]. It sheds journals that were not written for an hour and are
// large beside what their context holds. It yields what it did. For a context or a trash that fails, it yields an error
// with the context's id, and continues.
//
// To make room, it purges the store's trash first, and a context's trash before it collects there. Writers are safe:
// under the context's lock, Collect checks again what it cuts off. It fails with [ErrLocked] while another one runs.
func (s *Store) Collect(ctx context.Context, o Collecting) iter.Seq2[Collected, error] {
	return func(yield func(Collected, error) bool) {
		fail := func(err error) { yield(Collected{}, public(Error{Op: "collect in", Path: s.Path()}, err)) }
		if !o.DryRun {
			if s.readOnly {
				fail(ErrReadOnly)
				return
			}
			release, err := s.lockCollecting(ctx)
			if err != nil {
				fail(err)
				return
			}
			defer release()
		}
		if err := s.collect(ctx, o, true, yield); err != nil {
			fail(err)
		}
	}
}

// collectAtMost bounds the time of an automatic collection; collectEvery is the time between two of them.
const (
	collectAtMost = 2 * time.Second
	collectEvery  = 24 * time.Hour
)

// CollectIfDue collects if no other process does and the last collection was a day ago. It takes two seconds at most,
// and leaves the rest for the next time. collected.jsonl, in the store, lists what was removed. An error harms nothing.
func (s *Store) CollectIfDue(ctx context.Context, grace time.Duration) error {
	if s.readOnly || !s.collectionDue() {
		return nil
	}
	lock := s.fs.Lock(collectLock)
	defer lock.Close()
	if ok, err := lock.TryAcquire(); !ok || err != nil {
		return err
	}
	defer lock.Release()
	if !s.collectionDue() {
		return nil // another process was faster
	}
	limited, cancel := context.WithTimeout(ctx, collectAtMost)
	defer cancel()
	var failed []error
	err := s.collect(limited, Collecting{Grace: grace}, false, func(_ Collected, err error) bool {
		if err != nil {
			failed = append(failed, err)
		}
		return true
	})
	err = errors.Join(append(failed, err)...)
	if limited.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return public(Error{Op: "collect in", Path: s.Path()}, err)
}

// collectionDue reports whether the last collection was long ago. One in the future was made under a wrong clock.
func (s *Store) collectionDue() bool {
	last, now := s.LastCollected(), s.now()
	return last.After(now) || now.Sub(last) >= collectEvery
}

// collect does the work. The caller holds collectLock, or it is a dry run. With onePass, it notes references to blobs
// while it has a context open. Otherwise the sweep comes at the end, if time is left, and opens each context again.
func (s *Store) collect(ctx context.Context, o Collecting, onePass bool, yield func(Collected, error) bool) error {
	log := s.beginLog(o.DryRun)
	defer log.close()
	log.run()
	x := &collecting{s: s, o: o, tell: func(x Collected, err error) bool {
		if err == nil {
			log.add(x)
		}
		return yield(x, err)
	}}
	contexts := o.Contexts
	if len(contexts) == 0 {
		for id, err := range s.IDs() {
			if err != nil {
				return err
			}
			contexts = append(contexts, id)
		}
		// A collection that runs out of time begins with other contexts the next time.
		rand.Shuffle(len(contexts), func(i, j int) { contexts[i], contexts[j] = contexts[j], contexts[i] })
	}
	var unmarked error
	if onePass && len(o.Contexts) == 0 {
		if x.marks, unmarked = s.beginMarking(ctx, o.DryRun); unmarked != nil {
			x.marks = nil
		}
	}
	if _, more := x.trash(ctx, s.fs, uuid.Nil, nil); !more {
		return ctx.Err()
	}
	for _, id := range contexts {
		if err := ctx.Err(); err != nil {
			return err
		}
		more, err := x.context(ctx, id)
		if err != nil && ctx.Err() == nil && !errors.Is(err, ErrGone) {
			more = x.tell(Collected{Trashed: Trashed{Context: id}}, public(Error{Op: "collect", Context: id}, err)) && more
		}
		if !more {
			return ctx.Err()
		}
	}
	if len(o.Contexts) > 0 {
		return nil
	}
	err := unmarked
	swept := func(t Trashed) bool { return x.tell(Collected{t, false}, nil) }
	switch {
	case x.marks != nil:
		if err = x.marks.all(ctx); err == nil {
			err = x.marks.sweep(ctx, o.Grace, o.DryRun, swept)
		}
	case err == nil:
		err = s.sweep(ctx, o.Grace, o.DryRun, swept)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrLocked) {
		x.tell(Collected{Trashed: Trashed{Path: blob.Folder}}, public(Error{Op: "sweep", Path: blob.Folder}, err))
		return nil
	}
	return err
}

// collecting is the state of one collection.
type collecting struct {
	s     *Store
	o     Collecting
	tell  func(Collected, error) bool
	marks *marking // nil when no references are noted
}

// context collects in one context, which it opens once. It notes the blobs that messages refer to before it moves any
// message to the trash. To make room, it empties the trash before it moves messages and rewrites packs.
func (x *collecting) context(ctx context.Context, id uuid.UUID) (more bool, err error) {
	c, err := x.s.open(ctx, id)
	if errors.Is(err, ctxfolder.ErrNotExist) {
		return true, nil // it was removed meanwhile
	}
	if err != nil {
		if sub, serr := x.s.fs.Sub(id.String()); serr == nil {
			defer sub.Close()
			_, more = x.trash(ctx, sub, id, nil)
			return more, err
		}
		return true, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var unread, failed error
	if x.marks != nil {
		unread, failed = c.referencesInLines(ctx, true, x.marks.mark)
	}
	damaged, more := x.trash(ctx, c.dir.FS, id, c)
	if x.marks != nil && ctx.Err() == nil {
		x.marks.note(id, unread, cmp.Or(failed, damaged.unread), true)
	}
	if !more {
		return false, ctx.Err()
	}
	if more, err = c.collectCopies(ctx, x.o.DryRun, func(y Collected) bool { return x.tell(y, nil) }); !more || err != nil {
		return more, errors.Join(damaged.left, err)
	}
	if len(branch.Orphans(c.current())) > 0 {
		more, err = c.collectOrphans(ctx, x.o.DryRun, func(t Trashed) bool { return x.tell(Collected{t, false}, nil) })
	}
	if more && err == nil {
		more, err = c.collectPacks(ctx, x.o.DryRun, func(y Collected) bool { return x.tell(y, nil) })
	}
	if more && err == nil && !x.o.DryRun && c.idle() && c.log.CanShed() {
		err = c.store.within(ctx, c.log.Shed)
	}
	return more, errors.Join(damaged.left, err)
}

// trashDamage holds the errors of a pass over a trash.
type trashDamage struct {
	left   error // of removing its items' message files that a crash left
	unread error // of looking for references
}

// trash lists the trash of a context, or of the store for uuid.Nil, once. It removes half-made and expired items. With
// c it also removes message files of the other items that a crash left, and notes the blobs that these items refer to.
func (x *collecting) trash(ctx context.Context, fsys vfs.FS, in uuid.UUID, c *Context) (damage trashDamage, more bool) {
	unlisted := func(err error) bool {
		return x.tell(Collected{Trashed: (&trashed{in: in}).public()}, public(Error{Op: "list", Path: trashPath(in)}, err))
	}
	entries, err := ctxfolder.ListTrash(fsys)
	if err != nil {
		damage.unread = err
		return damage, unlisted(err)
	}
	if !x.o.DryRun && (in != uuid.Nil || len(x.o.Contexts) == 0) {
		if err := ctxfolder.SweepTrash(fsys, entries); err != nil {
			err = public(Error{Op: "sweep", Path: trashPath(in)}, err)
			if !x.tell(Collected{Trashed: (&trashed{in: in}).public()}, err) {
				return damage, false
			}
		}
	}
	// An item is no older than its name, so most old versions need not be read.
	old := func(id uuid.UUID) bool { return x.s.now().Sub(ctxfolder.TimeOf(id)) > x.o.Grace }
	want := func(id uuid.UUID, folder bool) bool { return c != nil && folder && !x.o.DryRun || old(id) }
	for t := range ctxfolder.Items(fsys, entries, want) {
		if ctx.Err() != nil {
			return damage, false
		}
		if in == uuid.Nil && len(x.o.Contexts) > 0 && !slices.Contains(x.o.Contexts, t.Item.Context) {
			continue
		}
		item := &trashed{t, in}
		if old(t.ID) && x.s.expired(item, x.o.Grace) {
			gone, err := x.s.purgeItem(ctx, c, item, x.o.DryRun)
			if !x.tell(Collected{gone, true}, public(Error{Op: "purge", Path: gone.Path}, err)) {
				return damage, false
			}
		} else if c != nil && !x.o.DryRun {
			damage.left = errors.Join(damage.left, c.clearLeft(ctx, t))
		}
	}
	if c != nil && x.marks != nil {
		damage.unread = c.referencesInTrash(entries, x.marks.mark)
	}
	return damage, ctx.Err() == nil
}

// shedIdle is the time without a write before a collection sheds journals: followers have read them by then.
const shedIdle = time.Hour

// idle reports whether nothing was written for shedIdle.
func (c *Context) idle() bool {
	newest, err := c.log.NewestJournal()
	if err != nil {
		return false
	}
	info, err := c.dir.FS.Lstat(ctxfolder.JournalFile(newest))
	return err == nil && c.store.now().Sub(info.ModTime()) > shedIdle
}
