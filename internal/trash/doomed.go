package trash

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/ctxdir/ctxdir/blob"
	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// purgeExpired purges lines like [purgeLines], and erases the moments that were made from their messages.
//
// Crash order: the moments go first, so that no crash leaves one whose source is gone. Their erasure may finish what was
// purged from the trash of the context, and removes the note of that: begin writes it again.
func (x *removal) purgeExpired(
	ctx context.Context, c *engine.Context, expired func(r *ctxfolder.Removed) bool, yield func(CollectResult) bool,
) error {
	due := func(r ctxfolder.Removed) bool { return r.Why == branch.WhyPurged || expired(&r) }
	if !slices.ContainsFunc(c.Current().Removed, due) {
		return nil
	}
	doomed, err := doomedMessages(ctx, c, due)
	if err == nil {
		err = c.Store.BeforeCut(ctx, c.Dir.ID, doomed)
	}
	if err != nil {
		return err
	}
	m := c.Current().Clone()
	for _, r := range slices.Clone(m.Removed) {
		if due(r) {
			branch.Purge(m, r.Line)
		}
	}
	sums := map[blob.Sum]bool{}
	if _, err := c.ReferencesBeyond(ctx, branch.Reach(m), func(sum blob.Sum) { sums[sum] = true }); err != nil {
		return err // an unreadable message is removed as well; a sweep finds its payloads
	}
	err = x.begin(c.Dir.FS, c.Dir.ID, sums)
	if err == nil {
		err = x.referUnused(ctx, c) // before new packs replace journals
	}
	if err != nil {
		return err
	}
	return purgeLines(ctx, c, expired, yield)
}

// doomedMessages returns the messages that only removed lines show that are due: a purge of these removes the messages.
// It returns none if no branch of the context has a kind and no removed line stays, which may have had a branch with one:
// then nothing was made from them.
func doomedMessages(ctx context.Context, c *engine.Context, due func(r ctxfolder.Removed) bool) ([]uuid.UUID, error) {
	m := c.Current().Clone()
	hasKind := func(b ctxfolder.Branch) bool { return b.Extra.Text(ctxfolder.BranchKind) != "" }
	stays := func(r ctxfolder.Removed) bool { return !due(r) }
	if !slices.ContainsFunc(m.Removed, due) || !slices.ContainsFunc(m.Branches, hasKind) && !slices.ContainsFunc(m.Removed, stays) {
		return nil, nil
	}
	for _, r := range slices.Clone(m.Removed) {
		if due(r) {
			branch.Purge(m, r.Line)
		}
	}
	reach := branch.Reach(m)
	doomed := map[uuid.UUID]bool{}
	each := func(from, to func(l *ctxfolder.Line) int64, f func(id uuid.UUID)) error {
		for i := range m.Lines {
			l := &m.Lines[i]
			for entry, err := range c.Log.All(ctx, l.ID, from(l), to(l)) {
				if err != nil {
					return err
				}
				f(entry.ID)
			}
		}
		return nil
	}
	end := func(l *ctxfolder.Line) int64 { return max(reach[l.ID], l.Base) }
	err := each(end, func(*ctxfolder.Line) int64 { return math.MaxInt64 }, func(id uuid.UUID) { doomed[id] = true })
	if err == nil && len(doomed) > 0 { // a message of the same id may stay
		err = each(func(l *ctxfolder.Line) int64 { return l.Base }, end, func(id uuid.UUID) { delete(doomed, id) })
	}
	return slices.Collect(maps.Keys(doomed)), err
}
