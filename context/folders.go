package context

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/ctxdir/ctxdir/internal/held"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Folder is an open branch folder: the same one also when it gets another name.
type Folder struct {
	held.Use
	vfs.FS
	dir  *Dir
	name string
	self fs.FileInfo
}

// OpenFolder opens a branch folder, for Release, and makes it if need be. The context's lock is held: who writes into it later without the
// lock writes into the folder that had the name now.
//
// Crash order: nothing is synced. The journal holds what is put into the folder until the fold, which syncs both.
func (d *Dir) OpenFolder(name string) (*Folder, error) { return d.folder(name, true) }

// folder returns the open folder messages/name, for Release. It makes it when asked to.
func (d *Dir) folder(name string, create bool) (*Folder, error) {
	return d.subs.Get(name, func() (*Folder, error) { return d.openFolder(name, create) })
}

func (d *Dir) openFolder(name string, create bool) (*Folder, error) {
	if !ValidFolder(name) {
		return nil, fmt.Errorf("%q is no branch folder", name)
	}
	path := Messages + "/" + name
	opened, err := d.FS.Sub(path)
	if errors.Is(err, fs.ErrNotExist) && create {
		for _, dir := range []string{Messages, path} {
			if err := d.FS.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, err
			}
		}
		opened, err = d.FS.Sub(path)
	}
	if err != nil {
		return nil, err
	}
	self, err := opened.Lstat(".")
	if err != nil {
		_ = opened.Close()
		return nil, err
	}
	return &Folder{FS: opened, dir: d, name: name, self: self}, nil
}

// inFolder calls f with the open branch folder messages/name, which it makes when asked to. When f misses something, and the folder is not the one that
// bears the name now, it does so again with that: others remove a folder when its last message is archived, and make another one for the next.
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

// missed reports whether err is that something is not in the folder and the folder is not the one that bears its name any more. Then it is not
// used again.
func (f *Folder) missed(err error) bool {
	if !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	now, err := f.dir.FS.Lstat(Messages + "/" + f.name)
	if err == nil && vfs.SameFile(now, f.self) || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	f.dir.subs.Drop(f.name, f)
	return true
}

// HasFolder reports whether there is a branch folder: without one no message in it has a file.
func (d *Dir) HasFolder(name string) bool {
	there := func(name string) bool {
		err := d.inFolder(name, false, func(f *Folder) error {
			if f.missed(fs.ErrNotExist) {
				return fs.ErrNotExist // once more, with the folder that bears the name
			}
			return nil
		})
		return !errors.Is(err, fs.ErrNotExist)
	}
	from, ok := d.renamedFrom(name)
	return there(name) || ok && there(from)
}

// MakeFolderWay sets aside what lies where a branch folder or the folder of all of them belongs and is no folder, a link for instance.
func (d *Dir) MakeFolderWay(name string) error {
	for _, path := range []string{Messages, Messages + "/" + name} {
		info, err := d.FS.Lstat(path)
		if err != nil || info.IsDir() {
			continue
		}
		if err := d.SetAside(path); err != nil {
			return err
		}
	}
	return nil
}

// RemoveFolder removes a branch folder if nothing is in it: somebody may keep something there. The context's lock is held.
func (d *Dir) RemoveFolder(name string) {
	if ValidFolder(name) && d.FS.Remove(Messages+"/"+name) == nil {
		d.ForgetFolders()
	}
}

// ForgetFolders drops the open branch folders: their names may mean others now. One in which a read goes on is closed when that is done.
func (d *Dir) ForgetFolders() { d.subs.Clear() }

// SetRenaming says which rename of a branch folder may not have reached the disk, nil for none, and
// drops the open branch folders.
func (d *Dir) SetRenaming(r *Renaming) {
	d.mu.Lock()
	d.renaming = r
	d.mu.Unlock()
	d.subs.Clear()
}

// renamedFrom returns where a folder's files may still be while its rename is not finished.
func (d *Dir) renamedFrom(folder string) (string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.renaming != nil && d.renaming.To == folder {
		return d.renaming.From, true
	}
	return "", false
}

// FinishRenaming does what is left of a branch folder's rename, durably. The caller holds the context's lock, and writes metadata.json then.
//
// Crash order: metadata.json names both folders until the rename is durable; whoever comes in between finds
// the files under either name.
func (d *Dir) FinishRenaming(r Renaming) error {
	from, to := Messages+"/"+r.From, Messages+"/"+r.To
	_, err := d.FS.Lstat(from)
	if err == nil {
		if err = d.FS.Rename(from, to); errors.Is(err, fs.ErrExist) {
			err = d.mergeFolder(r.From, r.To)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Also where somebody else renamed it: that may have been right before a crash, or its sync may have failed.
	if err := d.FS.SyncDir(Messages); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// mergeFolder moves what is in one branch folder into another one that exists already, and removes the first:
// a rename whose target is there, left by a slow writer or made by hand. What cannot be moved because its name is
// taken goes to trash. Repeated, it goes on where it was stopped.
func (d *Dir) mergeFolder(from, to string) error {
	if !ValidFolder(from) || !ValidFolder(to) {
		return fmt.Errorf("merging %q into %q", from, to)
	}
	from, to = Messages+"/"+from, Messages+"/"+to
	if info, err := d.FS.Lstat(to); err == nil && !info.IsDir() {
		if err := d.SetAside(to); err != nil {
			return err
		}
		return d.FS.Rename(from, to)
	}
	var names []string
	for e, err := range d.FS.ReadDir(from) {
		if err != nil {
			return err
		}
		names = append(names, e.Name())
	}
	for _, name := range names {
		_, err := d.FS.Lstat(to + "/" + name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = d.FS.Rename(from+"/"+name, to+"/"+name)
		case err == nil:
			err = d.SetAside(from + "/" + name)
		}
		if err != nil {
			return err
		}
	}
	if err := d.FS.SyncDir(to); err != nil {
		return err
	}
	return d.FS.Remove(from)
}

// Folders returns the branch folders there are in messages/.
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
	err := d.messageIDs(folder, f)
	from, ok := d.renamedFrom(folder)
	if !ok || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if ferr := d.messageIDs(from, f); !errors.Is(ferr, fs.ErrNotExist) {
		return ferr
	}
	return err
}

func (d *Dir) messageIDs(folder string, f func(uuid.UUID) error) error {
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
