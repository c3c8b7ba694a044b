package ctxdir

import (
	"context"
	"slices"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/google/uuid"
)

// collectPacks makes a new pack of what is left of those most of which was replaced or removed, and moves to trash what is read by nobody. Of what was
// replaced or removed there is a copy in trash, as long as its grace period lasts. A pack does not keep what was cut off from a line: a rebuild would bring
// it back.
func (c *Context) collectPacks(ctx context.Context, dryRun bool, yield func(Collected) bool) (more bool, err error) {
	if !dryRun { // what was cut off since may have been all that the index read from a pack
		if more, err := c.collectCopies(ctx, false, yield); !more || err != nil {
			return more, err
		}
	}
	uses, err := c.log.PackUses(ctx)
	if err != nil || len(uses) == 0 {
		return true, err
	}
	if !dryRun {
		if err := c.log.ClearLeft(ctx); err != nil {
			return true, err
		}
	}
	plan := index.Plan{Pack: map[uuid.UUID]index.Spans{}, Payloads: integrity.PackedPayloads(c.log)}
	for _, use := range uses {
		t := c.packGone(&use)
		switch {
		case !use.Named: // a repair makes it of use again, see collectCopies
		case use.Bytes < use.Holds/2 || use.Cut > 0:
			add(plan.Pack, use.Live)
			if dryRun && !yield(Collected{t, true}) {
				return false, nil
			}
		}
	}
	if dryRun || len(plan.Pack) == 0 {
		return true, nil
	}
	moved, err := c.log.Arrange(ctx, plan)
	for _, use := range uses {
		if slices.Contains(moved.Removed, use.ID) {
			if !yield(Collected{c.packGone(&use), true}) {
				return false, err
			}
		}
	}
	return true, err
}

// collectCopies moves packs to trash that the index does not name, such as a stopped archive leaves, if all that they hold is elsewhere too. It comes before
// messages are cut off from their lines, when a copy of them could look like another history, and again behind that: what is left of a pack that nobody reads
// would come back with a rebuild.
func (c *Context) collectCopies(ctx context.Context, dryRun bool, yield func(Collected) bool) (more bool, err error) {
	if there, err := c.log.Unnamed(); err != nil || !there {
		return true, err
	}
	uses, err := c.log.PackUses(ctx)
	if err != nil {
		return true, err
	}
	for _, use := range uses {
		if use.Named || use.Lost+use.Hidden > 0 { // a repair makes it of use again
			continue
		}
		t := c.packGone(&use)
		t.Reason, t.Kind = "no message is read from it", ctxfolder.TrashDamaged
		if !dryRun {
			err = c.exclusively(ctx, func() error { return c.log.DropPack(use.ID) })
		}
		if err != nil || !yield(Collected{t, false}) {
			return err == nil, err
		}
	}
	return true, nil
}

// packGone says that a pack was made anew.
func (c *Context) packGone(use *index.PackUse) Trashed {
	return Trashed{
		Context: c.dir.ID, Path: c.dir.ID.String() + "/" + ctxfolder.Archive + "/" + archive.FileName(use.ID), Bytes: use.Size,
		Reason: "much of it was replaced or removed; the rest is in a new pack",
	}
}
