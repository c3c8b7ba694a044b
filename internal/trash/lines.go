package trash

import (
	"context"
	"fmt"
	"slices"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// A removed line spends its grace period in place: the metadata has its former name, the time and the reason. It is an
// item of the context's trash, with the line's id as the item's id.

// removedLines returns the wanted removed lines of a context as items of its trash.
func removedLines(
	ctx context.Context, c *engine.Context, m *engine.Metadata, want func(r *ctxfolder.Removed) bool,
) (items []*trashItem, err error) {
	counts, _, err := c.Log.AllCounts()
	if err != nil {
		return nil, err
	}
	var reach map[uuid.UUID]int64
	var related *engine.Relatives
	for i := range m.Removed {
		r := &m.Removed[i]
		l, ok := m.Line(r.Line)
		if !ok || r.Why == branch.WhyPurged || engine.BranchOfLine(m, r.Line) != nil || !want(r) {
			continue
		}
		if reach == nil {
			reach = branch.Reach(m)
			if related, err = engine.RelativesOf(m, counts); err != nil {
				return nil, err
			}
		}
		item := &trashItem{in: c.Dir.ID, inPlace: true}
		item.TrashEntry = &ctxfolder.TrashEntry{ID: l.ID, Path: ctxfolder.Messages + "/" + l.Folder, Item: ctxfolder.TrashItem{
			Kind: ctxfolder.TrashLine, Name: r.Name, Context: c.Dir.ID, RemovedAt: r.At, Why: r.Why, To: max(counts[l.ID].End(), l.Base),
		}}
		if err := item.measure(ctx, c, m, reach, counts); err != nil {
			return nil, err
		}
		item.line = &engine.RemovedLine{Why: r.Why, First: item.Item.From, End: item.Item.To}
		if item.line.From, item.line.Shared, err = related.Of(l.ID, item.Item.To, r.Name); err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// measure notes the messages that only this removed line shows: the end of its history. A purge of it alone removes
// these.
func (t *trashItem) measure(
	ctx context.Context, c *engine.Context, m *engine.Metadata, reach map[uuid.UUID]int64, counts map[uuid.UUID]index.Counts,
) error {
	without := m.Clone()
	branch.Purge(without, t.ID)
	others := branch.Reach(without)
	t.Item.From = t.Item.To
	for _, l := range m.Lines {
		from, to := max(others[l.ID], l.Base), min(reach[l.ID], counts[l.ID].End())
		if from >= to {
			continue
		}
		t.Item.From = min(t.Item.From, from)
		for e, err := range c.Log.All(ctx, l.ID, from, to) {
			if err != nil {
				return err
			}
			t.bytes += e.Size
		}
	}
	return nil
}

// restoreInPlace gives a removed line its former name again, or a similar one.
//
// Crash order: one commit. Nothing moves.
func restoreInPlace(ctx context.Context, c *engine.Context, t *trashItem, r *RestoreResult) error {
	err := c.Change(ctx, func(m *engine.Metadata) (err error) {
		r.Branch, err = branch.Name(m, t.ID, t.Item.Name)
		return err
	})
	r.Path, r.Messages, r.Bytes = c.Dir.ID.String()+"/"+t.Path, t.Item.To-t.Item.From, t.bytes
	return err
}

// noteUnnamed gives lines that have neither a branch nor an entry among the removed lines such an entry: their grace
// period begins. It returns them.
func noteUnnamed(ctx context.Context, c *engine.Context, dryRun bool) (items []*trashItem, err error) {
	found := map[uuid.UUID]bool{}
	note := func(m *engine.Metadata) error {
		counts, _, err := c.Log.AllCounts()
		if err != nil {
			return err
		}
		clear(found)
		for _, o := range branch.Orphans(m) {
			if (o.Gone || counts[o.Line.ID].End() > o.From) && !branch.IsPurged(m, o.Line.ID) {
				found[o.Line.ID] = true
				m.Removed = append(m.Removed, ctxfolder.Removed{Line: o.Line.ID, At: c.RemovalTime(m), Why: branch.WhyUnnamed})
			}
		}
		return nil
	}
	m := c.Current().Clone()
	if err := note(m); err != nil || len(found) == 0 {
		return nil, err
	}
	if !dryRun {
		if err := c.Change(ctx, note); err != nil {
			return nil, err
		}
	}
	return removedLines(ctx, c, m, func(r *ctxfolder.Removed) bool { return found[r.Line] })
}

// purgeLines removes what only the expired lines show, for good, and what an interrupted purge left.
//
// Crash order: the first commit ends the lines and marks them as purged, so that nothing lists or restores them. Then
// their files go, durably, and packs are written anew without them. Only after that the second commit forgets the
// lines: until then the metadata explains what is left, and the next purge begins again.
func purgeLines(ctx context.Context, c *engine.Context, expired func(r *ctxfolder.Removed) bool, yield func(CollectResult) bool) error {
	due := func(r ctxfolder.Removed) bool { return r.Why == branch.WhyPurged || expired(&r) }
	if !slices.ContainsFunc(c.Current().Removed, due) {
		return nil // without the lock
	}
	var cut []*cutLine
	marked := map[uuid.UUID]bool{}
	err := c.Write(ctx, func(current *engine.Metadata) (err error) {
		m := current.Clone()
		if err := c.Store.BeginForgetting(c.Dir.ID); err != nil {
			return err
		}
		cut, err = cutLines(ctx, c, m, expired)
		for _, r := range m.Removed {
			marked[r.Line] = marked[r.Line] || r.Why == branch.WhyPurged
		}
		return err
	})
	if err != nil || len(cut) == 0 {
		return err
	}
	// The fold drops the rows of the messages that were cut: an index rebuilt without its journals must not believe
	// them. If this fold fails, the next one drops them.
	_ = c.Store.AcquireWith(ctx, func(ctx context.Context) error { return c.Log.Fold(ctx, false) })
	for _, l := range cut {
		if err := l.removeFiles(ctx, c); err != nil {
			return err
		}
	}
	inPacks, err := c.Log.HasCutMessages()
	if err == nil && inPacks {
		if _, err = collectPacks(ctx, c, false, yield); err == nil {
			inPacks, err = c.Log.HasCutMessages()
		}
	}
	if err == nil && inPacks {
		err = fmt.Errorf("%w: other messages of a pack are unreadable; run a repair first", engine.ErrDamaged)
	}
	if err != nil {
		return err
	}
	return forgetLines(ctx, c, marked)
}

// cutLines marks the expired lines as purged and ends each line where its reach ends. It returns these lines, and those
// that an interrupted purge left. The caller holds the lock.
func cutLines(ctx context.Context, c *engine.Context, m *engine.Metadata, expired func(r *ctxfolder.Removed) bool) ([]*cutLine, error) {
	counts, _, err := c.Log.AllCounts()
	if err != nil {
		return nil, err
	}
	var cut []*cutLine
	left := map[uuid.UUID]*cutLine{}
	changed := false
	for _, r := range slices.Clone(m.Removed) {
		switch _, ok := m.Line(r.Line); {
		case r.Why == branch.WhyPurged && ok:
			left[r.Line] = &cutLine{line: r.Line, from: counts[r.Line].End(), search: true}
			cut = append(cut, left[r.Line])
		case r.Why == branch.WhyPurged || expired(&r):
			branch.Purge(m, r.Line)
			changed = true
		}
	}
	if !changed && len(cut) == 0 {
		return nil, nil
	}
	var trims []index.Item
	for _, o := range branch.Orphans(m) {
		end := counts[o.Line.ID].End()
		if end > o.From {
			l := left[o.Line.ID]
			if l == nil {
				l = &cutLine{line: o.Line.ID}
				cut = append(cut, l)
			}
			if err := l.take(ctx, c, o.From, end); err != nil {
				return nil, err
			}
			trim, err := c.Log.TrimItem(l.line, l.from)
			if err != nil {
				return nil, err
			}
			trims = append(trims, trim)
		}
		if o.Gone || end > o.From {
			branch.Purge(m, o.Line.ID)
		}
	}
	if len(cut) == 0 { // only names, and lines without messages
		branch.Forget(m)
	}
	if changed || len(trims) > 0 {
		err = c.ReplaceMetadata(m, trims...)
	}
	return cut, err
}
