package context

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

const (
	// ErasingFile is the note of an unfinished erase or purge in a context's folder.
	ErasingFile    = "erasing.json"
	erasingVersion = "erasing/1"
	maxErasing     = 64 << 20
)

// Erasing is the content of erasing.json: what an erase or a purge removes.
type Erasing struct {
	Version  string      `json:"ctxdir"`
	Messages []uuid.UUID `json:"messages"`        // to erase; none for a purge
	Along    []uuid.UUID `json:"along,omitempty"` // those of Messages that repeat the others
	Blobs    []string    `json:"blobs"`           // their sums
	Cut      []CutLine   `json:"cut,omitempty"`   // by a purge
}

// CutLine is a line whose end a purge removes. The commit may not have been made.
type CutLine struct {
	Line   uuid.UUID `json:"line"`
	Folder string    `json:"folder"` // in messages/
	From   int64     `json:"from"`   // the line ends here
}

// ReadErasing reads erasing.json. Its errors wrap ErrVersion or an error of the file system, or describe the damage.
func ReadErasing(fsys vfs.FS) (*Erasing, error) {
	b, err := vfs.ReadFile(fsys, ErasingFile, maxErasing)
	if err != nil {
		return nil, err
	}
	var n Erasing
	if err := json.Unmarshal(b, &n); err != nil {
		return nil, fmt.Errorf("%s: %w", ErasingFile, err)
	}
	if n.Version != erasingVersion {
		return nil, fmt.Errorf("%w: %s has version %q, expected %q", ErrVersion, ErasingFile, n.Version, erasingVersion)
	}
	return &n, nil
}

// RemoveErasing removes erasing.json, durably.
func RemoveErasing(fsys vfs.FS) error {
	if err := fsys.Remove(ErasingFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fsys.SyncDir(".")
}

// WriteErasing replaces erasing.json, durably.
func WriteErasing(fsys vfs.FS, n Erasing) error {
	n.Version = erasingVersion
	if n.Messages == nil {
		n.Messages = []uuid.UUID{}
	}
	if n.Blobs == nil {
		n.Blobs = []string{}
	}
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := fsys.Replace(ErasingFile, append(b, '\n')); err != nil {
		return err
	}
	return fsys.SyncDir(".")
}
