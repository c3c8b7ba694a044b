package context

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/object"
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

	// For a message's replaced version, which is in the item itself:
	Line     uuid.UUID       `json:"line,omitzero"`
	Position int64           `json:"position,omitempty"`
	Sum      string          `json:"sum,omitempty"` // of the envelope
	Check    string          `json:"check,omitempty"`
	Envelope json.RawMessage `json:"envelope,omitempty"`
}

// Kinds of trash.
const (
	TrashContext = "context" // a context's folder
	TrashLine    = "line"    // a removed line, in its place
	TrashVersion = "version" // the envelope that a replaced message had
	TrashTail    = "tail"    // the torn end of a log
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
	folder := Trash + "/" + id.String()
	if err := fsys.Mkdir(folder); err != nil {
		return "", err
	}
	if item.RemovedAt.IsZero() {
		item.RemovedAt = time.Now()
	}
	if err := vfs.WriteSynced(fsys, folder+"/"+TrashNote, append(item.encode(), '\n')); err != nil {
		return folder, err
	}
	if err := fsys.SyncDir(folder); err != nil {
		return folder, err
	}
	return folder, fsys.SyncDir(Trash)
}

// encode returns the description with its checksum.
func (t TrashItem) encode() []byte {
	t.Version, t.RemovedAt = trashVersion, t.RemovedAt.UTC()
	return WithCheck(object.MustMarshal(t))
}

func sumOf(b []byte) string { return fmt.Sprintf("%016x", message.Sum(b)) }

// WithCheck adds the checksum of everything before it to a JSON object, as the last member.
func WithCheck(object []byte) []byte {
	b := slices.Concat(object[:len(object)-1], []byte(","))
	return fmt.Appendf(b, `"%s":%s}`, checkMember, checkOf(b))
}

// CheckFits reports whether the last member of a JSON object is the right checksum, or the object has none.
func CheckFits(object []byte) bool {
	i := bytes.LastIndex(object, []byte(`,"`+checkMember+`":`))
	return i < 0 || string(object) == string(WithCheck(append(object[:i:i], '}')))
}

// TrashBytes saves bytes that are about to be cut from a file, durably.
func TrashBytes(d *Dir, kind, name string, b []byte) error {
	item := TrashItem{Kind: kind, Name: name, Context: d.ID, RemovedAt: d.Latest(time.Now())}
	_, err := IntoTrash(d.FS, item, func(folder string) error { return vfs.WriteSynced(d.FS, folder+"/"+name, b) })
	return err
}

// TrashCopy saves a copy of a file that is about to be replaced, durably. name is its path in the context's folder.
func TrashCopy(d *Dir, kind, name string) error {
	if _, err := d.FS.Lstat(name); err != nil {
		return err
	}
	base := path.Base(name)
	item := TrashItem{Kind: kind, Name: base, Context: d.ID, RemovedAt: d.Latest(time.Now())}
	_, err := IntoTrash(d.FS, item, func(folder string) error {
		to := folder + "/" + base
		if err := vfs.CopyFile(context.Background(), d.FS, to, d.FS, name); err != nil {
			return err
		}
		return vfs.SyncFile(d.FS, to)
	})
	return err
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
	return d.trashVersion(line, position, envelope, at, vfs.WriteNew)
}

// TrashVersionSynced is [Dir.TrashVersion], durable when it returns: the envelope is about to be nowhere else.
func (d *Dir) TrashVersionSynced(line uuid.UUID, position int64, envelope []byte, at time.Time) error {
	if err := d.trashVersion(line, position, envelope, at, vfs.WriteSynced); err != nil {
		return err
	}
	return errors.Join(d.FS.SyncDir(Trash), d.FS.SyncDir("."))
}

func (d *Dir) trashVersion(
	line uuid.UUID, position int64, envelope []byte, at time.Time, write func(fsys vfs.FS, name string, b []byte) error,
) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	if err := d.FS.Mkdir(Trash); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	item := TrashItem{Kind: TrashVersion, Context: d.ID, RemovedAt: at, Line: line, Position: position, Sum: sumOf(envelope)}
	b := item.encode()
	// Appending the envelope by hand preserves it byte for byte.
	b = fmt.Appendf(b[:len(b)-1], `,"envelope":%s}`+"\n", envelope)
	return write(d.FS, Trash+"/"+id.String()+MessageEnd, b)
}
