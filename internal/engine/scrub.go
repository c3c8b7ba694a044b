package engine

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/views"
	"github.com/google/uuid"
)

// Scrub seals all that logs have. Then the files of the history have nothing of messages that were erased or cut. With
// versions, they have no version of a message that was replaced, nor have files of messages; and with metadata, they have
// nothing of earlier metadata.
//
// Crash order: see [index.Index.Seal]. A second call finishes it.
func (c *Context) Scrub(ctx context.Context, versions, metadata bool) error {
	if c.Store.ReadOnly {
		return ErrReadOnly
	}
	if err := c.Store.Acquire(ctx, c.Dir.SealLock); err != nil {
		return err
	}
	defer c.Dir.SealLock.Release()
	err := c.sealHeld(ctx)
	o := archive.Options{With: mergeCompressor()}
	if err == nil && versions {
		var replaced map[uuid.UUID]map[int64]bool
		if replaced, err = c.Index.ForgetVersions(o); err == nil {
			err = c.refreshViews(ctx, replaced)
		}
	}
	if err == nil && metadata {
		err = c.Index.ForgetMetadata(o)
	}
	if err == nil {
		c.summarise()
	}
	return err
}

// refreshedAtOnce bounds how many files are looked at during one hold of the lock.
const refreshedAtOnce = 256

// refreshViews replaces files of messages that hold neither what was committed nor an edit of it: an interrupted writer, or
// a power cut, left an earlier version. It goes to the trash, since somebody may have edited that.
func (c *Context) refreshViews(ctx context.Context, replaced map[uuid.UUID]map[int64]bool) error {
	for _, l := range c.Current().Lines {
		for some := range slices.Chunk(slices.Sorted(maps.Keys(replaced[l.ID])), refreshedAtOnce) {
			err := c.Write(ctx, func(*Metadata) error {
				for _, p := range some {
					if err := c.refreshView(&l, p); err != nil {
						return err
					}
				}
				err := c.Dir.FS.SyncDir(ctxfolder.Messages + "/" + l.Folder) // a power cut would undo replacements
				if errors.Is(err, fs.ErrNotExist) {
					err = nil
				}
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Context) refreshView(l *ctxfolder.Line, position int64) error {
	e, ok, err := c.Index.Entry(l.ID, position)
	if err != nil || !ok || e.Gone != archive.Here {
		return err
	}
	_, is, err := views.Read(c.Dir, l.Folder, &e)
	switch {
	case vfs.IsFault(err):
		return err
	case is != views.Stale && (is != views.Damaged || !errors.Is(err, ErrDamaged)):
		return nil
	}
	if err := c.Dir.SetAside(c.Dir.MessagePath(l.Folder, e.ID)); err != nil || position < l.Archived {
		return err
	}
	raw, err := c.Index.ReadOne(&e)
	if err == nil {
		err = c.Dir.CreateMessage(l.Folder, e.ID, raw, e.StoredAt())
	}
	return err
}
