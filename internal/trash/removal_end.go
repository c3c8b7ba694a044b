package trash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/ctxdir/ctxdir/internal/sweep"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// end removes from the files of a context what it lost. done reports that it did.
//
// Crash order: readers do without all of it since the commit. The files of messages go first, since nothing makes them
// again; see [engine.Context.Scrub] for the others.
func (x *removal) end(ctx context.Context, c *engine.Context) (done bool, err error) {
	r := x.contexts[c.Dir.ID]
	if r == nil || !r.due {
		return false, nil
	}
	if err = x.referUnused(ctx, c); err == nil { // before the records go
		// As before every commit: a torn metadata.json may have a name that is removed.
		err = c.Write(ctx, func(*engine.Metadata) error { return c.AwaitFiles(ctx) })
	}
	for _, l := range r.cut {
		if err == nil {
			err = removeViews(c, l)
		}
	}
	if err == nil {
		err = c.Scrub(ctx, r.versions, r.metadata)
	}
	if err == nil {
		err = c.Exclusively(ctx, func() error { return clearFolder(c, r.cut) })
	}
	if err == nil {
		err = forgetCut(c.Dir.FS)
	}
	x.s.Forget(c.Dir.ID) // an open log would keep what was removed
	if err != nil {
		r.unrefined = fmt.Errorf("purged data may remain in its files; the next collection tries again: %w", err)
		return false, r.unrefined
	}
	r.due, r.ended = false, true
	return true, nil
}

// forgetCut removes the lines from the note, which may stay while payloads do: it has names of branches.
func forgetCut(fsys vfs.FS) error {
	n, err := ctxfolder.ReadErasing(fsys)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // an erase removed it
	}
	if err != nil || len(n.Cut) == 0 {
		return err
	}
	n.Cut = nil
	return ctxfolder.WriteErasing(fsys, *n)
}

// finish removes the payloads and then the notes. marks, which may be nil, is what a sweep found before. It returns the
// blobs that it removed.
func (x *removal) finish(ctx context.Context, marks *sweep.Marker) ([]engine.TrashItem, error) {
	if err := x.clean(); err != nil {
		return nil, err
	}
	gone, left, err := x.removeBlobs(ctx, marks)
	if err != nil || left {
		return gone, err
	}
	for _, rest := range x.rests {
		if err := vfs.RemoveAll(x.s.FS, rest); err != nil {
			return gone, err
		}
	}
	if len(x.rests) > 0 {
		if err := x.s.FS.SyncDir(ctxfolder.Trash); err != nil {
			return gone, err
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(x.contexts), func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }) {
		if r := x.contexts[id]; r.due || r.left || r.unrefined != nil {
			continue
		}
		if err := x.removeNote(id); err != nil {
			return gone, err
		}
	}
	return gone, nil
}

// endAll is end for the contexts that were not opened yet, those included in which a purge was interrupted. It yields
// what fails.
func (x *removal) endAll(ctx context.Context) iter.Seq2[uuid.UUID, error] {
	return func(yield func(uuid.UUID, error) bool) {
		for id, r := range x.contexts {
			if !r.due || r.unrefined != nil {
				continue
			}
			err := withContext(ctx, x.s, id, func(c *engine.Context) error {
				_, err := x.end(ctx, c)
				return err
			})
			if err != nil && !errors.Is(err, ctxfolder.ErrNotExist) && !yield(id, err) {
				return
			}
		}
	}
}

// ended returns the contexts whose files were rewritten.
func (x *removal) ended() (ids []uuid.UUID) {
	for id, r := range x.contexts {
		if r.ended {
			ids = append(ids, id)
		}
	}
	return ids
}

func (x *removal) removeNote(id uuid.UUID) error {
	fsys, err := x.s.FS.Sub(id.String())
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the context was removed meanwhile
	}
	if err != nil {
		return err
	}
	defer fsys.Close()
	n, err := ctxfolder.ReadErasing(fsys)
	if err != nil || len(n.Messages) > 0 {
		return nil //nolint:nilerr // there is none, or an erase has to be repeated
	}
	return ctxfolder.RemoveErasing(fsys)
}

// forget removes what was purged from the folder of derived data, whatever error ended the purge.
func (x *removal) forget(ctx context.Context, err error) error {
	return errors.Join(err, x.s.EndErasure(context.WithoutCancel(ctx), slices.Collect(maps.Keys(x.lost))...))
}

// clean makes the removals in trash folders durable, and removes the contexts that lost something from the summaries.
func (x *removal) clean() error {
	for id := range x.trashes {
		if err := x.s.FS.SyncDir(Path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if len(x.lost) == 0 {
		return nil
	}
	return listing.Forget(x.s, slices.Collect(maps.Keys(x.lost))...)
}

// clearFolder removes from a context's folder what may hold what a purge removed, other than the history and the files of
// messages: what interrupted writers left, the folders of lines that are gone, and older views. What another history has
// moves to the trash. The caller holds the locks of the context.
func clearFolder(c *engine.Context, cut []ctxfolder.CutLine) error {
	folders, err := messageFolders(c.Dir.FS)
	if err != nil {
		return err
	}
	if err := ClearTemporaries(c.Dir.FS, append(folders, ".", ctxfolder.Segments)...); err != nil {
		return err
	}
	if err := removeFolders(c, cut); err != nil {
		return err
	}
	if err := trashUnlinked(c); err != nil {
		return err
	}
	if err := c.Dir.FS.SyncDir(ctxfolder.Segments); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	summary, err := c.Index.Summary()
	if err == nil {
		err = c.Dir.ReplaceView(ctxfolder.IndexFile, summary)
	}
	if err == nil {
		_, err = c.Dir.WriteMetadata(c.Current()) // durably, and the removal of logs with it
	}
	return err
}

// trashUnlinked moves logs and segments to the trash that do not continue the history of the context. It fails if the
// history is damaged: then they may be part of it.
func trashUnlinked(c *engine.Context) error {
	unlinked, err := c.Index.Tidy()
	if err != nil || len(unlinked) == 0 {
		return err
	}
	problems, err := c.Index.Problems()
	if err == nil && len(problems) > 0 {
		err = fmt.Errorf("%w: %s; run a repair first", engine.ErrDamaged, problems[0].String())
	}
	for _, path := range unlinked {
		if err == nil {
			err = c.Dir.SetAside(path)
		}
	}
	return err
}
