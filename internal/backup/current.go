package backup

import (
	"bytes"
	"context"
	"iter"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// isCurrent reports whether the other store has a copy that shows what the snapshot shows: the same metadata, and for
// each message a row with the same checksum and a file of the right size. A message of the source whose file was edited
// by hand is read; no other message is. A copy that cannot be read is not current.
func (b *copier) isCurrent(ctx context.Context) (bool, error) {
	t, err := b.to.Context(ctx, b.m.ID)
	if err != nil {
		return false, ctx.Err()
	}
	defer t.Close()
	counts, _, err := t.Log.AllCounts()
	if err != nil || t.Legacy() != "" {
		return false, ctx.Err()
	}
	now, nerr := t.Current().Encode()
	want, werr := b.m.Encode()
	if nerr != nil || werr != nil || !bytes.Equal(now, want) {
		return false, werr
	}
	for i := range b.m.Lines {
		line := &b.m.Lines[i]
		ours := b.counts[line.ID]
		if theirs := counts[line.ID]; theirs.Count != ours.Count || theirs.Last != ours.Last {
			return false, nil
		}
		same, err := b.sameLine(ctx, t, line, ours.End())
		if err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// sameLine compares the messages of a line with those of the copy.
func (b *copier) sameLine(ctx context.Context, t *engine.Context, line *ctxfolder.Line, end int64) (bool, error) {
	next, stop := iter.Pull2(t.Log.All(ctx, line.ID, line.Base, end))
	defer stop()
	for e, err := range b.c.Log.All(ctx, line.ID, line.Base, end) {
		if err != nil {
			return false, err
		}
		c, err, ok := next()
		if err != nil || !ok || c.ID != e.ID || c.Position != e.Position || c.Lost != e.Lost || (c.Pack == uuid.Nil) != (e.Pack == uuid.Nil) {
			return false, ctx.Err()
		}
		if e.Lost == "" && !b.sameMessage(t, line, e, c) {
			return false, nil
		}
	}
	return true, nil
}

// sameMessage reports whether the copy has the current version of a message.
func (b *copier) sameMessage(t *engine.Context, line *ctxfolder.Line, e, c *index.Entry) bool {
	if e.Pack != uuid.Nil {
		return e.Sum == c.Sum && e.Size == c.Size
	}
	if info, err := t.Dir.StatMessage(line.Folder, c.FileID()); err != nil || info.Size() != c.Size+1 {
		return false
	}
	sum, size := e.Sum, e.Size
	info, err := b.c.Dir.StatMessage(line.Folder, e.FileID())
	if err == nil && !ctxfolder.Untouched(info, e.Size, e.StoredAt()) {
		raw, _, err := b.read(line, e)
		if err != nil {
			return false
		}
		sum, size = message.Sum(raw), int64(len(raw))
	}
	return sum == c.Sum && size == c.Size
}
