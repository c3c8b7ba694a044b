package backup

import (
	"context"
	"io/fs"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/views"
	"github.com/google/uuid"
)

// shown is a message as the source shows it.
type shown struct {
	index.Entry
	committed []byte // nil if it cannot be read
	edited    []byte // the content of its file, if a person edited that
	editedAt  time.Time
	hasFile   bool
	why       error // why there is neither
}

// content returns what counts, nil if there is nothing.
func (x *shown) content() []byte {
	if x.edited != nil {
		return x.edited
	}
	return x.committed
}

// batchBytes bounds the messages that are read at once.
const batchBytes = 4 << 20

// walk calls f for the messages at the positions [from, to) that a line has itself.
func (b *copier) walk(ctx context.Context, line *ctxfolder.Line, from, to int64, f func(*shown) error) error {
	for page, err := range b.ix.Pages(ctx, line.ID, from, to) {
		if err != nil {
			return err
		}
		for len(page) > 0 {
			n, size := 1, page[0].Size
			for n < len(page) && size+page[n].Size <= batchBytes {
				size += page[n].Size
				n++
			}
			raw := make([][]byte, n)
			b.ix.Read(page[:n], raw)
			infos := look(b.c.Dir, line.Folder, page[:n])
			for i := range n {
				x := b.show(line, &page[i], raw[i], infos[i])
				if err := f(x); err != nil {
					return err
				}
			}
			page = page[n:]
		}
	}
	return nil
}

func (b *copier) show(line *ctxfolder.Line, e *index.Entry, raw []byte, info fs.FileInfo) *shown {
	x := &shown{Entry: *e, committed: raw, hasFile: info != nil}
	if x.hasFile && (raw == nil || !ctxfolder.Untouched(info, e.Size, e.StoredAt())) {
		switch content, is, _ := views.Read(b.c.Dir, line.Folder, e); {
		case is == views.Exact:
			x.committed = content
		case is == views.Edited && (raw == nil || !isNewer(e, content)):
			x.edited, x.editedAt = content, info.ModTime()
		}
	}
	if x.content() == nil {
		_, x.why = b.ix.ReadOne(e)
	}
	return x
}

// look returns the Lstat of the files of messages, nil for those that cannot be seen.
func look(dir *ctxfolder.Dir, folder string, entries []index.Entry) []fs.FileInfo {
	ids := make([]uuid.UUID, len(entries))
	for i := range entries {
		ids[i] = entries[i].ID
	}
	files := dir.Files(folder)
	defer files.Release()
	if infos, err := files.Stat(ids); err == nil {
		return infos
	}
	return make([]fs.FileInfo, len(entries))
}

// isNewer reports whether a message's file has a version that was committed after the entry was read.
func isNewer(e *index.Entry, content []byte) bool {
	env, err := message.Parse(content)
	return err == nil && !e.IsLost() && env.StoredAt.UnixMicro() > e.At
}
