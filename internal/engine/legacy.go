package engine

import (
	"errors"
	"io/fs"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// LegacyFormat is the format of a context of ctxdir's predecessor; empty for any other context.
type LegacyFormat = legacy.Format

// Formats of legacy contexts. Both may be of any generation.
const (
	LegacyFile  = legacy.Monolithic // one JSON file
	LegacySplit = legacy.Split      // a folder, with each message in a file of its own
)

// Legacy returns the format of the unmigrated legacy context that this context is a view of, or "". Writes to a view
// fail with [ErrReadOnly]. Opening a view takes as long as a migration, and as much space until it is closed.
func (c *Context) Legacy() LegacyFormat { return c.legacy }

// AsView makes c the read-only view of a legacy context. Close calls release.
func (c *Context) AsView(of LegacyFormat, release func()) {
	c.Store.ReadOnly = true
	c.legacy, c.release = of, release
}

// Legacy returns the format of the unmigrated legacy context with that id in the store; empty if there is none.
func (s *Store) Legacy(id uuid.UUID) (LegacyFormat, error) {
	switch name, err := s.LegacyAt(id); {
	case name == "":
		return "", err
	case name == id.String():
		return LegacySplit, nil
	}
	return LegacyFile, nil
}

// LegacyAt returns the name of the legacy file or folder in the store for a context of that id; empty if there is none.
func (s *Store) LegacyAt(id uuid.UUID) (name string, err error) {
	name = id.String()
	folder, err := vfs.IsFolder(s.FS, name)
	is := false
	switch {
	case err != nil:
	case folder:
		is, err = IsSplit(s.FS, name)
	default:
		name += ".json"
		is, err = hasFormat(s.FS, name, legacy.Monolithic)
	}
	if !is {
		return "", err
	}
	return name, nil
}

// IsSplit reports whether a folder in the store is a split legacy context.
func IsSplit(fsys vfs.FS, name string) (bool, error) {
	if infos, err := vfs.LstatIn(fsys, name, ctxfolder.MetadataFile); err == nil && infos[0] != nil {
		return false, nil // most folders are contexts
	}
	return hasFormat(fsys, name, legacy.Split)
}

// hasFormat reports whether there is a file or folder of a format.
func hasFormat(fsys vfs.FS, name string, f legacy.Format) (bool, error) {
	format, err := legacy.Detect(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err == nil && format == f, err
}
