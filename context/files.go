package context

import (
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// MaxMessage bounds the bytes read from a message file, whatever a store's own limit is.
const MaxMessage = 4 << 30

// CreateMessage makes the message file id in folder, with data and a newline, for a commit at a time, see [FileTime].
// It syncs nothing. Readers see the file whole or not at all. An existing file stays: it may be a newer version. A folder
// without views gets none, see [vfs.HasViews].
//
// Crash order: the record with the same bytes is already durable. A seal, or a repair, writes a lost or torn file again from
// it.
func (d *Dir) CreateMessage(folder string, id uuid.UUID, data []byte, at time.Time) error {
	if !vfs.HasViews(d.FS) {
		return nil
	}
	err := d.inFolder(folder, true, func(sub *Folder) error {
		return sub.Create(id, data, at)
	})
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// ReplaceMessage is CreateMessage that replaces an existing file.
func (d *Dir) ReplaceMessage(folder string, id uuid.UUID, data []byte, at time.Time) error {
	if !vfs.HasViews(d.FS) {
		return nil
	}
	return d.inFolder(folder, true, func(sub *Folder) error {
		name := MessageFile(id)
		tmp := vfs.TemporaryName(name)
		err := vfs.CreateFile(sub.FS, tmp, line(data), FileTime(data, at))
		if err == nil {
			err = sub.Rename(tmp, name)
		}
		if err != nil {
			_ = sub.Remove(tmp)
		}
		return err
	})
}

// Create is [Dir.CreateMessage] in an open folder. It fails with fs.ErrExist if the file exists.
func (f *Folder) Create(id uuid.UUID, data []byte, at time.Time) error {
	err := vfs.CreateWhole(f.FS, MessageFile(id), line(data), FileTime(data, at))
	f.missed(err)
	return err
}

func line(data []byte) []byte {
	return append(append(make([]byte, 0, len(data)+1), data...), '\n')
}

// ReadMessage returns the content of a message file, see [message.Text], and its Stat.
func (d *Dir) ReadMessage(folder string, id uuid.UUID) (b []byte, info fs.FileInfo, err error) {
	err = d.inFolder(folder, false, func(sub *Folder) (err error) {
		b, info, err = vfs.ReadStat(sub.FS, MessageFile(id), MaxMessage)
		return err
	})
	return message.Text(b), info, err
}

// LoadMessage returns the bytes of a message file that should hold size bytes and a newline. Of a longer file it
// returns only the beginning. The caller verifies the checksum; if it does not match, ReadMessage returns the whole
// file.
func (d *Dir) LoadMessage(folder string, id uuid.UUID, size int64) (b []byte, err error) {
	err = d.inFolder(folder, false, func(sub *Folder) (err error) {
		b, err = vfs.LoadFile(sub.FS, MessageFile(id), size+1)
		return err
	})
	return b, err
}

// StatMessage returns the Lstat of a message file.
func (d *Dir) StatMessage(folder string, id uuid.UUID) (info fs.FileInfo, err error) {
	err = d.inFolder(folder, false, func(sub *Folder) (err error) {
		info, err = sub.Lstat(MessageFile(id))
		return err
	})
	return info, err
}

// MessagePath returns the path of a message file in the context's folder.
func (d *Dir) MessagePath(folder string, id uuid.UUID) string {
	return Messages + "/" + folder + "/" + MessageFile(id)
}

// SetAside moves to trash what occupies the path of a file of ours.
func (d *Dir) SetAside(path string) error {
	name := path[strings.LastIndexByte(path, '/')+1:]
	item := TrashItem{Kind: TrashDamaged, Name: name, Context: d.ID, RemovedAt: d.Latest(time.Now())}
	_, err := IntoTrash(d.FS, item, func(folder string) error { return d.FS.Rename(path, folder+"/"+name) })
	return err
}

// MakeWay sets aside whatever occupies the path of a file and is not a regular file.
func (d *Dir) MakeWay(path string) error {
	info, err := d.FS.Lstat(path)
	if err != nil || info.Mode().IsRegular() {
		return nil
	}
	return d.SetAside(path)
}

// RemoveMessage removes a message file if goes accepts its bytes; goes receives nil for a file too large for a message.
// A missing file is not an error, nor is one that stays. RemoveMessage syncs nothing.
func (d *Dir) RemoveMessage(folder string, id uuid.UUID, goes func(raw []byte) bool) error {
	err := d.inFolder(folder, false, func(sub *Folder) error {
		raw, err := vfs.ReadFile(sub.FS, MessageFile(id), MaxMessage)
		if errors.Is(err, vfs.ErrTooLarge) {
			raw, err = nil, nil
		}
		if err != nil || !goes(message.Text(raw)) {
			return err
		}
		return sub.Remove(MessageFile(id))
	})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, vfs.ErrNotRegular) {
		return nil
	}
	return err
}

// FileTime is the modification time of a message file, for an envelope that is committed at a time: the message's own
// time if that is earlier, so that lists of files show the order of an imported conversation. It differs from the time
// of the commit by whole milliseconds, which tells it from the time of an edit, see [Untouched].
func FileTime(data []byte, at time.Time) time.Time {
	created := message.ParseCreatedAt(data)
	if created.Unix() <= 0 || !created.Before(at) {
		return at
	}
	return at.Add(-at.Sub(created).Truncate(time.Millisecond))
}

// Untouched reports whether a file still has a size and time that it got when the envelope of this size was committed
// at this time. Such a file is trusted unread; for any other the checksum decides.
func Untouched(info fs.FileInfo, size int64, at time.Time) bool {
	return info.Mode().IsRegular() && info.Size() == size+1 && HasFileTime(info, at)
}

// HasFileTime reports whether a file has a time that [FileTime] may have given it for a commit at this time: that time,
// or one that is whole milliseconds earlier. An edit is later than the commit.
func HasFileTime(info fs.FileInfo, at time.Time) bool {
	earlier := at.Sub(info.ModTime())
	return earlier >= 0 && earlier%time.Millisecond == 0
}
