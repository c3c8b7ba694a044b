package context

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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

	// Of a message's replaced version, which lies in the item itself:
	Line     uuid.UUID       `json:"line,omitzero"`
	Position int64           `json:"position,omitempty"`
	Envelope json.RawMessage `json:"envelope,omitempty"`
}

// NewTrash makes the folder of a trash item below fsys and its item.json, durable: what is moved in next is
// never without the note that says what it is. It returns the folder's path.
func NewTrash(fsys vfs.FS, item TrashItem) (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", err
	}
	if err := fsys.Mkdir(Trash); err == nil {
		err = fsys.SyncDir(".")
		if err != nil {
			return "", err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	folder := Trash + "/" + id.String()
	if err := fsys.Mkdir(folder); err != nil {
		return "", err
	}
	item.Version, item.RemovedAt = trashVersion, time.Now().UTC()
	if err := vfs.WriteSynced(fsys, folder+"/"+TrashNote, append(mustMarshal(item), '\n')); err != nil {
		return "", err
	}
	if err := fsys.SyncDir(folder); err != nil {
		return "", err
	}
	return folder, fsys.SyncDir(Trash)
}

// TrashBytes keeps a copy of bytes that are about to be cut from a file, durably.
func TrashBytes(d *Dir, kind, name string, b []byte) error {
	folder, err := NewTrash(d.FS, TrashItem{Kind: kind, Name: name, Context: d.ID})
	if err != nil {
		return err
	}
	if err := vfs.WriteSynced(d.FS, folder+"/"+name, b); err != nil {
		return err
	}
	return d.FS.SyncDir(folder)
}

// TrashCopy keeps a copy of a file that is about to be replaced, durably.
func TrashCopy(d *Dir, kind, name string) error {
	b, err := vfs.ReadFile(d.FS, name, MaxMetadata)
	if err != nil {
		return err
	}
	return TrashBytes(d, kind, name, b)
}

// TrashVersion keeps the envelope of a message that is about to be replaced. It is not synced: a crash
// may lose the old version, never the new one.
func (d *Dir) TrashVersion(line uuid.UUID, position int64, envelope []byte) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	if err := d.FS.Mkdir(Trash); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	b, err := json.Marshal(TrashItem{
		Version: trashVersion, Kind: "version", Context: d.ID, RemovedAt: time.Now().UTC(),
		Line: line, Position: position,
	})
	if err != nil {
		return err
	}
	// The envelope goes in by hand: it is to stay byte for byte.
	b = fmt.Appendf(b[:len(b)-1], `,"envelope":%s}`+"\n", envelope)
	return vfs.WriteNew(d.FS, Trash+"/"+id.String()+MessageEnd, b)
}
