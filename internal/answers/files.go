package answers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
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

// Draw notes messages of a context that the answer is made from. It costs little while the context is open.
func (c *Cache) Draw(ctx context.Context, id uuid.UUID, messages []Message) {
	if c == nil || c.failed || len(messages) == 0 {
		return
	}
	slices.SortFunc(messages, func(a, b Message) int {
		return cmp.Or(bytes.Compare(a.Line[:], b.Line[:]), cmp.Compare(a.Position, b.Position))
	})
	err := c.e.Use(ctx, id, func(x *engine.Context) error {
		found, err := foldersOf(x, slices.Compact(messages))
		c.drawn = append(c.drawn, found...)
		return err
	})
	c.failed = err != nil
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

// areUntouched reports whether message files are as they were committed. A missing one is.
func (c *Cache) areUntouched(folders []folder) bool {
	for _, f := range folders {
		if !ctxfolder.ValidFolder(f.Name) {
			return false
		}
		names := make([]string, len(f.Files))
		for i := range f.Files {
			names[i] = ctxfolder.MessageFile(f.Files[i].ID)
		}
		infos, err := vfs.LstatIn(c.e.FS, path.Join(f.Context.String(), ctxfolder.Messages, f.Name), names...)
		if errors.Is(err, fs.ErrNotExist) { // no folder
			infos, err = make([]fs.FileInfo, len(names)), nil
		}
		if err != nil {
			return false
		}
		for i := range f.Files {
			m := &f.Files[i]
			if infos[i] != nil && !ctxfolder.Untouched(infos[i], m.Size, time.UnixMicro(m.At)) {
				return false
			}
		}
	}
	return true
}
