package trash

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/ctxdir/ctxdir/message"
)

// orphan is the end of a line that no branch shows, before its move to trash.
type orphan struct {
	branch.Orphan
	to      int64  // where the line ends
	bytes   int64  // size of the messages from From to to
	item    string // its folder in trash; empty when there is nothing to keep
	skipped bool   // it changed meanwhile, so the next collection handles it
}

func (o *orphan) span() loader.Span {
	return loader.Span{Line: o.Line.ID, Folder: o.Line.Folder, From: o.From, To: o.to}
}

// keeps reports whether the trash must keep something of the line: messages, or the base of another orphaned line.
func (o *orphan) keeps(m *engine.Metadata) bool {
	return o.to > o.From || o.Gone && slices.ContainsFunc(m.Lines, func(l ctxfolder.Line) bool { return l.Parent == o.Line.ID })
}

// findOrphans returns the ends of lines that no branch shows. It skips lines that are already cut but still needed.
func findOrphans(c *engine.Context, m *engine.Metadata) (orphans []*orphan, err error) {
	for _, found := range branch.Orphans(m) {
		o := &orphan{Orphan: found}
		if o.to, err = c.End(m, o.Line.ID); err != nil {
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
func collectOrphans(ctx context.Context, c *engine.Context, dryRun bool, yield func(engine.TrashItem) bool) (more bool, err error) {
	c.CleanPacks = false
	if err := c.Refresh(ctx); err != nil {
		return true, err
	}
	if err := c.Problem(); err != nil {
		return true, err
	}
	m := c.Current()
	orphans, err := findOrphans(c, m)
	if err != nil || len(orphans) == 0 {
		return true, err
	}
	removed := c.Latest()
	for _, o := range orphans {
		if !o.keeps(m) {
			continue
		}
		if dryRun {
			err = measureOrphan(ctx, c, o)
		} else {
			err = copyToTrash(ctx, c, o, removed)
		}
		if err != nil {
			discardCopies(c, orphans)
			return true, err
		}
	}
	if dryRun {
		return reportOrphans(c, orphans, m, yield), nil
	}
	tried, err := cut(ctx, c, orphans)
	if !tried {
		discardCopies(c, orphans)
	}
	if err != nil {
		return true, err
	}
	// The fold drops the rows of the messages that were cut: an index rebuilt without its journals must not believe
	// them. If this fold fails, the next one drops them.
	_ = c.Store.AcquireWith(ctx, func(ctx context.Context) error { return c.Log.Fold(ctx, false) })
	for _, o := range orphans {
		if o.item == "" {
			continue
		}
		if o.skipped {
			err = purgeOwn(c, o.item)
		} else {
			err = clearFiles(ctx, c, o.item)
		}
		if err != nil {
			return true, err
		}
	}
	return reportOrphans(c, orphans, m, yield), nil
}

// discardCopies removes the copies of messages that were not cut.
func discardCopies(c *engine.Context, orphans []*orphan) {
	for _, o := range orphans {
		if o.item != "" {
			_ = purgeOwn(c, o.item)
		}
	}
}

func purgeOwn(c *engine.Context, item string) error {
	t, err := ctxfolder.ReadTrashed(c.Dir.FS, item)
	if t == nil {
		return err
	}
	return t.Purge()
}

func reportOrphans(c *engine.Context, orphans []*orphan, m *engine.Metadata, yield func(engine.TrashItem) bool) (more bool) {
	for _, o := range orphans {
		if o.skipped || !o.keeps(m) {
			continue
		}
		item := o.trashItem()
		t := engine.TrashItem{
			Context: c.Dir.ID, Path: c.Dir.ID.String() + "/" + ctxfolder.Trash + "/…", Bytes: o.bytes, Reason: lineReason(&item),
			Kind: item.Kind, Name: item.Name, RemovedAt: item.RemovedAt,
		}
		if o.item != "" {
			t.Item, t.Path = engine.ItemID(o.item), c.Dir.ID.String()+"/"+o.item
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

func measureOrphan(ctx context.Context, c *engine.Context, o *orphan) error {
	for e, err := range c.Log.All(ctx, o.span().Line, o.span().From, o.span().To) {
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
func copyToTrash(ctx context.Context, c *engine.Context, o *orphan, removed time.Time) error {
	staged, err := ctxfolder.StageTrash(c.Dir.FS)
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
	item.Context, item.RemovedAt = c.Dir.ID, removed
	o.bytes = 0
	for e, err := range c.Log.All(ctx, o.span().Line, o.span().From, o.span().To) {
		if err != nil {
			return err
		}
		raw, err := readStored(c, o.span(), e)
		var why *lostError
		if errors.As(err, &why) {
			item.Missing++
			raw, err = json.Marshal(Gap{GapVersion, e.Position, e.ID, why.Error()})
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

// readStored returns the envelope of a message in one line, byte for byte as it was committed, or as it was edited by
// hand. A *lostError means that no copy exists; any other error is a read error.
func readStored(c *engine.Context, span loader.Span, e *index.Entry) ([]byte, error) {
	raw, is, err := c.Log.ReadFile(span.Line, e, span.Folder)
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
	if record, ok := c.Log.ReadRecord(e); ok && e.Lost == "" {
		return record, nil
	}
	if errors.Is(err, index.ErrErased) || errors.Is(err, index.ErrDamaged) || errors.Is(err, fs.ErrNotExist) {
		return nil, &lostError{err}
	}
	return nil, err
}
