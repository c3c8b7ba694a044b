package context

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

const (
	trashVersion = "trash/1"
	// TrashNote is the file in an item's folder that says what the item is.
	TrashNote = "item.json"
)

// TrashItem is the content of an item.json: what a removed thing was.
type TrashItem struct {
	Version   string    `json:"ctxdir"`
	Kind      string    `json:"kind"` // see docs/FORMAT.md
	Name      string    `json:"name"` // of the thing, in its item's folder
	Context   uuid.UUID `json:"context"`
	RemovedAt time.Time `json:"removed_at"`

	// Of a message's replaced version, which lies in the item itself, and of the end of a line:
	Line     uuid.UUID       `json:"line,omitzero"`
	Position int64           `json:"position,omitempty"`
	Envelope json.RawMessage `json:"envelope,omitempty"`

	// Of the end of a line: what its row in the table of lines said, and which positions these are. Name is that of the branch
	// that bore the line last.
	Parent  uuid.UUID `json:"parent,omitzero"`
	Base    int64     `json:"base,omitempty"`
	Folder  string    `json:"folder,omitempty"`
	From    int64     `json:"from,omitempty"`
	To      int64     `json:"to,omitempty"`
	Why     string    `json:"why,omitempty"`
	Missing int64     `json:"missing,omitempty"` // messages that could not be had
}

// Kinds of trash.
const (
	TrashContext = "context" // a context's folder
	TrashLine    = "line"    // the end of a line that no branch showed
	TrashVersion = "version" // the envelope that a replaced message had
	TrashTail    = "tail"    // a torn journal tail
	TrashDamaged = "damaged" // what lay where a file of ours belongs
	TrashBlobs   = "blobs"   // blobs that nothing referred to
)

// outrun bounds how often an item is made anew that others purge.
const outrun = 8

// IntoTrash makes an item below fsys and has put move something into its folder, or write it there. It returns the folder's path, and syncs it; where put moves
// something from is the caller's to sync. A collection without a grace period may purge the item before anything is in it: then put is called with another one.
//
// Crash order: item.json is durable before put is called; an item without its thing is an interrupted removal.
func IntoTrash(fsys vfs.FS, item TrashItem, put func(folder string) error) (folder string, err error) {
	for range outrun {
		if folder, err = NewTrash(fsys, item); err == nil {
			err = put(folder)
		}
		if err == nil {
			if err = fsys.SyncDir(folder); errors.Is(err, fs.ErrNotExist) {
				err = nil // it was purged with what is in it
			}
			return folder, err
		}
		if _, there := fsys.Lstat(folder); folder == "" || !errors.Is(err, fs.ErrNotExist) || !errors.Is(there, fs.ErrNotExist) {
			break
		}
	}
	return folder, err
}

// NewTrash makes the folder of a trash item below fsys and its item.json, durable: what is moved in next is
// never without the note that says what it is. It returns the folder's path, also with an error where there is one.
func NewTrash(fsys vfs.FS, item TrashItem) (string, error) {
	folder, err := makeTrash(fsys, "")
	if err != nil {
		return "", err
	}
	if err := writeItem(fsys, folder, item); err != nil {
		return folder, err
	}
	return folder, fsys.SyncDir(Trash)
}

// makeTrash makes the folder of an item, its name with something in front.
func makeTrash(fsys vfs.FS, before string) (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", err
	}
	if err := fsys.Mkdir(Trash); err == nil {
		if err := fsys.SyncDir("."); err != nil {
			return "", err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	folder := Trash + "/" + before + id.String()
	return folder, fsys.Mkdir(folder)
}

// writeItem writes item.json, durably. An item that does not say when it was removed was removed now.
func writeItem(fsys vfs.FS, folder string, item TrashItem) error {
	item.Version = trashVersion
	if item.RemovedAt.IsZero() {
		item.RemovedAt = time.Now()
	}
	item.RemovedAt = item.RemovedAt.UTC()
	if err := vfs.WriteSynced(fsys, folder+"/"+TrashNote, append(mustMarshal(item), '\n')); err != nil {
		return err
	}
	return fsys.SyncDir(folder)
}

// StagedTrash is an item that is being filled: nobody sees it before Commit.
type StagedTrash struct {
	fs     vfs.FS
	folder string
}

// StageTrash begins an item that is written, not moved in.
func StageTrash(fsys vfs.FS) (*StagedTrash, error) {
	folder, err := makeTrash(fsys, ".")
	return &StagedTrash{fsys, folder}, err
}

// Write makes a file in the item, durably.
func (t *StagedTrash) Write(name string, data []byte) error {
	return vfs.WriteSynced(t.fs, t.folder+"/"+name, data)
}

// Commit gives the item its name, and returns its path.
//
// Crash order: what is in it, and item.json, is durable before the rename; until then it is a folder that SweepTrash removes.
func (t *StagedTrash) Commit(item TrashItem) (string, error) {
	if err := writeItem(t.fs, t.folder, item); err != nil {
		return "", err
	}
	folder := Trash + "/" + strings.TrimPrefix(t.folder, Trash+"/.")
	if err := t.fs.Rename(t.folder, folder); err != nil {
		return "", err
	}
	t.folder = ""
	return folder, t.fs.SyncDir(Trash)
}

// Discard removes what was not committed.
func (t *StagedTrash) Discard() {
	if t.folder != "" {
		_ = vfs.RemoveAll(t.fs, t.folder)
	}
}

// TrashBytes keeps a copy of bytes that are about to be cut from a file, durably.
func TrashBytes(d *Dir, kind, name string, b []byte) error {
	item := TrashItem{Kind: kind, Name: name, Context: d.ID, RemovedAt: d.Latest(time.Now())}
	_, err := IntoTrash(d.FS, item, func(folder string) error { return vfs.WriteSynced(d.FS, folder+"/"+name, b) })
	return err
}

// TrashCopy keeps a copy of a file that is about to be replaced, durably.
func TrashCopy(d *Dir, kind, name string) error {
	b, err := vfs.ReadFile(d.FS, name, MaxMetadata)
	if err != nil {
		return err
	}
	return TrashBytes(d, kind, name, b)
}

// Latest is the later one of a time and of the last change that metadata.json tells: a clock that was set back must not make
// what is removed now look old.
func (d *Dir) Latest(now time.Time) time.Time {
	if m, _, err := d.ReadMetadata(); err == nil && m.UpdatedAt.After(now) {
		return m.UpdatedAt
	}
	return now
}

// TrashVersion keeps the envelope of a message that is replaced, at a time. It is not synced: a crash
// may lose the old version, never the new one.
func (d *Dir) TrashVersion(line uuid.UUID, position int64, envelope []byte, at time.Time) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	if err := d.FS.Mkdir(Trash); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	b, err := json.Marshal(TrashItem{
		Version: trashVersion, Kind: TrashVersion, Context: d.ID, RemovedAt: at.UTC(),
		Line: line, Position: position,
	})
	if err != nil {
		return err
	}
	// The envelope goes in by hand: it is to stay byte for byte.
	b = fmt.Appendf(b[:len(b)-1], `,"envelope":%s}`+"\n", envelope)
	return vfs.WriteNew(d.FS, Trash+"/"+id.String()+MessageEnd, b)
}
