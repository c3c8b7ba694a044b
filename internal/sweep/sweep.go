// Package sweep finds the blobs to which nothing refers, and moves them to the store's trash.
package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// Batch bounds the blobs moved during one hold of the lock.
const Batch = 64

// Run moves unreferenced blobs to the store's trash: blobs to which no context refers, not even an archived or
// trashed one, and which no writer used within grace. It yields each; with dryRun it moves none. It reads the index of
// every context and the messages with payloads. If one of these is unreadable, Run moves nothing: the message may
// refer to any blob. The caller holds [engine.CollectionLock], unless it is a dry run.
//
// A record in a log need not be durable: its writer may be relaxed, or its sync may have failed. After a power cut the
// record would be gone, and the message that it replaced would need its blob again. So before Run moves a blob, it makes
// the logs durable that it relied on, and reads those contexts again.
//
// A concurrent writer that refers to a blob is safe. It holds the lock on blobs, shared, from finding the blob to its
// commit. The sweep takes the lock exclusively once before it reads contexts, so that every writer that found a blob
// earlier has committed. A writer that finds a blob later gives it a new time. The sweep checks that time again, with
// the lock held, before it moves the blob.
func Run(ctx context.Context, s *engine.Store, grace time.Duration, dryRun bool, yield func(engine.TrashItem) bool) error {
	m, err := Start(ctx, s, dryRun)
	if err == nil {
		err = m.MarkAll(ctx)
	}
	if err != nil {
		return err
	}
	return m.Sweep(ctx, grace, dryRun, yield)
}

// Marker collects the blobs to which something refers.
type Marker struct {
	s      *engine.Store
	At     time.Time // of its beginning: a newer blob may have references since
	Marked map[blob.Sum]bool
	seen   map[uuid.UUID]bool // contexts in the store
	unsure []uuid.UUID        // contexts with records in logs, which may not be durable
	Unread error              // the first error of reading a context
}

// Start waits until every writer that found a blob has committed: later reads of its context see the reference.
func Start(ctx context.Context, s *engine.Store, dryRun bool) (*Marker, error) {
	if s.ReadOnly && !dryRun {
		return nil, engine.ErrReadOnly
	}
	if !dryRun {
		if err := ctxfolder.SweepStaging(s.FS); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	at, err := WaitForWriters(ctx, s)
	return newMarker(s, at), err
}

func newMarker(s *engine.Store, at time.Time) *Marker {
	return &Marker{s: s, At: at, Marked: map[blob.Sum]bool{}, seen: map[uuid.UUID]bool{}}
}

// Sweep moves the unmarked blobs to the trash.
func (m *Marker) Sweep(ctx context.Context, grace time.Duration, dryRun bool, yield func(engine.TrashItem) bool) error {
	if m.Unread != nil {
		return m.Unread
	}
	before := m.At
	if limit := before.Add(-grace); limit.Before(before) {
		before = limit
	}
	w := Sweeper{Store: m.s, Before: before, DryRun: dryRun, Yield: yield}
	for sum, err := range m.s.Blobs.Walk(nil) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if !m.Marked[sum] {
			w.Found = append(w.Found, sum)
		}
		if len(w.Found) == Batch {
			if more, err := m.Flush(ctx, &w); !more {
				return err
			}
		}
	}
	_, err := m.Flush(ctx, &w)
	return err
}

// Flush moves the found blobs that are still unmarked once the contexts are durable.
func (m *Marker) Flush(ctx context.Context, w *Sweeper) (more bool, err error) {
	if len(w.Found) == 0 {
		return true, nil
	}
	if !w.DryRun {
		if err := m.makeDurable(ctx); err != nil {
			return false, err
		}
		w.Found = slices.DeleteFunc(w.Found, func(sum blob.Sum) bool { return m.Marked[sum] })
	}
	return w.Flush(ctx)
}

// makeDurable makes the logs durable on which marks rely, and marks what those contexts refer to then.
func (m *Marker) makeDurable(ctx context.Context) error {
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
			unread, err = c.References(ctx, true, m.Mark)
		}
		if err = cmp.Or(err, unread, c.Close()); err != nil && !errors.Is(err, engine.ErrGone) {
			return fmt.Errorf("context %s: %w", id, err)
		}
	}
	return nil
}

// WaitForWriters waits until every writer that found a blob has committed, and returns the time.
func WaitForWriters(ctx context.Context, s *engine.Store) (time.Time, error) {
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
	err := m.MarkAll(ctx)
	return m.Marked, cmp.Or(err, m.Unread)
}

// MarkAll reads every context that was not seen. A context may be moving to trash or back, so MarkAll reads the store
// before and after the trash. It fails only if they cannot be listed.
func (m *Marker) MarkAll(ctx context.Context) error {
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

func (m *Marker) markContexts(ctx context.Context, in *engine.Store) error {
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
			unread, err = c.References(ctx, true, m.Mark)
			if n, _, lerr := c.Index.UnsealedBytes(); in == m.s && (n > 0 || lerr != nil) {
				m.unsure = append(m.unsure, id)
			}
			err = cmp.Or(err, c.Close())
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		m.NoteErrors(id, unread, err, in == m.s)
	}
	return nil
}

func (m *Marker) Mark(sum blob.Sum) { m.Marked[sum] = true }

// NoteErrors records the errors of reading a context. A context removed meanwhile does not count as seen.
func (m *Marker) NoteErrors(id uuid.UUID, unread, err error, here bool) {
	if errors.Is(err, engine.ErrGone) {
		return
	}
	m.seen[id] = m.seen[id] || here
	if err = cmp.Or(unread, err); err != nil && m.Unread == nil {
		m.Unread = fmt.Errorf("context %s: %w", id, err)
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

// Sweeper is the state of one sweep.
type Sweeper struct {
	Store  *engine.Store
	Before time.Time // blobs used later stay
	DryRun bool
	Purge  bool // remove the blobs for good
	Yield  func(engine.TrashItem) bool
	Found  []blob.Sum
	item   string // in trash, made when first needed
}

// Flush moves the found blobs. more is false when yield returned false.
//
// Crash order: the item's note is durable before a blob is renamed into it. A blob is in its place or in trash.
func (w *Sweeper) Flush(ctx context.Context) (more bool, err error) {
	found := w.Found
	w.Found = w.Found[:0]
	if len(found) == 0 {
		return true, nil
	}
	moved, err := w.moveAll(ctx, found)
	for _, t := range moved { // the lock is free, since the caller may write
		if !w.Yield(t) {
			return false, err
		}
	}
	return err == nil, err
}

// moveAll moves the blobs that no writer used meanwhile, with the lock held.
func (w *Sweeper) moveAll(ctx context.Context, found []blob.Sum) (moved []engine.TrashItem, err error) {
	lock := w.Store.FS.Lock(engine.BlobsLock)
	defer lock.Close()
	if err := w.Store.Acquire(ctx, lock); err != nil {
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
	return moved, w.Store.FS.SyncDir(w.item)
}

func (w *Sweeper) move(sum blob.Sum) (t engine.TrashItem, ok bool, err error) {
	p := blob.Path(sum)
	info, err := w.Store.FS.Lstat(p)
	if errors.Is(err, fs.ErrNotExist) {
		return t, false, nil
	}
	if err != nil || !info.ModTime().Before(w.Before) {
		return t, false, err
	}
	t = engine.TrashItem{Path: p, Bytes: info.Size(), Reason: "no message refers to it", Kind: ctxfolder.TrashBlobs, Name: sum.String()}
	if w.DryRun {
		return t, true, nil
	}
	if w.Purge {
		if err := w.Store.FS.Remove(p); err != nil {
			return t, false, err
		}
		return t, true, w.Store.FS.SyncDir(path.Dir(p))
	}
	if w.item == "" {
		item := ctxfolder.TrashItem{Kind: ctxfolder.TrashBlobs, Name: blob.Folder, RemovedAt: w.Store.Now()}
		if w.item, err = ctxfolder.NewTrash(w.Store.FS, item); err != nil {
			return t, false, err
		}
	}
	t.Path, t.Item = w.item+"/"+sum.String()+".zst", engine.ItemID(w.item)
	return t, true, w.Store.FS.Rename(p, t.Path)
}
