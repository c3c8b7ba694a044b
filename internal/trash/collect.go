package trash

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/collected"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/sweep"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Collect purges what was removed longer ago than the grace period: removed lines, in their place, and the content of
// trash folders. It sweeps blobs: see [Sweep]. It archives messages as the settings of the store say. It seals contexts
// that were not written for an hour. It yields what it did. For a context or a trash that fails, it yields an error with
// the context's id, and continues.
//
// To make room, it purges the store's trash first, and a context's trash before its removed lines. Writers are safe:
// Collect cuts off messages under the context's lock. It fails with [engine.ErrLocked] while another one runs.
func Collect(ctx context.Context, s *engine.Store, o CollectOptions) iter.Seq2[CollectResult, error] {
	return func(next func(CollectResult, error) bool) {
		more := true // an error may come after the caller has stopped
		yield := func(r CollectResult, err error) bool {
			more = more && next(r, err)
			return more
		}
		fail := func(err error) {
			yield(CollectResult{}, engine.Wrap(engine.Error{Op: "collect in", Path: s.Path()}, err))
		}
		if !o.DryRun {
			release, err := lockCollection(ctx, s)
			if err != nil {
				fail(err)
				return
			}
			defer release()
		}
		if err := collect(ctx, s, o, true, yield); err != nil {
			fail(err)
		}
	}
}

// maxAutomatic bounds the time of an automatic collection, and maxArchived the bytes that it archives in one context,
// so that a large context is archived in several collections; collectionInterval is the time between two of them.
const (
	maxAutomatic       = 2 * time.Second
	maxArchived        = 16 << 20
	collectionInterval = 24 * time.Hour
)

// CollectIfDue collects if no other process does and the last collection was at least a day ago. It stops after two
// seconds; the next collection continues. collected.jsonl, in the store, lists what was removed. An error harms
// nothing.
func CollectIfDue(ctx context.Context, s *engine.Store, o CollectOptions) error {
	if s.ReadOnly || !isCollectionDue(s) {
		return nil
	}
	lock := s.FS.Lock(engine.CollectionLock)
	defer lock.Close()
	if ok, err := lock.TryAcquire(); !ok || err != nil {
		return err
	}
	defer lock.Release()
	if !isCollectionDue(s) {
		return nil // another process was faster
	}
	limited, cancel := context.WithTimeout(ctx, maxAutomatic)
	defer cancel()
	var failed []error
	o.limit = cmp.Or(o.limit, maxArchived)
	err := collect(limited, s, o, false, func(r CollectResult, err error) bool {
		switch {
		case err != nil:
			failed = append(failed, err)
		case o.Report != nil:
			o.Report(r)
		}
		return true
	})
	err = errors.Join(append(failed, err)...)
	if limited.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return engine.Wrap(engine.Error{Op: "collect in", Path: s.Path()}, err)
}

// isCollectionDue reports whether the last collection was long ago. One in the future was made under a wrong clock.
func isCollectionDue(s *engine.Store) bool {
	last, now := collected.Last(s), s.Now()
	return last.After(now) || now.Sub(last) >= collectionInterval
}

// collect does the work. The caller holds [engine.CollectionLock], or it is a dry run. With onePass, it notes
// references to blobs while it has a context open. Otherwise the sweep comes at the end, if time is left, and opens
// each context again.
func collect(
	ctx context.Context, s *engine.Store, o CollectOptions, onePass bool, yield func(CollectResult, error) bool,
) (err error) {
	settings, err := s.ReadSettings()
	if err != nil {
		return err
	}
	if o.Grace < 0 {
		o.Grace = cmp.Or(settings.Grace(), DefaultGrace)
	}
	log := collected.Open(s, o.DryRun)
	defer log.Close()
	log.Add(collected.Line{Record: "run"})
	gone := newRemoval(s)
	defer func() { err = gone.forget(ctx, err) }()
	x := &collector{s: s, o: o, settings: settings, log: log, gone: gone, report: func(x CollectResult, err error) bool {
		if err == nil {
			log.Add(logOf(x))
			if x.Purged && !o.DryRun {
				gone.lose(x.TrashItem)
			}
		}
		return yield(x, err)
	}}
	contexts, err := o.contexts(s)
	if err != nil {
		return err
	}
	var unmarked error
	if onePass && len(o.Contexts) == 0 {
		if x.marks, unmarked = sweep.Start(ctx, s, o.DryRun); unmarked != nil {
			x.marks = nil
		}
	}
	if _, more := x.trash(ctx, s.FS, uuid.Nil, nil); !more {
		return ctx.Err()
	}
	for _, id := range contexts {
		if err := ctx.Err(); err != nil {
			return err
		}
		more, err := x.context(ctx, id)
		if err != nil && ctx.Err() == nil && !errors.Is(err, engine.ErrGone) {
			failed := CollectResult{TrashItem: engine.TrashItem{Context: id}}
			more = x.report(failed, engine.Wrap(engine.Error{Op: "collect", Context: id}, err)) && more
		}
		if !more {
			return ctx.Err()
		}
	}
	if !x.finish(ctx) || len(o.Contexts) > 0 {
		return ctx.Err()
	}
	err = unmarked
	swept := func(t engine.TrashItem) bool { return x.report(CollectResult{t, false}, nil) }
	switch {
	case x.marks != nil:
		if err = x.marks.MarkAll(ctx); err == nil {
			err = x.marks.Sweep(ctx, o.Grace, o.DryRun, swept)
		}
	case err == nil:
		err = sweep.Run(ctx, s, o.Grace, o.DryRun, swept)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, engine.ErrLocked) {
		x.report(CollectResult{TrashItem: engine.TrashItem{Path: blob.Folder}}, engine.Wrap(engine.Error{Op: "sweep", Path: blob.Folder}, err))
		return nil
	}
	return err
}

// collector is the state of one collection.
type collector struct {
	s        *engine.Store
	o        CollectOptions
	settings engine.Settings
	log      *collected.Log
	gone     *removal
	report   func(CollectResult, error) bool
	marks    *sweep.Marker // nil when no references are noted
}

// context collects in one context, which it opens once. To make room, it empties the trash before it cuts lines. It notes
// the blobs that messages refer to after that.
func (x *collector) context(ctx context.Context, id uuid.UUID) (more bool, err error) {
	c, err := x.s.Open(ctx, id)
	if errors.Is(err, ctxfolder.ErrNotExist) {
		return true, nil // it was removed meanwhile
	}
	if err != nil {
		if sub, serr := x.s.FS.Sub(id.String()); serr == nil {
			defer sub.Close()
			_, more = x.trash(ctx, sub, id, nil)
			return more, err
		}
		return true, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if !x.o.DryRun {
		if err := x.gone.resume(c.Dir.FS, id); err != nil {
			return true, err
		}
	}
	inTrash, more := x.trash(ctx, c.Dir.FS, id, c)
	if more {
		more, err = x.lines(ctx, c)
	}
	if !x.o.DryRun && err == nil { // else the note says what is left to do
		ended, eerr := x.gone.end(ctx, c)
		if err = errors.Join(err, eerr); ended && more && x.o.Grace <= 0 { // what was set aside meanwhile
			inTrash, more = x.trash(ctx, c.Dir.FS, id, c)
		}
	}
	if more && err == nil {
		err = x.archive(ctx, c)
	}
	if x.marks != nil && ctx.Err() == nil {
		unread, failed := c.ReferencesInLines(ctx, true, x.marks.Mark)
		x.marks.NoteErrors(id, unread, cmp.Or(failed, inTrash), true)
	}
	if more && err == nil && !x.o.DryRun && isIdle(c) {
		err = c.Seal(ctx)
	}
	return more && ctx.Err() == nil, err
}

// archive archives messages of a context as the settings of the store say.
func (x *collector) archive(ctx context.Context, c *engine.Context) error {
	o, some := archiving.FromSettings(x.settings)
	if !some {
		return nil
	}
	o.DryRun = x.o.DryRun
	done, err := archiving.Old(ctx, c, o, x.o.limit)
	if done.Messages > 0 {
		x.log.Add(logOfArchived(done))
		if x.o.Archived != nil {
			x.o.Archived(done)
		}
	}
	return err
}

// lines purges the removed lines of a context whose grace period is over.
func (x *collector) lines(ctx context.Context, c *engine.Context) (more bool, err error) {
	if err := c.Problem(); err != nil {
		return true, err
	}
	unnamed, err := noteUnnamed(ctx, c, x.o.DryRun)
	for _, t := range unnamed {
		if !x.report(CollectResult{t.describe(), false}, nil) {
			return false, err
		}
	}
	expired := func(r *ctxfolder.Removed) bool { return x.s.Now().Sub(r.At) >= x.o.Grace }
	lines, lerr := removedLines(ctx, c, c.Current(), expired)
	if err = errors.Join(err, lerr); err == nil && !x.o.DryRun {
		err = x.gone.purgeLines(ctx, c, expired)
	}
	if err != nil {
		return true, err
	}
	for _, t := range lines {
		if !x.report(CollectResult{t.describe(), true}, nil) {
			return false, nil
		}
	}
	return true, nil
}

// trash lists the trash of a context, or of the store for uuid.Nil, once. It removes half-made and expired items. With
// c it also notes the blobs to which the other items refer; unread is the error of that.
func (x *collector) trash(ctx context.Context, fsys vfs.FS, in uuid.UUID, c *engine.Context) (unread error, more bool) {
	unlisted := func(err error) bool {
		return x.report(CollectResult{TrashItem: (&trashItem{in: in}).describe()}, engine.Wrap(engine.Error{Op: "list", Path: Path(in)}, err))
	}
	entries, err := ctxfolder.ListTrash(fsys)
	if err != nil {
		return err, unlisted(err)
	}
	if !x.o.DryRun && (in != uuid.Nil || len(x.o.Contexts) == 0) {
		temporary := func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") }
		x.gone.trashes[in] = x.gone.trashes[in] || slices.ContainsFunc(entries, temporary)
		rest := entries
		if in == uuid.Nil {
			rest, err = x.gone.resumeTrash(entries)
		}
		if err = errors.Join(err, ctxfolder.SweepTrash(fsys, rest)); err != nil {
			err = engine.Wrap(engine.Error{Op: "sweep", Path: Path(in)}, err)
			if !x.report(CollectResult{TrashItem: (&trashItem{in: in}).describe()}, err) {
				return nil, false
			}
		}
	}
	// An item is no older than its name, so most old versions need not be read.
	old := func(id uuid.UUID, _ bool) bool { return x.s.Now().Sub(ctxfolder.TimeOf(id)) >= x.o.Grace }
	expired := func(t *ctxfolder.TrashEntry) bool {
		return old(t.ID, true) && isExpired(x.s, &trashItem{TrashEntry: t, in: in}, x.o.Grace)
	}
	var unbegun error
	if in != uuid.Nil && !x.o.DryRun {
		unbegun = x.gone.beginItems(fsys, in, entries, old, expired)
	}
	for t := range ctxfolder.Items(fsys, entries, old) {
		if ctx.Err() != nil {
			return nil, false
		}
		if in == uuid.Nil && len(x.o.Contexts) > 0 && !slices.Contains(x.o.Contexts, t.Item.Context) {
			continue
		}
		item := &trashItem{TrashEntry: t, in: in}
		if isExpired(x.s, item, x.o.Grace) {
			gone := item.describe()
			err := unbegun
			if err == nil {
				err = x.gone.purgeItem(ctx, item, x.o.DryRun)
			}
			if !x.report(CollectResult{gone, true}, engine.Wrap(engine.Error{Op: "purge", Path: gone.Path}, err)) {
				return nil, false
			}
		}
	}
	if c != nil && x.marks != nil {
		unread = c.ReferencesInTrash(entries, x.marks.Mark)
	}
	return unread, ctx.Err() == nil
}

// finish removes the payloads of what was purged. A collection that ran out of time leaves them to the next one.
func (x *collector) finish(ctx context.Context) (more bool) {
	if x.o.DryRun || ctx.Err() != nil {
		return ctx.Err() == nil
	}
	if x.marks != nil && x.marks.Unread != nil { // the sweep says what could not be read
		if err := x.gone.clean(); err != nil {
			return x.report(CollectResult{}, err)
		}
		return true
	}
	blobs, err := x.gone.finish(ctx, x.marks)
	for _, t := range blobs {
		if !x.report(CollectResult{t, true}, nil) {
			return false
		}
	}
	if err != nil && ctx.Err() == nil {
		failed := CollectResult{TrashItem: engine.TrashItem{Path: blob.Folder}}
		return x.report(failed, engine.Wrap(engine.Error{Op: "purge payloads in", Path: blob.Folder}, err))
	}
	return ctx.Err() == nil
}

// sealDelay is the time without a write before a collection seals what logs have: small contexts do so at no other time.
const sealDelay = time.Hour

// isIdle reports whether logs have records, and nothing was written for sealDelay.
func isIdle(c *engine.Context) bool {
	n, _, err := c.Index.UnsealedBytes()
	if err != nil || n == 0 {
		return false
	}
	newest, err := c.Index.NewestLog()
	if err != nil {
		return false
	}
	info, err := c.Dir.FS.Lstat(newest)
	return err == nil && c.Store.Now().Sub(info.ModTime()) > sealDelay
}
