package answers

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// Message is a message that an answer is made from.
type Message struct {
	Folder   string // of its file, in messages/
	ID       uuid.UUID
	StoredAt time.Time
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
	At   int64     `json:"at"`             // the commit, microseconds since 1970
	Size int64     `json:"size,omitempty"` // of the file; 0 if it was missing
}

// Draw notes messages of a context that the answer is made from.
func (c *Cache) Draw(context uuid.UUID, messages []Message) {
	if c == nil {
		return
	}
	at := map[string]int{}
	for _, m := range messages {
		i, ok := at[m.Folder]
		if !ok {
			i = len(c.drawn)
			at[m.Folder] = i
			c.drawn = append(c.drawn, folder{Context: context, Name: m.Folder})
		}
		c.drawn[i].Files = append(c.drawn[i].Files, file{ID: m.ID, At: m.StoredAt.UnixMicro()})
	}
}

// areUntouched reports whether message files are as they were committed, and notes their sizes. A missing one is.
func (c *Cache) areUntouched(folders []folder) bool {
	for i := range folders {
		if !c.isUntouched(&folders[i]) {
			return false
		}
	}
	return true
}

func (c *Cache) isUntouched(f *folder) bool {
	if !ctxfolder.ValidFolder(f.Name) {
		return false
	}
	root, err := c.store.OpenRoot(path.Join(f.Context.String(), ctxfolder.Messages, f.Name))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer root.Close()
	for i := range f.Files {
		if !f.Files[i].isUntouched(root) {
			return false
		}
	}
	return true
}

func (f *file) isUntouched(folder *os.Root) bool {
	info, err := folder.Lstat(ctxfolder.MessageFile(f.ID))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	if f.Size == 0 {
		f.Size = info.Size()
	}
	return info.Mode().IsRegular() && info.Size() == f.Size && ctxfolder.HasFileTime(info, time.UnixMicro(f.At))
}
