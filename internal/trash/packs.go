package trash

import (
	"context"
	"slices"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// collectPacks writes the live messages of mostly dead packs to a new pack, and moves unread packs to trash. A new pack
// omits messages that were cut from a line: a rebuild would bring them back.
func collectPacks(ctx context.Context, c *engine.Context, dryRun bool, yield func(CollectResult) bool) (more bool, err error) {
	if !dryRun { // the messages cut since may have been the last ones that the index read from a pack
		if more, err := collectCopies(ctx, c, false, yield); !more || err != nil {
			return more, err
		}
	}
	uses, err := c.Log.PackUses(ctx)
	if err != nil || len(uses) == 0 {
		return true, err
	}
	if !dryRun {
		if err := c.Log.ClearLeftovers(ctx); err != nil {
			return true, err
		}
	}
	plan := index.Plan{Pack: map[uuid.UUID]index.Spans{}, Payloads: integrity.PackedPayloads(c.Log)}
	for _, use := range uses {
		t := replacedPack(c, &use)
		switch {
		case !use.Named: // see collectCopies; a repair can use it
		case use.Bytes < use.TotalBytes/2 || use.Cut > 0:
			engine.AddSpans(plan.Pack, use.Live)
			if dryRun && !yield(CollectResult{t, true}) {
				return false, nil
			}
		}
	}
	if dryRun || len(plan.Pack) == 0 {
		return true, nil
	}
	moved, err := c.Log.Arrange(ctx, plan)
	for _, use := range uses {
		if slices.Contains(moved.Removed, use.ID) {
			if !yield(CollectResult{replacedPack(c, &use), true}) {
				return false, err
			}
		}
	}
	return true, err
}

// collectCopies moves packs that the index does not name to trash if all their messages exist elsewhere. An interrupted
// archive leaves such packs. It runs before messages are cut from their lines, when a copy of them could look like
// another history, and again afterwards: a rebuild would bring back the messages of an unread pack.
func collectCopies(ctx context.Context, c *engine.Context, dryRun bool, yield func(CollectResult) bool) (more bool, err error) {
	if there, err := c.Log.HasUnnamedPacks(); err != nil || !there {
		return true, err
	}
	uses, err := c.Log.PackUses(ctx)
	if err != nil {
		return true, err
	}
	for _, use := range uses {
		if use.Named || use.Lost+use.Hidden > 0 { // a repair will use it again
			continue
		}
		t, drop := replacedPack(c, &use), c.Log.DropPack
		t.Reason, t.Kind = "no message uses it", ctxfolder.TrashDamaged
		if use.Cut > 0 {
			drop = c.Log.RemovePack // a purge cut its messages off
		}
		if !dryRun {
			err = c.Exclusively(ctx, func() error { return drop(use.ID) })
		}
		if err != nil || !yield(CollectResult{t, use.Cut > 0}) {
			return err == nil, err
		}
	}
	return true, nil
}

// replacedPack describes a pack that was rewritten.
func replacedPack(c *engine.Context, use *index.PackUse) engine.TrashItem {
	return engine.TrashItem{
		Context: c.Dir.ID, Path: c.Dir.ID.String() + "/" + ctxfolder.Archive + "/" + archive.FileName(use.ID), Bytes: use.Size,
		Reason: "most of its messages were replaced or removed; the rest is in a new pack",
	}
}
