package context

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Folders returns the names of the folders in which lines keep their messages.
func (m *Metadata) Folders() map[uuid.UUID]string {
	folders := make(map[uuid.UUID]string, len(m.Lines))
	for i := range m.Lines {
		folders[m.Lines[i].ID] = m.Lines[i].Folder
	}
	return folders
}

// folder returns the open folder messages/name until Release. With create it makes a missing folder.
func (d *Dir) folder(name string, create bool) (*Folder, error) {
	return d.subs.Get(name, func() (*Folder, error) { return d.openFolder(name, create) })
}

func (d *Dir) openFolder(name string, create bool) (*Folder, error) {
	if !ValidFolder(name) {
		return nil, fmt.Errorf("%q is not a branch folder", name)
	}
	path := Messages + "/" + name
	opened, self, err := vfs.SubStat(d.FS, path)
	if errors.Is(err, fs.ErrNotExist) && create {
		for _, dir := range []string{Messages, path} {
			if err := d.FS.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, err
			}
		}
		opened, self, err = vfs.SubStat(d.FS, path)
	}
	if err != nil {
		return nil, err
	}
	return &Folder{FS: opened, dir: d, name: name, self: self}, nil
}

// inFolder calls f with the open branch folder messages/name. With create it makes a missing folder. When f misses a
// file and another folder bears the name now, inFolder calls f again with that folder: other processes remove a folder
// when its last message is archived, and make another one for the next message.
func (d *Dir) inFolder(name string, create bool, f func(*Folder) error) error {
	for try := 0; ; try++ {
		sub, err := d.folder(name, create)
		if err != nil {
			return err
		}
		err = f(sub)
		again := sub.missed(err) && try < 3
		sub.Release()
		if !again {
			return err
		}
	}
}

// missed reports whether err is a missing file and the folder no longer bears its name. Such a folder is not used
// again.
func (f *Folder) missed(err error) bool {
	if !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	same, err := vfs.IsAt(f.dir.FS, Messages+"/"+f.name, f.self)
	if same || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	f.dir.subs.Drop(f.name, f)
	return true
}

// RemoveFolder removes a branch folder if it is there and empty; a user may keep a file there. The caller holds the
// context's lock.
func (d *Dir) RemoveFolder(name string) error {
	if !ValidFolder(name) {
		return nil
	}
	err := d.FS.Remove(Messages + "/" + name)
	switch {
	case err == nil:
		d.ForgetFolders()
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrExist): // ErrExist: it is not empty
		return nil
	}
	return err
}

// ForgetFolders drops the open branch folders, since their names may belong to others now. A folder in use closes after
// its last read.
func (d *Dir) ForgetFolders() { d.subs.Clear() }

// Folders returns the branch folders in messages/.
func (d *Dir) Folders() ([]string, error) {
	var names []string
	for e, err := range d.FS.ReadDir(Messages) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if e.IsDir() && ValidFolder(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// MessageIDs calls f with the file id of every message file in a branch folder.
func (d *Dir) MessageIDs(folder string, f func(uuid.UUID) error) error {
	for e, err := range d.FS.ReadDir(Messages + "/" + folder) {
		if err != nil {
			return err
		}
		if id, ok := ParseMessageFile(e.Name()); ok {
			if err := f(id); err != nil {
				return err
			}
		}
	}
	return nil
}
