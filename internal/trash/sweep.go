package trash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/blob"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// Sweep moves unreferenced blobs to the store's trash: blobs to which no context refers, not even an archived or
// trashed one, and which no writer used within grace. It yields each; with dryRun it moves none. It reads the index of
// every context and the messages with payloads. If one of these is unreadable, Sweep moves nothing: the message may
// refer to any blob. Sweep fails with [engine.ErrLocked] during another collection.
//
// A record in a log need not be durable: its writer may be relaxed, or its sync may have failed. After a power cut the
// record would be gone, and the message that it replaced would need its blob again. So before Sweep moves a blob, it makes
// the logs durable that it relied on, and reads those contexts again.
//
// A concurrent writer that refers to a blob is safe. It holds the lock on blobs, shared, from finding the blob to its
// commit. The sweep takes the lock exclusively once before it reads contexts, so that every writer that found a blob
// earlier has committed. A writer that finds a blob later gives it a new time. The sweep checks that time again, with
// the lock held, before it moves the blob.
func Sweep(ctx context.Context, s *engine.Store, grace time.Duration, dryRun bool) iter.Seq2[engine.TrashItem, error] {
	return func(yield func(engine.TrashItem, error) bool) {
		fail := func(err error) {
			yield(engine.TrashItem{}, engine.Wrap(engine.Error{Op: "sweep the blobs of", Path: s.Path()}, err))
		}
		if !dryRun && !s.ReadOnly {
			release, err := s.LockCollection(ctx)
			if err != nil {
				fail(err)
				return
			}
			defer release()
		}
		if err := sweep(ctx, s, grace, dryRun, func(t engine.TrashItem) bool { return yield(t, nil) }); err != nil {
			fail(err)
		}
	}
}

// sweepBatch bounds the blobs moved during one hold of the lock.
const sweepBatch = 64

func sweep(ctx context.Context, s *engine.Store, grace time.Duration, dryRun bool, yield func(engine.TrashItem) bool) error {
	m, err := startMarker(ctx, s, dryRun)
	if err == nil {
		err = m.markAll(ctx)
	}
	if err != nil {
		return err
	}
	return m.sweep(ctx, grace, dryRun, yield)
}

// marker collects the blobs to which something refers.
type marker struct {
	s      *engine.Store
	at     time.Time // of its beginning: a newer blob may have references since
	marked map[blob.Sum]bool
	seen   map[uuid.UUID]bool // contexts in the store
	unsure []uuid.UUID        // contexts with records in logs, which may not be durable
	unread error              // the first error of reading a context
}

// startMarker waits until every writer that found a blob has committed: later reads of its context see the reference.
func startMarker(ctx context.Context, s *engine.Store, dryRun bool) (*marker, error) {
	if s.ReadOnly && !dryRun {
		return nil, engine.ErrReadOnly
	}
	if !dryRun {
		if err := ctxfolder.SweepStaging(s.FS); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	at, err := waitForWriters(ctx, s)
	return newMarker(s, at), err
}

func newMarker(s *engine.Store, at time.Time) *marker {
	return &marker{s: s, at: at, marked: map[blob.Sum]bool{}, seen: map[uuid.UUID]bool{}}
}

// sweep moves the unmarked blobs to the trash.
func (m *marker) sweep(ctx context.Context, grace time.Duration, dryRun bool, yield func(engine.TrashItem) bool) error {
	if m.unread != nil {
		return m.unread
	}
	before := m.at
	if limit := before.Add(-grace); limit.Before(before) {
		before = limit
	}
	w := sweeper{s: m.s, before: before, dryRun: dryRun, yield: yield}
	for sum, err := range m.s.Blobs.Walk(nil) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if !m.marked[sum] {
			w.found = append(w.found, sum)
		}
		if len(w.found) == sweepBatch {
			if more, err := m.flush(ctx, &w); !more {
				return err
			}
		}
	}
	_, err := m.flush(ctx, &w)
	return err
}

// flush moves the found blobs that are still unmarked once the contexts are durable.
func (m *marker) flush(ctx context.Context, w *sweeper) (more bool, err error) {
	if len(w.found) == 0 {
		return true, nil
	}
	if !w.dryRun {
		if err := m.makeDurable(ctx); err != nil {
			return false, err
		}
		w.found = slices.DeleteFunc(w.found, func(sum blob.Sum) bool { return m.marked[sum] })
	}
	return w.flush(ctx)
}

// makeDurable makes the logs durable on which marks rely, and marks what those contexts refer to then.
func (m *marker) makeDurable(ctx context.Context) error {
	unsure := m.unsure
	m.unsure = nil
	for _, id := range unsure {
		c, err := m.s.Open(ctx, id)
		if errors.Is(err, ctxfolder.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		unread := error(nil)
		if err = c.MakeDurable(ctx); err == nil {
			unread, err = c.References(ctx, true, m.mark)
		}
		if err = cmp.Or(err, unread, c.Close()); err != nil && !errors.Is(err, engine.ErrGone) {
			return fmt.Errorf("context %s: %w", id, err)
		}
	}
	return nil
}

// waitForWriters waits until every writer that found a blob has committed, and returns the time.
func waitForWriters(ctx context.Context, s *engine.Store) (time.Time, error) {
	lock := s.FS.Lock(engine.BlobsLock)
	defer lock.Close()
	if err := s.Acquire(ctx, lock); err != nil {
		return time.Time{}, err
	}
	defer lock.Release()
	return s.Now(), nil
}

// Mark returns the blobs to which something refers. With an error it returns those of the readable contexts.
func Mark(ctx context.Context, s *engine.Store) (map[blob.Sum]bool, error) {
	m := newMarker(s, time.Time{})
	err := m.markAll(ctx)
	return m.marked, cmp.Or(err, m.unread)
}

// markAll reads every context that was not seen. A context may be moving to trash or back, so markAll reads the store
// before and after the trash. It fails only if they cannot be listed.
func (m *marker) markAll(ctx context.Context) error {
	in := func(s *engine.Store) error { return m.markContexts(ctx, s) }
	err := in(m.s)
	if err == nil {
		err = eachTrashedStore(m.s, in)
	}
	if err == nil {
		err = in(m.s)
	}
	return err
}

func (m *marker) markContexts(ctx context.Context, in *engine.Store) error {
	for id, err := range in.IDs() {
		if err != nil {
			return err
		}
		if in == m.s && m.seen[id] {
			continue
		}
		c, err := in.Open(ctx, id)
		if errors.Is(err, ctxfolder.ErrNotExist) {
			continue // it was removed meanwhile: its blobs are marked in its new place, or swept the next time
		}
		var unread error
		if err == nil {
			unread, err = c.References(ctx, true, m.mark)
			if n, _, lerr := c.Index.UnsealedBytes(); in == m.s && (n > 0 || lerr != nil) {
				m.unsure = append(m.unsure, id)
			}
			err = cmp.Or(err, c.Close())
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		m.noteErrors(id, unread, err, in == m.s)
	}
	return nil
}

func (m *marker) mark(sum blob.Sum) { m.marked[sum] = true }

// noteErrors records the errors of reading a context. A context removed meanwhile does not count as seen.
func (m *marker) noteErrors(id uuid.UUID, unread, err error, here bool) {
	if errors.Is(err, engine.ErrGone) {
		return
	}
	m.seen[id] = m.seen[id] || here
	if err = cmp.Or(unread, err); err != nil && m.unread == nil {
		m.unread = fmt.Errorf("context %s: %w", id, err)
	}
}

// eachTrashedStore calls f for each item in the store's trash, as a read-only store.
func eachTrashedStore(s *engine.Store, f func(*engine.Store) error) error {
	for e, err := range s.FS.ReadDir(ctxfolder.Trash) {
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return err
		}
		if !e.IsDir() {
			continue
		}
		item, err := s.FS.Sub(ctxfolder.Trash + "/" + e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was purged meanwhile
		}
		if err != nil {
			return err
		}
		in := s.In(item)
		in.ReadOnly = true
		err = errors.Join(f(in), item.Close())
		if err != nil {
			return err
		}
	}
	return nil
}

// sweeper is the state of one sweep.
type sweeper struct {
	s      *engine.Store
	before time.Time // blobs used later stay
	dryRun bool
	purge  bool // remove the blobs for good
	yield  func(engine.TrashItem) bool
	item   string // in trash, made when first needed
	found  []blob.Sum
}

// flush moves the found blobs. more is false when yield returned false.
//
// Crash order: the item's note is durable before a blob is renamed into it. A blob is in its place or in trash.
func (w *sweeper) flush(ctx context.Context) (more bool, err error) {
	found := w.found
	w.found = w.found[:0]
	if len(found) == 0 {
		return true, nil
	}
	moved, err := w.moveAll(ctx, found)
	for _, t := range moved { // the lock is free, since the caller may write
		if !w.yield(t) {
			return false, err
		}
	}
	return err == nil, err
}

// moveAll moves the blobs that no writer used meanwhile, with the lock held.
func (w *sweeper) moveAll(ctx context.Context, found []blob.Sum) (moved []engine.TrashItem, err error) {
	lock := w.s.FS.Lock(engine.BlobsLock)
	defer lock.Close()
	if err := w.s.Acquire(ctx, lock); err != nil {
		return nil, err
	}
	defer lock.Release()
	for _, sum := range found {
		t, ok, err := w.move(sum)
		if err != nil {
			return moved, err
		}
		if ok {
			moved = append(moved, t)
		}
	}
	if w.item == "" {
		return moved, nil
	}
	return moved, w.s.FS.SyncDir(w.item)
}

func (w *sweeper) move(sum blob.Sum) (t engine.TrashItem, ok bool, err error) {
	p := blob.Path(sum)
	info, err := w.s.FS.Lstat(p)
	if errors.Is(err, fs.ErrNotExist) {
		return t, false, nil
	}
	if err != nil || !info.ModTime().Before(w.before) {
		return t, false, err
	}
	t = engine.TrashItem{Path: p, Bytes: info.Size(), Reason: "no message refers to it", Kind: ctxfolder.TrashBlobs, Name: sum.String()}
	if w.dryRun {
		return t, true, nil
	}
	if w.purge {
		if err := w.s.FS.Remove(p); err != nil {
			return t, false, err
		}
		return t, true, w.s.FS.SyncDir(path.Dir(p))
	}
	if w.item == "" {
		item := ctxfolder.TrashItem{Kind: ctxfolder.TrashBlobs, Name: blob.Folder, RemovedAt: w.s.Now()}
		if w.item, err = ctxfolder.NewTrash(w.s.FS, item); err != nil {
			return t, false, err
		}
	}
	t.Path, t.Item = w.item+"/"+sum.String()+".zst", engine.ItemID(w.item)
	return t, true, w.s.FS.Rename(p, t.Path)
}
