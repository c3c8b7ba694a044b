package trash

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/ctxdir/ctxdir/branch"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// cut ends lines where their orphans begin, and forgets unneeded lines. tried reports that a commit may have happened,
// whatever the error.
func cut(ctx context.Context, c *engine.Context, orphans []*orphan) (tried bool, err error) {
	err = c.Write(ctx, func(current *engine.Metadata) error {
		now, err := findOrphans(c, current)
		if err != nil {
			return err
		}
		still := make(map[uuid.UUID]*orphan, len(now))
		for _, o := range now {
			still[o.Line.ID] = o
		}
		var items []index.Item
		gone := map[uuid.UUID]bool{}
		for _, o := range orphans {
			n := still[o.Line.ID]
			// A branch may show it by now, or the line may have new messages, which are not in trash.
			if o.skipped = n == nil || n.From > o.From || n.to != o.to || n.Line != o.Line; o.skipped {
				continue
			}
			gone[o.Line.ID] = o.Gone && n.Gone
			if o.to > o.From {
				item, err := c.Log.TrimItem(o.Line.ID, o.From)
				if err != nil {
					return err
				}
				items = append(items, item)
			}
		}
		m := current.Clone()
		branch.Forget(m, gone)
		forgets := len(m.Lines) < len(current.Lines)
		if tried = forgets || len(items) > 0; forgets {
			return c.ReplaceMetadata(m, items...)
		}
		if len(items) == 0 {
			return nil
		}
		return c.CommitDurably(items)
	})
	return tried || err == nil, err
}

// clearFiles removes the message files of an item in the context's trash whose messages the line no longer counts. An
// interrupted clear can be repeated. While other processes keep renaming branches, it leaves the rest to the next
// collection.
//
// Crash order: the removals are durable before the item is marked as cleared.
func clearFiles(ctx context.Context, c *engine.Context, item string) error {
	t, err := ctxfolder.ReadTrashed(c.Dir.FS, item)
	if err != nil {
		return err
	}
	if !ctxfolder.ValidFolder(t.Item.Folder) {
		return fmt.Errorf("%s: %q is not a branch folder", item, t.Item.Folder)
	}
	for range engine.SearchAttempts {
		// An unfinished rename is completed first, so that metadata.json shows any later one.
		if err := c.Write(ctx, func(*engine.Metadata) error { return c.AwaitFiles(ctx) }); err != nil {
			return err
		}
		x := fileCleaner{c: c, item: item, info: &t.Item, m: c.Current(), left: map[uuid.UUID]message.Address{}, torn: map[string][]uuid.UUID{}}
		if err := x.run(ctx); err != nil {
			return err
		}
		if _, renamed := c.WithCurrentFolders(x.m); renamed {
			continue
		}
		if err := vfs.WriteNew(c.Dir.FS, item+"/"+ctxfolder.ClearedFile, nil); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		for folder := range x.cleared {
			if err := removeFolder(ctx, c, folder); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// removeFolder removes an empty branch folder that no line uses.
func removeFolder(ctx context.Context, c *engine.Context, folder string) error {
	used := func(m *engine.Metadata) bool {
		return slices.ContainsFunc(m.Lines, func(l ctxfolder.Line) bool { return l.Folder == folder })
	}
	if used(c.Current()) {
		return nil
	}
	// The lock is needed: a new branch may get this folder.
	return c.Write(ctx, func(m *engine.Metadata) error {
		if !used(m) {
			c.Dir.RemoveFolder(folder)
		}
		return nil
	})
}

// clearLeftovers removes message files that a crash left behind after their line was cut.
func clearLeftovers(ctx context.Context, s *engine.Store, t *trashItem) error {
	if t.in == uuid.Nil || t.Problem != nil || t.Item.Kind != ctxfolder.TrashLine || t.Has(ctxfolder.ClearedFile) {
		return nil
	}
	c, err := s.Open(ctx, t.in)
	if err != nil {
		return err
	}
	return errors.Join(clearFiles(ctx, c, t.Path), c.Close())
}

func clearItemFiles(ctx context.Context, c *engine.Context, t *ctxfolder.TrashEntry) error {
	if t.Problem != nil || t.Item.Kind != ctxfolder.TrashLine || t.Has(ctxfolder.ClearedFile) {
		return nil
	}
	return clearFiles(ctx, c, t.Path)
}
