package erase

import (
	"bytes"
	"context"
	"errors"
	"io/fs"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// An import makes the title of a context from the text of a message: docs/FORMAT.md, "Imported contexts".

// eraseTitle removes a title that was made from one of the messages to erase.
//
// Crash order: the metadata without the title is committed after the note, and before the rows of the messages say
// "erased". The journals that have the title go with those that have the messages, and metadata.json before the note.
func (e *eraser) eraseTitle(ctx context.Context, x *target) error {
	if m := x.c.Current(); e.ids[engine.TitleFrom(m)] {
		e.reportTitle(x)
		err := x.c.Update(ctx, func(m *engine.Metadata) error {
			if e.ids[engine.TitleFrom(m)] {
				engine.EraseTitle(m)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if !e.ids[engine.TitleErased(x.c.Current())] {
		return nil
	}
	return x.c.Exclusively(ctx, func() error { return x.c.Dir.FS.SyncDir(".") }) // it has written metadata.json
}

func (e *eraser) reportTitle(x *target) {
	m := x.c.Current()
	if from := engine.TitleFrom(m); e.ids[from] {
		e.report(from, x.path(ctxfolder.MetadataFile), int64(len(m.Title)), "title")
	}
}

// titleLost reports whether the title of the context went with one of the messages, now or in an interrupted erase.
func (e *eraser) titleLost() bool { return e.ids[engine.TitleErased(e.main.c.Current())] }

// titleIn returns the message to erase from whose text the title in a piece of metadata was made.
func (e *eraser) titleIn(b []byte) (id uuid.UUID, ok bool) {
	for rest := b; ; {
		_, after, found := bytes.Cut(rest, []byte(`"`+engine.TitleFromKey+`"`))
		if !found {
			return uuid.Nil, false
		}
		rest = bytes.TrimLeft(after, ": \t\r\n")
		if len(rest) > 36 && rest[0] == '"' {
			if id, err := uuid.ParseBytes(rest[1:37]); err == nil && e.ids[id] {
				return id, true
			}
		}
	}
}

// titleTrace reports whether a copy of metadata.json has such a title.
func (e *eraser) titleTrace(fsys vfs.FS, p, what string) (t trace, ok bool, err error) {
	b, err := vfs.ReadFile(fsys, p, ctxfolder.MaxMetadata)
	if errors.Is(err, fs.ErrNotExist) {
		return t, false, nil
	}
	if err != nil {
		return t, false, err
	}
	t.id, ok = e.titleIn(b)
	t.path, t.bytes, t.kind, t.whole = p, int64(len(b)), what, true
	return t, ok, nil
}
