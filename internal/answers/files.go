package answers

import (
	"slices"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// Message is the place of a message.
type Message struct {
	Line     uuid.UUID
	Position int64
}

// folder is a folder with message files.
type folder struct {
	Context uuid.UUID `json:"context"`
	Name    string    `json:"folder"`
	Files   []file    `json:"messages"`
}

// file is a message file as the store makes it.
type file struct {
	ID   uuid.UUID `json:"id"`
	Size int64     `json:"size"` // of the envelope
	At   int64     `json:"at"`   // the commit, microseconds since 1970
}

// foldersOf returns the files of messages, which are sorted.
func foldersOf(x *engine.Context, messages []Message) (all []folder, err error) {
	m := x.Current()
	for i := range messages {
		at := &messages[i]
		if i == 0 || at.Line != messages[i-1].Line {
			line := slices.IndexFunc(m.Lines, func(l ctxfolder.Line) bool { return l.ID == at.Line })
			if line < 0 {
				return nil, ctxfolder.ErrNotExist
			}
			all = append(all, folder{Context: x.Dir.ID, Name: m.Lines[line].Folder})
		}
		e, ok, err := x.Index.Entry(at.Line, at.Position)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, ctxfolder.ErrNotExist
		}
		if e.Gone == archive.Here {
			f := &all[len(all)-1]
			f.Files = append(f.Files, file{e.ID, e.Size, e.At})
		}
	}
	return all, nil
}
