package trash

import (
	"context"

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
	counts, _, err := c.Index.AllCounts()
	if err != nil {
		return nil, err
	}
	var reach map[uuid.UUID]int64
	var related *engine.Relatives
	for i := range m.Removed {
		r := &m.Removed[i]
		l, ok := m.Line(r.Line)
		if !ok || engine.BranchOfLine(m, r.Line) != nil || !want(r) {
			continue
		}
		if reach == nil {
			reach = branch.Reach(m)
			if related, err = engine.RelativesOf(m, counts); err != nil {
				return nil, err
			}
		}
		end := max(counts[l.ID].End(), l.Base)
		item := &trashItem{in: c.Dir.ID, line: &engine.RemovedLine{Why: r.Why, First: end, End: end}}
		item.TrashEntry = &ctxfolder.TrashEntry{ID: l.ID, Path: ctxfolder.Messages + "/" + l.Folder, Item: ctxfolder.TrashItem{
			Kind: ctxfolder.TrashLine, Name: r.Name, Context: c.Dir.ID, RemovedAt: r.At,
		}}
		if err := item.measure(ctx, c, m, reach, counts); err != nil {
			return nil, err
		}
		if item.line.From, item.line.Shared, err = related.Of(l.ID, end, r.Name); err != nil {
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
	branch.Purge(without, func(r *ctxfolder.Removed) bool { return r.Line == t.ID })
	others := branch.Reach(without)
	for _, l := range m.Lines {
		from, to := max(others[l.ID], l.Base), min(reach[l.ID], counts[l.ID].End())
		if from >= to {
			continue
		}
		t.line.First = min(t.line.First, from)
		for e, err := range c.Index.All(ctx, l.ID, from, to) {
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
	r.Path, r.Bytes = c.Dir.ID.String()+"/"+t.Path, t.bytes
	r.First, r.Messages = t.line.First, t.line.End-t.line.First
	return err
}

// noteUnnamed gives lines that have neither a branch nor an entry among the removed lines such an entry: their grace
// period begins. It returns them.
func noteUnnamed(ctx context.Context, c *engine.Context, dryRun bool) (items []*trashItem, err error) {
	m := c.Current().Clone()
	found, err := addUnnamed(c, m)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	if !dryRun {
		err := c.Change(ctx, func(m *engine.Metadata) (err error) {
			found, err = addUnnamed(c, m)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return removedLines(ctx, c, m, func(r *ctxfolder.Removed) bool { return found[r.Line] })
}

// addUnnamed adds the entries of noteUnnamed to the metadata.
func addUnnamed(c *engine.Context, m *engine.Metadata) (found map[uuid.UUID]bool, err error) {
	counts, _, err := c.Index.AllCounts()
	if err != nil {
		return nil, err
	}
	found = map[uuid.UUID]bool{}
	for _, o := range branch.Orphans(m) {
		if o.Gone || counts[o.Line.ID].End() > o.From {
			found[o.Line.ID] = true
			m.Removed = append(m.Removed, ctxfolder.Removed{
				Branch: ctxfolder.Branch{Line: o.Line.ID}, At: c.RemovalTime(m), Why: branch.WhyUnnamed,
			})
		}
	}
	return found, nil
}
