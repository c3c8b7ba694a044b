package erase

import (
	"bytes"
	"errors"
	"io/fs"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/origin"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// An import makes the title of a context from the text of a message: docs/APPLICATIONS.md, "Imported contexts". The commit
// that erases the message removes the title, and every earlier copy of the metadata loses it.

func (e *eraser) reportTitle(x *target) {
	m := x.c.Current()
	if from := origin.TitleFrom(m); e.ids[from] {
		e.report(from, x.path(ctxfolder.MetadataFile), int64(len(m.Title)), "title")
	}
}

// titleLost reports whether the title of the context went with one of the messages, now or in an interrupted erase.
func (e *eraser) titleLost() bool { return e.ids[origin.TitleErased(e.main.c.Current())] }

// noteTitle notes the title that was made from one of the messages: a person may have given it to the context again.
func (e *eraser) noteTitle(m *engine.Metadata) {
	if e.ids[origin.TitleFrom(m)] {
		var from engine.Object
		_ = from.UnmarshalJSON(m.Extra.Get(origin.Key)) // it is one
		e.titles[from.Text("title")] = true
	}
}

// hasTitle reports whether a piece of metadata has such a title, whether or not it says whose it is.
func (e *eraser) hasTitle(b []byte) bool {
	if _, ok := e.titleIn(b); ok {
		return true
	}
	for title := range e.titles {
		quoted, _ := jsontext.AppendQuote(nil, title) // the title was read from JSON
		for _, key := range []string{`"title":`, `"title": `} {
			if title != "" && bytes.Contains(b, append([]byte(key), quoted...)) {
				return true
			}
		}
	}
	return false
}

// titleIn returns the message to erase from whose text the title in a piece of metadata was made.
func (e *eraser) titleIn(b []byte) (id uuid.UUID, ok bool) {
	for rest := b; ; {
		_, after, found := bytes.Cut(rest, []byte(`"`+origin.TitleFromKey+`"`))
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
	t.id, _ = e.titleIn(b)
	ok = e.hasTitle(b)
	t.path, t.bytes, t.kind, t.whole = p, int64(len(b)), what, true
	return t, ok, nil
}
