// Package trash collects removed data, keeps it for a grace period, lists it, restores it and purges it.
//
// A removed branch stays in its context for the grace period, without its name: it counts as an item of the context's
// trash. Replaced and damaged files, whole contexts and blobs move to a trash folder. [Collect] moves blobs that nothing
// needs there, and purges what was removed longer ago than the grace period. [List] yields the items, [Restore] brings
// one back, and [Purge] removes items for good. [Sweep] and [Mark] find unreferenced blobs; an erase uses them too.
//
// The package uses package engine to open contexts, cut lines and commit. One process at a time collects, purges or
// restores in a store: it holds [engine.CollectionLock]. A crash at any moment loses nothing that a branch shows and
// nothing that is in the trash.
package trash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// DefaultGrace is how long removed things stay in the trash unless the caller says otherwise.
const DefaultGrace = 7 * 24 * time.Hour

// trashItem is an item and its trash. Without an item it stands for the trash.
type trashItem struct {
	*ctxfolder.TrashEntry
	in    uuid.UUID           // the context of the trash, uuid.Nil for the store's
	bytes int64               // of the messages that only this line shows, or of an item that was purged
	line  *engine.RemovedLine // of a removed line, which is in its place: see removedLines
}

func (t *trashItem) describe() engine.TrashItem {
	if t.TrashEntry == nil {
		return engine.TrashItem{Context: t.in, Path: Path(t.in)}
	}
	x := engine.TrashItem{
		Context: t.Item.Context, Path: t.Path, Bytes: t.bytes, Item: t.ID, Kind: t.Item.Kind, Name: t.Item.Name,
		RemovedAt: t.Since(), Problem: engine.Classify(t.Problem), Reason: reason(&t.Item), Line: t.line,
	}
	if t.line != nil {
		x.Reason = t.lineReason()
	} else if x.Bytes == 0 {
		x.Bytes = t.Size()
	}
	if t.in != uuid.Nil {
		x.Context, x.Path = t.in, t.in.String()+"/"+t.Path
	}
	if t.Problem != nil {
		x.Reason = t.Problem.Error()
	}
	return x
}

// reason says why a thing is in trash.
func reason(item *ctxfolder.TrashItem) string {
	switch item.Kind {
	case ctxfolder.TrashContext:
		return "removed"
	case ctxfolder.TrashVersion:
		return fmt.Sprintf("message %d was replaced", item.Position)
	case ctxfolder.TrashTail:
		return "torn write, never acknowledged"
	case ctxfolder.TrashDamaged:
		return "damaged, or in the place of another file"
	case ctxfolder.TrashBlobs:
		return "no message refers to it"
	}
	return ""
}

func (t *trashItem) lineReason() string {
	r := fmt.Sprintf("no branch shows messages %d to %d", t.line.First, t.line.End-1)
	if t.line.First == t.line.End {
		r = "other branches show all messages"
	}
	if t.Item.Name != "" && t.line.Why != "" {
		r += fmt.Sprintf(" of %q, which was %s", t.Item.Name, t.line.Why)
	}
	return r
}

// Path returns the path of a context's trash in the store, or of the store's own trash for uuid.Nil.
func Path(in uuid.UUID) string {
	if in == uuid.Nil {
		return ctxfolder.Trash
	}
	return in.String() + "/" + ctxfolder.Trash
}

// List yields the items in the trash of the store and of its contexts, oldest first in each. With contexts it yields
// only their items. A trash that cannot be listed is an item without an id, with its Problem. An error ends the sequence.
func List(ctx context.Context, s *engine.Store, contexts ...uuid.UUID) iter.Seq2[engine.TrashItem, error] {
	return func(yield func(engine.TrashItem, error) bool) {
		for t, err := range EachItem(ctx, s, contexts, nil) {
			if t == nil {
				yield(engine.TrashItem{}, engine.Wrap(engine.Error{Op: "list the trash of", Path: s.Path()}, err))
				return
			}
			item := t.describe()
			item.Problem = cmp.Or(err, item.Problem)
			if !yield(item, nil) {
				return
			}
		}
	}
}

// EachItem yields the wanted items: of each context the removed lines, which count as folders, and then the content of
// its trash. The trash of an item is open while the caller handles it. An error ends the sequence, unless it comes with
// a *trashItem, which stands for a trash that cannot be listed.
func EachItem(
	ctx context.Context, s *engine.Store, contexts []uuid.UUID, want func(id uuid.UUID, folder bool) bool,
) iter.Seq2[*trashItem, error] {
	return func(yield func(*trashItem, error) bool) {
		unlisted := func(in uuid.UUID, err error) bool {
			return yield(&trashItem{in: in}, engine.Wrap(engine.Error{Op: "list", Path: Path(in)}, err))
		}
		each := func(fsys vfs.FS, in uuid.UUID) bool {
			for t, err := range ctxfolder.EachTrash(fsys, want) {
				if ctx.Err() != nil {
					yield(nil, ctx.Err())
					return false
				}
				if err != nil {
					return unlisted(in, err)
				}
				if in == uuid.Nil && len(contexts) > 0 && !slices.Contains(contexts, t.Item.Context) {
					continue
				}
				if !yield(&trashItem{TrashEntry: t, in: in}, nil) {
					return false
				}
			}
			return true
		}
		if !each(s.FS, uuid.Nil) {
			return
		}
		ids := func(yield func(uuid.UUID, error) bool) {
			for _, id := range contexts {
				if !yield(id, nil) {
					return
				}
			}
		}
		if len(contexts) == 0 {
			ids = s.IDs()
		}
		for id, err := range ids {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(nil, err)
				return
			}
			sub, err := s.FS.Sub(id.String())
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				if !unlisted(id, err) {
					return
				}
				continue
			}
			more := eachLine(ctx, s, id, want, yield) && each(sub, id)
			_ = sub.Close()
			if !more {
				return
			}
		}
	}
}

// eachLine yields the wanted removed lines of a context. One that cannot be opened may have some, so that is an error.
func eachLine(
	ctx context.Context, s *engine.Store, id uuid.UUID, want func(id uuid.UUID, folder bool) bool, yield func(*trashItem, error) bool,
) (more bool) {
	var lines []*trashItem
	c, err := s.Open(ctx, id)
	if err == nil {
		lines, err = removedLines(ctx, c, c.Current(), func(r *ctxfolder.Removed) bool { return want == nil || want(r.Line, true) })
		err = errors.Join(err, c.Close())
	}
	switch {
	case errors.Is(err, engine.ErrNotExist) && s.WasRemoved(id):
		return true
	case err != nil:
		return yield(&trashItem{in: id}, engine.Wrap(engine.Error{Op: "list", Path: Path(id)}, err))
	}
	for _, t := range lines {
		if !yield(t, nil) {
			return false
		}
	}
	return true
}

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

// lockCollection takes [engine.CollectionLock] in a store that can be written.
func lockCollection(ctx context.Context, s *engine.Store) (release func(), err error) {
	if s.ReadOnly {
		return nil, engine.ErrReadOnly
	}
	return s.LockCollection(ctx)
}
