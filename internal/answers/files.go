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

// areUntouched reports whether message files are as they were committed, and notes their sizes. A missing one is.
func areUntouched(store *os.Root, folders []folder) bool {
	for i := range folders {
		if !folders[i].isUntouched(store) {
			return false
		}
	}
	return true
}

func (f *folder) isUntouched(store *os.Root) bool {
	if !ctxfolder.ValidFolder(f.Name) {
		return false
	}
	root, err := store.OpenRoot(path.Join(f.Context.String(), ctxfolder.Messages, f.Name))
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
