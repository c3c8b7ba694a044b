package context

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// MaxMessage bounds what is read of a message file, in bytes, whatever a store's own limit is.
const MaxMessage = 4 << 30

// mostFolders bounds the folders that are kept open.
const mostFolders = 512

// folder returns the open folder messages/name, making it when asked to.
func (d *Dir) folder(name string, create bool) (vfs.FS, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if sub, ok := d.subs[name]; ok {
		return sub, nil
	}
	if !ValidFolder(name) {
		return nil, fmt.Errorf("%q is no branch folder", name)
	}
	path := Messages + "/" + name
	sub, err := d.FS.Sub(path)
	if errors.Is(err, fs.ErrNotExist) && create {
		// Not synced: the journal holds what is put into it until the fold, which syncs both.
		for _, dir := range []string{Messages, path} {
			if err := d.FS.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, err
			}
		}
		sub, err = d.FS.Sub(path)
	}
	if err != nil {
		return nil, err
	}
	if len(d.subs) >= mostFolders {
		clear(d.subs) // not closed: see ForgetFolders
	}
	d.subs[name] = sub
	return sub, nil
}

// HasFolder reports whether there is a branch folder: without one no message in it has a file.
func (d *Dir) HasFolder(name string) bool {
	_, err := d.folder(name, false)
	if from, ok := d.renamedFrom(name); ok && err != nil {
		_, err = d.folder(from, false)
	}
	return !errors.Is(err, fs.ErrNotExist)
}

// RemoveFolder removes a branch folder if nothing is in it: somebody may keep something there. The context's lock is held.
func (d *Dir) RemoveFolder(name string) {
	if ValidFolder(name) && d.FS.Remove(Messages+"/"+name) == nil {
		d.ForgetFolders()
	}
}

// ForgetFolders drops the open branch folders: their names may mean others now.
func (d *Dir) ForgetFolders() {
	d.mu.Lock()
	defer d.mu.Unlock()
	// They are not closed, for a read may be going on in one; the runtime closes them when it is done.
	clear(d.subs)
}

// SetRenaming says which rename of a branch folder may not have reached the disk, nil for none, and
// drops the open branch folders.
func (d *Dir) SetRenaming(r *Renaming) {
	d.ForgetFolders()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.renaming = r
}

// CreateMessage makes the message file id in folder, unless it is there: data and a newline, with at as its
// modification time. Nothing is synced. It appears whole or not at all to who reads meanwhile. One that is
// there stays: it may be a newer version.
//
// Crash order: the record that holds the same bytes is durable already. Lost or torn, the file is written
// again from it by the next fold.
func (d *Dir) CreateMessage(folder string, id uuid.UUID, data []byte, at time.Time) error {
	s, err := d.StageMessage(folder, id, data, at)
	if err == nil {
		err = s.Create()
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// ReplaceMessage is CreateMessage that takes the place of the file that is there.
func (d *Dir) ReplaceMessage(folder string, id uuid.UUID, data []byte, at time.Time) error {
	sub, err := d.folder(folder, true)
	if err != nil {
		return err
	}
	name := MessageFile(id)
	tmp := vfs.TemporaryName(name)
	err = vfs.CreateFile(sub, tmp, line(data), at)
	if err == nil {
		err = sub.Rename(tmp, name)
	}
	if err != nil {
		_ = sub.Remove(tmp)
	}
	return err
}

// StageMessage is the part of CreateMessage that may go on while the message's record is being synced. The rest, Create,
// comes after.
func (d *Dir) StageMessage(folder string, id uuid.UUID, data []byte, at time.Time) (vfs.Staged, error) {
	sub, err := d.folder(folder, true)
	if err != nil {
		return nil, err
	}
	return vfs.StageFile(sub, MessageFile(id), line(data), at)
}

func line(data []byte) []byte {
	return append(append(make([]byte, 0, len(data)+1), data...), '\n')
}

// ReadMessage returns a message file's bytes without the final newlines, and what Stat said of it.
func (d *Dir) ReadMessage(folder string, id uuid.UUID) ([]byte, fs.FileInfo, error) {
	b, info, err := d.readMessage(folder, id)
	if from, ok := d.renamedFrom(folder); ok && errors.Is(err, fs.ErrNotExist) {
		return d.readMessage(from, id)
	}
	return b, info, err
}

// LoadMessage returns the bytes of a message file that should hold size bytes and a newline. Only a checksum tells
// whether it does; if not, ReadMessage says more.
func (d *Dir) LoadMessage(folder string, id uuid.UUID, size int64) ([]byte, error) {
	b, err := d.loadMessage(folder, id, size)
	if from, ok := d.renamedFrom(folder); ok && errors.Is(err, fs.ErrNotExist) {
		return d.loadMessage(from, id, size)
	}
	return b, err
}

func (d *Dir) loadMessage(folder string, id uuid.UUID, size int64) ([]byte, error) {
	sub, err := d.folder(folder, false)
	if err != nil {
		return nil, err
	}
	b, err := vfs.LoadFile(sub, MessageFile(id), size+1)
	return bytes.TrimRight(b, "\n"), err
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

func (d *Dir) readMessage(folder string, id uuid.UUID) ([]byte, fs.FileInfo, error) {
	sub, err := d.folder(folder, false)
	if err != nil {
		return nil, nil, err
	}
	b, info, err := vfs.ReadStat(sub, MessageFile(id), MaxMessage)
	return bytes.TrimRight(b, "\n"), info, err
}

// MessagePath is where in the context's folder a message file is read from, or would be made.
func (d *Dir) MessagePath(folder string, id uuid.UUID) string {
	if from, ok := d.renamedFrom(folder); ok {
		if _, err := d.statMessage(folder, id); errors.Is(err, fs.ErrNotExist) {
			if _, err := d.statMessage(from, id); err == nil {
				folder = from
			}
		}
	}
	return Messages + "/" + folder + "/" + MessageFile(id)
}

// StatMessage is Lstat of a message file.
func (d *Dir) StatMessage(folder string, id uuid.UUID) (fs.FileInfo, error) {
	info, err := d.statMessage(folder, id)
	if from, ok := d.renamedFrom(folder); ok && errors.Is(err, fs.ErrNotExist) {
		return d.statMessage(from, id)
	}
	return info, err
}

func (d *Dir) statMessage(folder string, id uuid.UUID) (fs.FileInfo, error) {
	sub, err := d.folder(folder, false)
	if err != nil {
		return nil, err
	}
	return sub.Lstat(MessageFile(id))
}

// MergeFolder moves what is in one branch folder into another one that exists already, and removes the first:
// a rename whose target is there, left by a slow writer or made by hand. What cannot be moved because its name is
// taken goes to trash. Repeated, it goes on where it was stopped.
func (d *Dir) MergeFolder(from, to string) error {
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

// SetAside moves what lies where a file of ours belongs to trash.
func (d *Dir) SetAside(path string) error {
	name := path[strings.LastIndexByte(path, '/')+1:]
	item, err := NewTrash(d.FS, TrashItem{Kind: TrashDamaged, Name: name, Context: d.ID, RemovedAt: d.Latest(time.Now())})
	if err != nil {
		return err
	}
	return d.FS.Rename(path, item+"/"+name)
}

// MakeWay sets aside what is no regular file in the place of one.
func (d *Dir) MakeWay(path string) error {
	info, err := d.FS.Lstat(path)
	if err != nil || info.Mode().IsRegular() {
		return nil
	}
	return d.SetAside(path)
}

// RemoveMessage removes a message file if its bytes are those of a message that is to go. One that is not there is no error, nor is one
// that stays. Nothing is synced.
func (d *Dir) RemoveMessage(folder string, id uuid.UUID, goes func(raw []byte) bool) error {
	raw, _, err := d.readMessage(folder, id)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, vfs.ErrNotRegular) {
		return nil
	}
	if err != nil || !goes(raw) {
		return err
	}
	sub, err := d.folder(folder, false)
	if err != nil {
		return err
	}
	if err := sub.Remove(MessageFile(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Untouched reports whether a file's size and time are those it was given when the envelope of this size
// was committed at this time. Then it need not be read to be trusted; otherwise its checksum decides.
func Untouched(info fs.FileInfo, size int64, at time.Time) bool {
	return info.Mode().IsRegular() && info.Size() == size+1 && info.ModTime().Equal(at)
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
