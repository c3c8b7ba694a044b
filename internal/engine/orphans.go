package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// orphan is the end of a line that no branch shows, before its move to trash.
type orphan struct {
	branch.Orphan
	to    int64  // where the line ends
	bytes int64  // size of the messages from From to to
	item  string // its folder in trash; empty when there is nothing to keep
	left  bool   // it changed meanwhile, so the next collection handles it
}

func (o *orphan) span() loader.Span {
	return loader.Span{Line: o.Line.ID, Folder: o.Line.Folder, From: o.From, To: o.to}
}

// keeps reports whether the trash must keep something of the line: messages, or the base of another orphaned line.
func (o *orphan) keeps(m *Metadata) bool {
	return o.to > o.From || o.Gone && slices.ContainsFunc(m.Lines, func(l ctxfolder.Line) bool { return l.Parent == o.Line.ID })
}

// findOrphans returns the ends of lines that no branch shows. It skips lines that are already cut but still needed.
func (c *Context) findOrphans(m *Metadata) (orphans []*orphan, err error) {
	for _, found := range branch.Orphans(m) {
		o := &orphan{Orphan: found}
		if o.to, err = c.end(m, o.Line.ID); err != nil {
			return nil, err
		}
		if o.to > o.From || o.Gone {
			orphans = append(orphans, o)
		}
	}
	return orphans, nil
}

// collectOrphans moves the messages that no branch shows to the context's trash. It yields each end of a line. more is
// false when yield returned false.
//
// Crash order: the messages are durable in trash before the journal's record cuts the line. That record is durable
// before metadata.json forgets lines. Only then the message files are removed, unsynced. After any crash the branches
// show what they showed: the item is a copy, or explains leftover files, which the next collection removes.
func (c *Context) collectOrphans(ctx context.Context, dryRun bool, yield func(Trashed) bool) (more bool, err error) {
	c.uncut = false
	if err := c.Refresh(ctx); err != nil {
		return true, err
	}
	if err := c.Problem(); err != nil {
		return true, err
	}
	m := c.current()
	orphans, err := c.findOrphans(m)
	if err != nil || len(orphans) == 0 {
		return true, err
	}
	removed := c.latest()
	for _, o := range orphans {
		if !o.keeps(m) {
			continue
		}
		if dryRun {
			err = c.measure(ctx, o)
		} else {
			err = c.copyToTrash(ctx, o, removed)
		}
		if err != nil {
			c.discard(orphans)
			return true, err
		}
	}
	if dryRun {
		return c.tell(orphans, m, yield), nil
	}
	tried, err := c.cut(ctx, orphans)
	if !tried {
		c.discard(orphans)
	}
	if err != nil {
		return true, err
	}
	// The fold drops the rows of the messages that were cut: an index rebuilt without its journals must not believe
	// them. If this fold fails, the next one drops them.
	_ = c.store.within(ctx, func(ctx context.Context) error { return c.log.Fold(ctx, false) })
	for _, o := range orphans {
		if o.item == "" {
			continue
		}
		if o.left {
			err = c.purge(o.item)
		} else {
			err = c.clear(ctx, o.item)
		}
		if err != nil {
			return true, err
		}
	}
	return c.tell(orphans, m, yield), nil
}

// discard removes the copies of messages that were not cut.
func (c *Context) discard(orphans []*orphan) {
	for _, o := range orphans {
		if o.item != "" {
			_ = c.purge(o.item)
		}
	}
}

func (c *Context) purge(item string) error {
	t, err := ctxfolder.ReadTrashed(c.dir.FS, item)
	if t == nil {
		return err
	}
	return t.Purge()
}

func (c *Context) tell(orphans []*orphan, m *Metadata, yield func(Trashed) bool) (more bool) {
	for _, o := range orphans {
		if o.left || !o.keeps(m) {
			continue
		}
		item := o.trashItem()
		t := Trashed{
			Context: c.dir.ID, Path: c.dir.ID.String() + "/" + ctxfolder.Trash + "/…", Bytes: o.bytes, Reason: lineReason(&item),
			Kind: item.Kind, Name: item.Name, RemovedAt: item.RemovedAt,
		}
		if o.item != "" {
			t.Item, t.Path = itemID(o.item), c.dir.ID.String()+"/"+o.item
		}
		if !yield(t) {
			return false
		}
	}
	return true
}

func (o *orphan) trashItem() ctxfolder.TrashItem {
	return ctxfolder.TrashItem{
		Kind: ctxfolder.TrashLine, Name: o.Name, Line: o.Line.ID, Parent: o.Line.Parent, Base: o.Line.Base, Folder: o.Line.Folder,
		From: o.From, To: o.to, Why: o.Why,
	}
}

// entries yields the index entries of a span.
func (c *Context) entries(ctx context.Context, span loader.Span) iter.Seq2[*index.Entry, error] {
	return func(yield func(*index.Entry, error) bool) {
		for from := span.From; from < span.To; from += rowsAtOnce {
			entries, err := c.log.Entries(span.Line, from, min(from+rowsAtOnce, span.To))
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if len(entries) == 0 {
				return // the count was wrong, and the index was rebuilt
			}
			for i := range entries {
				if !yield(&entries[i], nil) {
					return
				}
			}
		}
	}
}

func (c *Context) measure(ctx context.Context, o *orphan) error {
	for e, err := range c.entries(ctx, o.span()) {
		if err != nil {
			return err
		}
		o.bytes += e.Size
	}
	return nil
}

// pieceBytes bounds a file of messages in trash, in bytes, unless one message is larger.
const pieceBytes = 16 << 20

// copyToTrash writes the messages of an orphan to an item in trash, durably.
func (c *Context) copyToTrash(ctx context.Context, o *orphan, removed time.Time) error {
	staged, err := ctxfolder.StageTrash(c.dir.FS)
	if err != nil {
		return err
	}
	defer staged.Discard()
	var piece []byte
	pieces := 0
	flush := func() error {
		if len(piece) == 0 {
			return nil
		}
		pieces++
		err := staged.Write(ctxfolder.PieceFile(pieces), piece)
		piece = piece[:0]
		return err
	}
	item := o.trashItem()
	item.Context, item.RemovedAt = c.dir.ID, removed
	o.bytes = 0
	for e, err := range c.entries(ctx, o.span()) {
		if err != nil {
			return err
		}
		raw, err := c.stored(o.span(), e)
		var why *lostError
		if errors.As(err, &why) {
			item.Missing++
			raw, err = json.Marshal(gap{gapVersion, e.Position, e.ID, why.Error()})
		}
		if err != nil {
			return err
		}
		if len(piece)+len(raw) >= pieceBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		piece = append(append(piece, raw...), '\n')
		o.bytes += e.Size
		if at := e.StoredAt(); at.After(item.RemovedAt) {
			item.RemovedAt = at
		}
	}
	if err := flush(); err != nil {
		return err
	}
	o.item, err = staged.Commit(item)
	return err
}

// lostError reports that no copy of a message exists, now or later.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// stored returns the envelope of a message in one line, byte for byte as it was committed, or as it was edited by hand.
// A *lostError means that no copy exists; any other error is a read error.
func (c *Context) stored(span loader.Span, e *index.Entry) ([]byte, error) {
	raw, is, err := c.log.ReadFile(span.Line, e, span.Folder)
	switch {
	case err == nil && is.Whole():
		return raw, nil
	case err == nil:
		env, err := message.Parse(raw)
		if err != nil {
			return nil, err
		}
		env.Line, env.Position, env.File = span.Line, e.Position, e.File
		return env.AppendTo(nil), nil
	}
	if record, ok := c.log.ReadRecord(e); ok && e.Lost == "" {
		return record, nil
	}
	if errors.Is(err, index.ErrErased) || errors.Is(err, index.ErrDamaged) || errors.Is(err, fs.ErrNotExist) {
		return nil, &lostError{err}
	}
	return nil, err
}

// cut ends lines where their orphans begin, and forgets unneeded lines. tried reports that a commit may have happened,
// whatever the error.
func (c *Context) cut(ctx context.Context, orphans []*orphan) (tried bool, err error) {
	err = c.write(ctx, func(current *Metadata) error {
		now, err := c.findOrphans(current)
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
			if o.left = n == nil || n.From > o.From || n.to != o.to || n.Line != o.Line; o.left {
				continue
			}
			gone[o.Line.ID] = o.Gone && n.Gone
			if o.to > o.From {
				item, err := c.log.TrimItem(o.Line.ID, o.From)
				if err != nil {
					return err
				}
				items = append(items, item)
			}
		}
		m := current.Clone()
		branch.Forget(m, gone)
		forgets := len(m.Lines) < len(current.Lines)
		if forgets {
			next := m.Clone()
			next.Revision++
			items = append(items, index.Item{Kind: index.KindMetadata, Body: ctxfolder.RawMetadata(next)})
		}
		if len(items) == 0 {
			return nil
		}
		tried = true
		if err := c.commitDurably(items); err != nil {
			return err
		}
		if !forgets {
			return nil
		}
		return c.writeMetadata(m)
	})
	return tried || err == nil, err
}

// clear removes the message files of an item in the context's trash whose messages the line no longer counts. An
// interrupted clear can be repeated. While other processes keep renaming branches, it leaves the rest to the next
// collection.
//
// Crash order: the removals are durable before the item is marked as cleared.
func (c *Context) clear(ctx context.Context, item string) error {
	t, err := ctxfolder.ReadTrashed(c.dir.FS, item)
	if err != nil {
		return err
	}
	if !ctxfolder.ValidFolder(t.Item.Folder) {
		return fmt.Errorf("%s: %q is not a branch folder", item, t.Item.Folder)
	}
	for range findings {
		// An unfinished rename is completed first, so that metadata.json shows any later one.
		if err := c.write(ctx, func(*Metadata) error { return nil }); err != nil {
			return err
		}
		x := clearing{c: c, item: item, info: &t.Item, m: c.current(), left: map[uuid.UUID]message.Address{}, torn: map[string][]uuid.UUID{}}
		if err := x.run(ctx); err != nil {
			return err
		}
		if _, renamed := c.inFolders(x.m); renamed {
			continue
		}
		if err := vfs.WriteNew(c.dir.FS, item+"/"+ctxfolder.ClearedFile, nil); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		for folder := range x.cleared {
			if err := c.removeFolder(ctx, folder); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// removeFolder removes an empty branch folder that no line uses.
func (c *Context) removeFolder(ctx context.Context, folder string) error {
	used := func(m *Metadata) bool {
		return slices.ContainsFunc(m.Lines, func(l ctxfolder.Line) bool { return l.Folder == folder })
	}
	if used(c.current()) {
		return nil
	}
	// The lock is needed: a new branch may get this folder.
	return c.write(ctx, func(m *Metadata) error {
		if !used(m) {
			c.dir.RemoveFolder(folder)
		}
		return nil
	})
}

// clearLeftOver removes message files that a crash left behind after their line was cut.
func (s *Store) clearLeftOver(ctx context.Context, t *trashed) error {
	if t.in == uuid.Nil || t.Problem != nil || t.Item.Kind != ctxfolder.TrashLine || t.Has(ctxfolder.ClearedFile) {
		return nil
	}
	c, err := s.open(ctx, t.in)
	if err != nil {
		return err
	}
	return errors.Join(c.clear(ctx, t.Path), c.Close())
}

func (c *Context) clearLeft(ctx context.Context, t *ctxfolder.TrashEntry) error {
	if t.Problem != nil || t.Item.Kind != ctxfolder.TrashLine || t.Has(ctxfolder.ClearedFile) {
		return nil
	}
	return c.clear(ctx, t.Path)
}
