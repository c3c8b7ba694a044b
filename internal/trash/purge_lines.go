package trash

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"math"
	"slices"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/google/uuid"
)

// purgeLines purges what only some removed lines show, and erases the moments that were made from it. [removal.end]
// removes it from the files.
//
// Crash order: the moments go first, so that no crash leaves one whose source is gone. The note says which lines end
// where, durably, before one commit ends them: from then on no reader finds the messages. Their files go after that. Until
// the note goes, the next collection repeats what follows the commit. The erasure of moments may finish what was purged
// from the trash of the context, and removes the note of that: begin writes it again.
func (x *removal) purgeLines(ctx context.Context, c *engine.Context, chosen func(r *ctxfolder.Removed) bool) error {
	m := c.Current().Clone()
	goes := map[uuid.UUID]bool{}
	nameGoes := false
	for _, r := range m.Removed {
		if chosen(&r) {
			_, named := m.Branch(r.Name)
			goes[r.Line], nameGoes = true, nameGoes || !named || r.Why != branch.WhyRewound
		}
	}
	if len(goes) == 0 {
		return nil // without the lock
	}
	cut, err := endLines(c, m, goes)
	if err != nil {
		return err
	}
	purged, err := purgedMessages(ctx, c, m, cut)
	if err == nil {
		err = c.Store.BeforeCut(ctx, c.Dir.ID, purged)
	}
	if err != nil {
		return err
	}
	sums := map[blob.Sum]bool{}
	if _, err := c.ReferencesBeyond(ctx, branch.Reach(m), func(sum blob.Sum) { sums[sum] = true }); err != nil {
		return err // an unreadable message is removed as well; a sweep finds its payloads
	}
	if err := x.begin(c.Dir.FS, c.Dir.ID, sums, cut...); err != nil {
		return err
	}
	r := x.in(c.Dir.ID)
	r.metadata = r.metadata || nameGoes
	return c.Write(ctx, func(current *engine.Metadata) error { return commitPurge(c, current.Clone(), goes) })
}

// commitPurge commits the end of lines. The caller holds the lock.
func commitPurge(c *engine.Context, m *engine.Metadata, goes map[uuid.UUID]bool) error {
	cut, err := endLines(c, m, goes)
	if err != nil {
		return err
	}
	var trims []engine.Item
	for _, l := range cut {
		counts, _, err := c.Index.Counts(l.Line)
		if err != nil {
			return err
		}
		if counts.End() <= l.From {
			continue
		}
		trim, err := c.Index.TrimItem(l.Line, l.From)
		if err != nil {
			return err
		}
		trims = append(trims, engine.Item{Item: trim})
	}
	return c.ReplaceMetadata(m, trims...)
}

// endLines takes removed lines out of the metadata. It returns the lines that end earlier then, or are gone.
func endLines(c *engine.Context, m *engine.Metadata, goes map[uuid.UUID]bool) (cut []ctxfolder.CutLine, err error) {
	counts, _, err := c.Index.AllCounts()
	if err == nil {
		_, err = addUnnamed(c, m) // their grace period begins
	}
	if err != nil {
		return nil, err
	}
	for _, o := range branch.Purge(m, func(r *ctxfolder.Removed) bool { return goes[r.Line] }) {
		if o.Gone || counts[o.Line.ID].End() > o.From {
			cut = append(cut, ctxfolder.CutLine{Line: o.Line.ID, Folder: o.Line.Folder, From: o.From})
		}
	}
	return cut, nil
}

// purgedMessages returns the messages that a purge removes: those of lines that are cut, unless m, the metadata after it,
// shows a message of the same id. It returns none if no branch of the context has a kind, and no removed line that stays has
// or may have one: then nothing was made from them.
func purgedMessages(ctx context.Context, c *engine.Context, m *engine.Metadata, cut []ctxfolder.CutLine) ([]uuid.UUID, error) {
	hasKind := func(b ctxfolder.Branch) bool { return b.Extra.Text(ctxfolder.BranchKind) != "" }
	mayHaveKind := func(r ctxfolder.Removed) bool { return r.Why == branch.WhyUnnamed || hasKind(r.Branch) }
	if !slices.ContainsFunc(m.Branches, hasKind) && !slices.ContainsFunc(m.Removed, mayHaveKind) {
		return nil, nil
	}
	purged := map[uuid.UUID]bool{}
	for _, l := range cut {
		for e, err := range c.Index.All(ctx, l.Line, l.From, math.MaxInt64) {
			if err != nil {
				return nil, err
			}
			purged[e.ID] = true
		}
	}
	reach := branch.Reach(m)
	for i := 0; i < len(m.Lines) && len(purged) > 0; i++ {
		l := &m.Lines[i]
		for e, err := range c.Index.All(ctx, l.ID, l.Base, reach[l.ID]) {
			if err != nil {
				return nil, err
			}
			delete(purged, e.ID)
		}
	}
	return slices.Collect(maps.Keys(purged)), nil
}

// removeViews removes the files of messages beyond the end of a line, durably, unless the line was not cut. A file of
// another message stays. One without a message goes: a crash tore it.
func removeViews(c *engine.Context, cut ctxfolder.CutLine) error {
	if !ctxfolder.ValidFolder(cut.Folder) || isUncut(c, cut) {
		return nil
	}
	var ids []uuid.UUID
	err := c.Dir.MessageIDs(cut.Folder, func(id uuid.UUID) error {
		ids = append(ids, id)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, id := range ids {
		if err != nil {
			return err
		}
		_, stays, ferr := c.Index.Find(cut.Line, id, math.MaxInt64)
		if ferr != nil {
			return ferr
		}
		err = c.Dir.RemoveMessage(cut.Folder, id, func(raw []byte) bool {
			env, err := message.Parse(raw)
			if err != nil {
				return !stays && !errors.Is(err, message.ErrVersion)
			}
			return env.Line == cut.Line && env.Position >= cut.From
		})
	}
	if err != nil {
		return err
	}
	return c.Dir.FS.SyncDir(ctxfolder.Messages + "/" + cut.Folder)
}

// isUncut reports whether a line continues where a purge was to end it.
func isUncut(c *engine.Context, cut ctxfolder.CutLine) bool {
	_, there := c.Current().Line(cut.Line)
	counts, _, err := c.Index.Counts(cut.Line)
	return there && (err != nil || counts.End() > cut.From)
}

// removeFolders removes the folders of lines that are gone, durably. The caller holds the lock of the context.
func removeFolders(c *engine.Context, cut []ctxfolder.CutLine) error {
	for _, l := range cut {
		used := func(is ctxfolder.Line) bool { return is.ID == l.Line || is.Folder == l.Folder }
		if slices.ContainsFunc(c.Current().Lines, used) {
			continue
		}
		if err := c.Dir.RemoveFolder(l.Folder); err != nil {
			return err
		}
	}
	err := c.Dir.FS.SyncDir(ctxfolder.Messages)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
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
