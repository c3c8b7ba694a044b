package ctxdir

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/blob"
	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// Collected is something that a collection moved to trash, or purged from it.
type Collected struct {
	Trashed
	Purged bool // it was in trash, and is gone for good
}

// Collecting says what to collect.
type Collecting struct {
	Contexts []uuid.UUID   // these and their trash alone; without any all contexts, the store's trash and blobs
	Grace    time.Duration // how long something stays in trash; see [DefaultGrace]
	DryRun   bool          // tell what would be done, and change nothing
}

// Collect moves messages that no branch shows to the trash of their context, purges what was removed longer ago than the grace
// period, and sweeps blobs: see [Store.Sweep]. It lets go of journals
// to which nothing was written for an hour and that are large beside what their context holds. It yields what it did. What cannot be collected of one context, or listed of a trash, comes
// with an error and the context's id, and the others follow.
//
// Trash is purged first, so that a full disk is no obstacle. Whoever writes meanwhile is safe: what is cut off is looked at once
// more with the context's lock. It fails with [ErrLocked] while somebody else collects.
func (s *Store) Collect(ctx context.Context, o Collecting) iter.Seq2[Collected, error] {
	return func(yield func(Collected, error) bool) {
		fail := func(err error) { yield(Collected{}, public(Error{Op: "collect in", Path: s.path}, err)) }
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
		if err := s.collect(ctx, o, yield); err != nil {
			fail(err)
		}
	}
}

// collectAtMost is how long a collection that comes by itself may take, and collectEvery how long it is until the next one.
const (
	collectAtMost = 2 * time.Second
	collectEvery  = 24 * time.Hour
)

// CollectIfDue is Collect for a program that is done with its work: if the store was opened with [WithCollection], nobody else
// collects, and the last collection was a day ago. It takes two seconds at most; what is not done then is done the next time. What
// was removed stands in collected.jsonl, in the store. The error is for those who want to know: nothing is harmed by it.
func (s *Store) CollectIfDue(ctx context.Context) error {
	if s.opts.collect == nil || s.readOnly || !s.collectionDue() {
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
	err := s.collect(limited, Collecting{Grace: *s.opts.collect}, func(_ Collected, err error) bool {
		if err != nil {
			failed = append(failed, err)
		}
		return true
	})
	err = errors.Join(append(failed, err)...)
	if limited.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return public(Error{Op: "collect in", Path: s.path}, err)
}

// collectionDue reports whether the last collection was long ago. One in the future was made under a clock that was wrong.
func (s *Store) collectionDue() bool {
	last, now := s.LastCollected(), s.now()
	return last.After(now) || now.Sub(last) >= collectEvery
}

// collect does the work. The caller holds collectLock, or it is a dry run.
func (s *Store) collect(ctx context.Context, o Collecting, yield func(Collected, error) bool) error {
	log := s.beginLog(o.DryRun)
	defer log.close()
	log.run()
	tell := func(x Collected, err error) bool {
		if err == nil {
			log.add(x)
		}
		return yield(x, err)
	}
	contexts := o.Contexts
	if len(contexts) == 0 {
		for id, err := range s.IDs() {
			if err != nil {
				return err
			}
			contexts = append(contexts, id)
		}
		// A collection that has no time for all of them begins with others the next time.
		rand.Shuffle(len(contexts), func(i, j int) { contexts[i], contexts[j] = contexts[j], contexts[i] })
	}
	if !o.DryRun {
		trashes := contexts
		if len(o.Contexts) == 0 {
			trashes = slices.Concat([]uuid.UUID{uuid.Nil}, contexts)
		}
		for _, in := range trashes {
			if err := s.sweepTrash(in); err != nil && !tell(Collected{Trashed: (&trashed{in: in}).public()}, err) {
				return nil
			}
		}
	}
	// An item is no older than its name, so most need not be read.
	old := func(id uuid.UUID, _ bool) bool { return s.now().Sub(ctxfolder.TimeOf(id)) > o.Grace }
	for t, err := range s.trash(ctx, o.Contexts, old) {
		if t == nil {
			return err
		}
		if err != nil {
			if !tell(Collected{Trashed: t.public()}, err) {
				return nil
			}
			continue
		}
		if !s.expired(t, o.Grace) {
			continue
		}
		x, err := s.purge(ctx, t, o.DryRun)
		if !tell(Collected{x, true}, public(Error{Op: "purge", Path: x.Path}, err)) {
			return nil
		}
	}
	for _, id := range contexts {
		if err := ctx.Err(); err != nil {
			return err
		}
		more, err := s.collectContext(ctx, id, o.DryRun, func(x Collected) bool { return tell(x, nil) })
		if err != nil && ctx.Err() == nil && !errors.Is(err, ErrGone) {
			more = tell(Collected{Trashed: Trashed{Context: id}}, public(Error{Op: "collect", Context: id}, err)) && more
		}
		if !more {
			return nil
		}
	}
	if len(o.Contexts) > 0 {
		return nil
	}
	err := s.sweep(ctx, o.Grace, o.DryRun, func(t Trashed) bool { return tell(Collected{t, false}, nil) })
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrLocked) {
		tell(Collected{Trashed: Trashed{Path: blob.Folder}}, public(Error{Op: "sweep", Path: blob.Folder}, err))
		return nil
	}
	return err
}

// sweepTrash removes what was left half-made or half-purged in the trash of a context, or of the store for uuid.Nil.
func (s *Store) sweepTrash(in uuid.UUID) error {
	fsys := s.fs
	if in != uuid.Nil {
		sub, err := s.fs.Sub(in.String())
		if err != nil {
			return nil //nolint:nilerr // it was removed meanwhile, or will be told of when it is opened
		}
		defer sub.Close()
		fsys = sub
	}
	return public(Error{Op: "sweep", Path: trashPath(in)}, ctxfolder.SweepTrash(fsys))
}

func (s *Store) collectContext(ctx context.Context, id uuid.UUID, dryRun bool, yield func(Collected) bool) (more bool, err error) {
	c, err := s.open(ctx, id)
	if errors.Is(err, ctxfolder.ErrNotExist) {
		return true, nil // it was removed meanwhile
	}
	if err != nil {
		return true, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var damaged error // an item in trash that is damaged keeps nothing else from being collected
	if !dryRun {
		for t, err := range ctxfolder.EachTrash(c.dir.FS, onlyFolders) {
			if err != nil {
				break // it was told of when trash was listed
			}
			damaged = errors.Join(damaged, c.clearLeft(ctx, t))
			if ctx.Err() != nil {
				return true, ctx.Err()
			}
		}
	}
	more = true
	if len(branch.Orphans(c.current())) > 0 {
		more, err = c.collectOrphans(ctx, dryRun, func(t Trashed) bool { return yield(Collected{t, false}) })
	}
	if more && err == nil {
		more, err = c.collectPacks(ctx, dryRun, yield)
	}
	if more && err == nil && !dryRun && c.idle() && c.log.Bulky() {
		err = c.store.within(ctx, c.log.Shed)
	}
	return more, errors.Join(damaged, err)
}

// shedIdle is how long nothing was written to a context whose journals a collection lets go of: followers have read them by then.
const shedIdle = time.Hour

// idle reports whether nothing was written for that long.
func (c *Context) idle() bool {
	newest, err := c.log.Newest()
	if err != nil {
		return false
	}
	info, err := c.dir.FS.Lstat(ctxfolder.JournalFile(newest))
	return err == nil && c.store.now().Sub(info.ModTime()) > shedIdle
}
