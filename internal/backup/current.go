package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/views"
)

// isCurrent reports whether the other store has a copy that shows what the source shows: the same metadata, the same
// versions of all messages, and the same edits. It reads no message that was not edited. A copy that cannot be read is
// not current.
func (b *copier) isCurrent(ctx context.Context) (bool, error) {
	t, err := b.to.Open(ctx, b.id)
	if err != nil {
		return false, ctx.Err()
	}
	defer t.Close()
	now, nerr := t.Current().Encode()
	want, werr := b.c.Current().Encode()
	if nerr != nil || werr != nil || !bytes.Equal(now, want) {
		return false, werr
	}
	ours, err := digest(ctx, b.c)
	if err != nil {
		return false, err
	}
	theirs, err := digest(ctx, t)
	return err == nil && bytes.Equal(ours, theirs), ctx.Err()
}

// digest returns a checksum of what a context shows, other than its metadata.
func digest(ctx context.Context, c *engine.Context) ([]byte, error) {
	h := sha256.New()
	m := c.Current()
	for i := range m.Lines {
		line := &m.Lines[i]
		counts, _, err := c.Index.Counts(line.ID)
		if err != nil {
			return nil, err
		}
		_ = binary.Write(h, binary.LittleEndian, counts.Count)
		for page, err := range c.Index.Pages(ctx, line.ID, line.Base, counts.End()) {
			if err != nil {
				return nil, err
			}
			infos := look(c.Dir, line.Folder, page)
			for i := range page {
				e := &page[i]
				_ = binary.Write(h, binary.LittleEndian, struct {
					ID       [16]byte
					Sum, Len uint64
					Gone     byte
				}{e.ID, e.Sum, uint64(e.Size), byte(e.Gone)})
				if infos[i] != nil && !ctxfolder.Untouched(infos[i], e.Size, e.StoredAt()) {
					hashEdit(h, c, line, e)
				}
			}
		}
	}
	return h.Sum(nil), nil
}

// hashEdit adds the content of a message's file, if a person edited that.
func hashEdit(h interface{ Write([]byte) (int, error) }, c *engine.Context, line *ctxfolder.Line, e *index.Entry) {
	if content, is, _ := views.Read(c.Dir, line.Folder, e); is == views.Edited {
		_, _ = h.Write(content) // it never fails
	}
}
