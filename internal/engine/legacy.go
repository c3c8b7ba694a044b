package engine

import (
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
func (s *Store) Legacy(id uuid.UUID) LegacyFormat {
	switch name, ok := s.LegacyAt(id); {
	case !ok:
		return ""
	case name == id.String():
		return LegacySplit
	}
	return LegacyFile
}

// LegacyAt returns the name of the legacy file or folder in the store for a context of that id.
func (s *Store) LegacyAt(id uuid.UUID) (name string, ok bool) {
	if info, err := s.FS.Lstat(id.String()); err == nil && info.IsDir() {
		return id.String(), IsSplit(s.FS, id.String())
	}
	name = id.String() + ".json"
	if info, err := s.FS.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	format, err := legacy.Detect(s.FS, name)
	return name, err == nil && format == legacy.Monolithic
}

// IsSplit reports whether a folder in the store is a split legacy context.
func IsSplit(fsys vfs.FS, name string) bool {
	if infos, err := vfs.LstatIn(fsys, name, ctxfolder.MetadataFile); err == nil && infos[0] != nil {
		return false // most folders are contexts
	}
	format, err := legacy.Detect(fsys, name)
	return err == nil && format == legacy.Split
}
