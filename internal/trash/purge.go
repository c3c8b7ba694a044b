package trash

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"syscall"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/collected"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/google/uuid"
)

// Purge removes items from the trash for good, now: those with these ids, or without ids all that were removed longer
// ago than older. It yields each; with dryRun it removes none. An item whose removal fails comes with its error, and
// the others follow.
func Purge(ctx context.Context, s *engine.Store, items []uuid.UUID, older time.Duration, dryRun bool) iter.Seq2[engine.TrashItem, error] {
	return func(yield func(engine.TrashItem, error) bool) {
		fail := func(err error) {
			yield(engine.TrashItem{}, engine.Wrap(engine.Error{Op: "empty the trash of", Path: s.Path()}, err))
		}
		if !dryRun {
			release, err := lockCollection(ctx, s)
			if err != nil {
				fail(err)
				return
			}
			defer release()
		}
		log := collected.Open(s, dryRun)
		defer log.Close()
		gone, stopped := newRemoval(s), false
		defer func() {
			if err := gone.forget(ctx, nil); err != nil && !stopped {
				fail(err)
			}
		}()
		purged := func(t *trashItem, err error) bool {
			x := t.describe()
			if err == nil {
				log.Add(logOf(CollectResult{x, true}))
			}
			if !dryRun {
				gone.lose(x)
			}
			stopped = !yield(x, engine.Wrap(engine.Error{Op: "purge", Path: x.Path}, err))
			return !stopped
		}
		selected := func(t *trashItem) bool {
			return (len(items) == 0 || slices.Contains(items, t.ID)) && (len(items) > 0 || older <= 0 || isExpired(s, t, older))
		}
		if len(items) == 0 && !dryRun {
			for t, err := range gone.resumeAll() {
				if stopped = !yield(t, err); stopped || t.Context == uuid.Nil {
					return
				}
			}
		}
		// Lines go last: the other items make room.
		lines, more := gone.purgeItems(ctx, selected, dryRun, purged, func(t *trashItem, err error) bool {
			if t == nil {
				stopped = true
				fail(err)
				return false
			}
			stopped = !yield(t.describe(), err)
			return !stopped
		})
		if !more {
			return
		}
		if !gone.purgeLinesOf(ctx, lines, dryRun, purged) || dryRun {
			return
		}
		everything := len(items) == 0 && older <= 0
		gone.endPurge(ctx, everything, purged, func(x engine.TrashItem, err error) bool {
			if err == nil {
				log.Add(logOf(CollectResult{x, true}))
			}
			stopped = !yield(x, err)
			return !stopped
		})
	}
}

// purgeItems purges the selected items, except removed lines, which it returns.
func (x *removal) purgeItems(
	ctx context.Context, selected func(t *trashItem) bool, dryRun bool, purged, unlisted func(t *trashItem, err error) bool,
) (lines []*trashItem, more bool) {
	for t, err := range EachItem(ctx, x.s, nil, nil) {
		switch {
		case err != nil:
			if !unlisted(t, err) {
				return nil, false
			}
		case !selected(t):
		case t.line != nil:
			lines = append(lines, t)
		case !purged(t, x.purgeSelected(ctx, t, selected, dryRun)):
			return nil, false
		}
	}
	return lines, true
}

// endPurge does what follows the removal of items: see removal. With everything it also purges what was set aside
// meanwhile.
func (x *removal) endPurge(
	ctx context.Context, everything bool, purged func(t *trashItem, err error) bool, yield func(engine.TrashItem, error) bool,
) {
	for id, err := range x.endAll(ctx) {
		if !yield(engine.TrashItem{Context: id}, engine.Wrap(engine.Error{Op: "purge in", Context: id}, err)) {
			return
		}
	}
	if ended := x.ended(); everything && len(ended) > 0 {
		for t, err := range EachItem(ctx, x.s, ended, nil) {
			switch {
			case t == nil:
				yield(engine.TrashItem{}, engine.Wrap(engine.Error{Op: "list the trash of", Path: x.s.Path()}, err))
				return
			case err != nil && !yield(t.describe(), err):
				return
			case err != nil:
			case t.in != uuid.Nil && t.line == nil && !purged(t, x.purgeItem(ctx, t, false)):
				return
			}
		}
	}
	blobs, err := x.finish(ctx, nil)
	for _, t := range blobs {
		if !yield(t, nil) {
			return
		}
	}
	if err != nil {
		yield(engine.TrashItem{Path: blob.Folder}, engine.Wrap(engine.Error{Op: "purge payloads in", Path: blob.Folder}, err))
	}
}

// purgeSelected purges one of the selected items. Before the first one of a context, it begins their removal there.
func (x *removal) purgeSelected(ctx context.Context, t *trashItem, selected func(t *trashItem) bool, dryRun bool) error {
	err, known := x.begun[t.in]
	if !known && t.in != uuid.Nil && !dryRun {
		err = x.beginTrash(t.in, selected)
		x.begun[t.in] = err
	}
	if err == nil {
		err = x.purgeItem(ctx, t, dryRun)
	}
	return err
}

// beginTrash is begin for the selected items of a context's trash.
func (x *removal) beginTrash(id uuid.UUID, selected func(t *trashItem) bool) error {
	fsys, err := x.s.FS.Sub(id.String())
	if err != nil {
		return err
	}
	defer fsys.Close()
	entries, err := ctxfolder.ListTrash(fsys)
	if err != nil {
		return err
	}
	return x.beginItems(fsys, id, entries, nil, func(t *ctxfolder.TrashEntry) bool { return selected(&trashItem{TrashEntry: t, in: id}) })
}

// purgeLinesOf purges removed lines, those of a context together.
func (x *removal) purgeLinesOf(
	ctx context.Context, lines []*trashItem, dryRun bool, purged func(t *trashItem, err error) bool,
) (more bool) {
	for len(lines) > 0 {
		n := slices.IndexFunc(lines, func(t *trashItem) bool { return t.in != lines[0].in })
		if n < 0 {
			n = len(lines)
		}
		var err error
		if !dryRun {
			err = x.purgeRemoved(ctx, lines[0].in, lines[:n])
		}
		for _, t := range lines[:n] {
			if !purged(t, err) {
				return false
			}
		}
		lines = lines[n:]
	}
	return true
}

// purgeRemoved purges removed lines of a context.
func (x *removal) purgeRemoved(ctx context.Context, id uuid.UUID, lines []*trashItem) error {
	return withContext(ctx, x.s, id, func(c *engine.Context) error {
		err := x.purgeLines(ctx, c, func(r *ctxfolder.Removed) bool {
			return slices.ContainsFunc(lines, func(t *trashItem) bool { return t.ID == r.Line })
		})
		if err == nil {
			_, err = x.end(ctx, c)
		}
		return err
	})
}

// isExpired reports whether an item was removed longer ago than grace. A clock that was set back makes it younger.
func isExpired(s *engine.Store, t *trashItem, grace time.Duration) bool {
	return s.Now().Sub(t.Since()) >= grace
}

// purgeItem removes an item of a trash folder. The caller holds [engine.CollectionLock], unless it is a dry run.
func (x *removal) purgeItem(ctx context.Context, t *trashItem, dryRun bool) error {
	if dryRun {
		return nil
	}
	t.bytes = t.Size() // the result says what was freed
	err := x.s.BeginErasure(t.Item.Context)
	switch {
	case t.Unread: // it may be a context, with more to remove than its folder
		err = t.Problem
	case err != nil:
	case t.in == uuid.Nil && t.Problem == nil && t.Item.Kind == ctxfolder.TrashContext:
		err = x.purgeContext(ctx, t.TrashEntry)
	default:
		x.trashes[t.in] = true
		err = t.Purge()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil && t.in != uuid.Nil {
		x.in(t.in).left = true
	}
	return err
}

// purgeContext purges a context in the store's trash.
//
// Crash order: the summaries lose the context first, and [engine.PurgedFile] has it before it is gone. erasing.json in the item
// names the payloads and is durable before the item is removed. It goes when the payloads are gone. If it cannot be written,
// since the disk is full, a sweep finds the payloads.
func (x *removal) purgeContext(ctx context.Context, t *ctxfolder.TrashEntry) error {
	if !x.trashes[uuid.Nil] { // once
		if err := listing.Forget(x.s); err != nil {
			return err
		}
	}
	x.trashes[uuid.Nil] = true
	if err := notePurged(x.s, t.Item.Context); err != nil && !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	item, err := x.s.FS.Sub(t.Path)
	if err != nil {
		return err
	}
	n := ctxfolder.Erasing{}
	err = x.eachReference(ctx, item, t.Item.Context, func(sum blob.Sum) {
		x.refer(sum)
		n.Blobs = append(n.Blobs, sum.String())
	})
	noted := false
	if err == nil && len(n.Blobs) > 0 {
		noted = ctxfolder.WriteErasing(item, n) == nil
	}
	if err = errors.Join(err, item.Close()); err != nil {
		return err
	}
	if !noted {
		return t.Purge()
	}
	rest, err := t.PurgeBut(ctxfolder.ErasingFile)
	if err == nil {
		x.rests = append(x.rests, rest) // else the next purge takes over what is left, with the note
	}
	return err
}
