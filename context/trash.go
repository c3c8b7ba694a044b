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
	// TrashNote is the file in an item's folder that describes the item.
	TrashNote = "item.json"
)

// TrashItem is the content of an item.json: the description of what was removed.
type TrashItem struct {
	Version   string    `json:"ctxdir"`
	Kind      string    `json:"kind"` // see docs/FORMAT.md
	Name      string    `json:"name"` // of the removed thing, in its item's folder
	Context   uuid.UUID `json:"context"`
	RemovedAt time.Time `json:"removed_at"`

	// For the end of a line, and for a message's replaced version, which is in the item itself:
	Line     uuid.UUID       `json:"line,omitzero"`
	Position int64           `json:"position,omitempty"`
	Envelope json.RawMessage `json:"envelope,omitempty"`

	// For the end of a line: its row in the table of lines, and its positions. Name is the line's last branch name.
	Parent  uuid.UUID `json:"parent,omitzero"`
	Base    int64     `json:"base,omitempty"`
	Folder  string    `json:"folder,omitempty"`
	From    int64     `json:"from,omitempty"`
	To      int64     `json:"to,omitempty"`
	Why     string    `json:"why,omitempty"`
	Missing int64     `json:"missing,omitempty"` // number of unavailable messages
}

// Kinds of trash.
const (
	TrashContext = "context" // a context's folder
	TrashLine    = "line"    // the end of a line that no branch showed
	TrashVersion = "version" // the envelope that a replaced message had
	TrashTail    = "tail"    // a torn journal tail
	TrashDamaged = "damaged" // what occupied the path of a file of ours
	TrashBlobs   = "blobs"   // blobs that nothing referred to
)

// maxRaces bounds how often IntoTrash makes an item again after another process purged it.
const maxRaces = 8

// IntoTrash makes an item below fsys and calls put to move or write something into its folder. It returns the folder's
// path, and syncs the folder. The caller syncs the source folder of a move. A collection without a grace period may
// purge the item while it is empty: then IntoTrash calls put with another one.
//
// Crash order: item.json is durable before the call of put. An item without content is an interrupted removal.
func IntoTrash(fsys vfs.FS, item TrashItem, put func(folder string) error) (folder string, err error) {
	for range maxRaces {
		if folder, err = NewTrash(fsys, item); err == nil {
			err = put(folder)
		}
		if err == nil {
			if err = fsys.SyncDir(folder); errors.Is(err, fs.ErrNotExist) {
				err = nil // it was purged with its content
			}
			return folder, err
		}
		if _, there := fsys.Lstat(folder); folder == "" || !errors.Is(err, fs.ErrNotExist) || !errors.Is(there, fs.ErrNotExist) {
			break
		}
	}
	return folder, err
}

// NewTrash makes the folder of a trash item below fsys and its item.json, durably, so that nothing moves in without a
// description. It returns the folder's path, also with an error if the folder was made.
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

// makeTrash makes the folder of an item, with a prefix before its name.
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

// writeItem writes item.json, durably. A missing removal time becomes the present time.
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

// StagedTrash is an item under construction. It is invisible before Commit.
type StagedTrash struct {
	fs     vfs.FS
	folder string
}

// StageTrash begins an item whose content is written instead of moved in.
func StageTrash(fsys vfs.FS) (*StagedTrash, error) {
	folder, err := makeTrash(fsys, ".")
	return &StagedTrash{fsys, folder}, err
}

// Write makes a file in the item, durably.
func (t *StagedTrash) Write(name string, data []byte) error {
	return vfs.WriteSynced(t.fs, t.folder+"/"+name, data)
}

// Commit gives the item its name and returns its path.
//
// Crash order: the content and item.json are durable before the rename. Until then SweepTrash removes the folder.
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

// Discard removes an uncommitted item.
func (t *StagedTrash) Discard() {
	if t.folder != "" {
		_ = vfs.RemoveAll(t.fs, t.folder)
	}
}

// TrashBytes saves bytes that are about to be cut from a file, durably.
func TrashBytes(d *Dir, kind, name string, b []byte) error {
	item := TrashItem{Kind: kind, Name: name, Context: d.ID, RemovedAt: d.Latest(time.Now())}
	_, err := IntoTrash(d.FS, item, func(folder string) error { return vfs.WriteSynced(d.FS, folder+"/"+name, b) })
	return err
}

// TrashCopy saves a copy of a file that is about to be replaced, durably.
func TrashCopy(d *Dir, kind, name string) error {
	b, err := vfs.ReadFile(d.FS, name, MaxMetadata)
	if err != nil {
		return err
	}
	return TrashBytes(d, kind, name, b)
}

// Latest returns the later of now and the last change in metadata.json: with a clock that was set back, a new item must
// not look old.
func (d *Dir) Latest(now time.Time) time.Time {
	if m, _, err := d.ReadMetadata(); err == nil && m.UpdatedAt.After(now) {
		return m.UpdatedAt
	}
	return now
}

// TrashVersion saves the envelope of a replaced message, with the time at. It syncs nothing: a crash may lose the old
// version, never the new one.
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
	// Appending the envelope by hand preserves it byte for byte.
	b = fmt.Appendf(b[:len(b)-1], `,"envelope":%s}`+"\n", envelope)
	return vfs.WriteNew(d.FS, Trash+"/"+id.String()+MessageEnd, b)
}
