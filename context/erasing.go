package context

import (
	"encoding/json"
	"fmt"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

const (
	// ErasingFile is the note of an unfinished erase in a context's folder.
	ErasingFile    = "erasing.json"
	erasingVersion = "erasing/1"
	maxErasing     = 64 << 20
)

// Erasing is the content of erasing.json: what the erase removes.
type Erasing struct {
	Version  string      `json:"ctxdir"`
	Messages []uuid.UUID `json:"messages"`
	Along    []uuid.UUID `json:"along,omitempty"` // those of Messages that repeat the others
	Blobs    []string    `json:"blobs"`           // their sums
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
		return nil, fmt.Errorf("%w: %s is %q, wanted %q", ErrVersion, ErasingFile, n.Version, erasingVersion)
	}
	return &n, nil
}

// WriteErasing replaces erasing.json, durably.
func WriteErasing(fsys vfs.FS, n Erasing) error {
	n.Version = erasingVersion
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := fsys.Replace(ErasingFile, append(b, '\n')); err != nil {
		return err
	}
	return fsys.SyncDir(".")
}
