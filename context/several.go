package context

import (
	"errors"
	"io/fs"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Files is a branch folder that stays open while several of its message files are read.
type Files struct {
	dir    *Dir
	name   string
	folder *Folder // nil if there is none
	apart  bool    // each file is looked for alone: the folder could not be opened
}

// Files opens a branch folder until Release. A missing folder has no files.
func (d *Dir) Files(folder string) *Files {
	f := &Files{dir: d, name: folder}
	err := d.inFolder(folder, false, func(sub *Folder) (err error) {
		if sub.missed(fs.ErrNotExist) {
			return fs.ErrNotExist // try again with the folder that bears the name now
		}
		f.folder, err = d.folder(folder, false)
		return err
	})
	f.apart = err != nil && !errors.Is(err, fs.ErrNotExist)
	return f
}

// Release closes the folder after its last use.
func (f *Files) Release() {
	if f.folder != nil {
		f.folder.Release()
	}
}

// Load is [Dir.LoadMessage] for n files, of which file returns id and size. loaded receives the bytes. It is not called
// for a file that is not read: LoadMessage says why.
func (f *Files) Load(n int, file func(i int) (id uuid.UUID, size int64), loaded func(i int, b []byte)) {
	if f.folder == nil {
		return
	}
	vfs.LoadFiles(f.folder.FS, n, func(i int) (string, int64) {
		id, size := file(i)
		return MessageFile(id), size + 1
	}, loaded)
}

// Stat is [Dir.StatMessage] for several files. nil stands for a missing one.
func (f *Files) Stat(ids []uuid.UUID) ([]fs.FileInfo, error) {
	if f.folder != nil {
		names := make([]string, len(ids))
		for i, id := range ids {
			names[i] = MessageFile(id)
		}
		return vfs.LstatIn(f.folder.FS, ".", names...)
	}
	infos := make([]fs.FileInfo, len(ids))
	for i := 0; i < len(ids) && f.apart; i++ {
		info, err := f.dir.StatMessage(f.name, ids[i])
		if err == nil {
			infos[i] = info
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return infos, nil
}

// Remove removes a message file. A missing one is not an error.
func (f *Files) Remove(id uuid.UUID) error {
	var err error
	if f.folder != nil {
		err = f.folder.Remove(MessageFile(id))
	} else {
		err = f.dir.FS.Remove(f.dir.MessagePath(f.name, id))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
