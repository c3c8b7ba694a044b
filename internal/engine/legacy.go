package engine

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/legacy"
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
	switch name, ok := s.legacyAt(id); {
	case !ok:
		return ""
	case name == id.String():
		return LegacySplit
	}
	return LegacyFile
}

// legacyAt returns the name of the legacy file or folder in the store for a context of that id.
func (s *Store) legacyAt(id uuid.UUID) (name string, ok bool) {
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

// entry is the file or folder in the store under the id of a context.
type entry struct {
	id     uuid.UUID
	folder bool // a folder, of a context or a split legacy one; else a file
}

// entries yields whatever may be a context, each id once, in ascending order, even while it is being migrated.
func (s *Store) entries() iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		const (
			backup = iota // only a backup of a migrated context, which is none
			file
			folder
		)
		kinds := map[uuid.UUID]int{}
		for e, err := range s.FS.ReadDir(".") {
			if err != nil {
				yield(entry{}, Wrap(Error{Op: "list", Path: s.path}, err))
				return
			}
			if id, ok := ctxfolder.ParseID(e.Name()); ok && e.IsDir() {
				kinds[id] = folder
			} else if stem, ok := legacy.NamedAfterContext(legacy.Original(e.Name())); ok && e.Type().IsRegular() {
				id, kind := uuid.MustParse(stem), file
				if legacy.IsBackup(e.Name()) {
					kind = backup
				}
				kinds[id] = max(kinds[id], kind)
			} else if id, ok := ctxfolder.ParseID(legacy.Original(e.Name())); ok && e.IsDir() {
				kinds[id] = max(kinds[id], backup)
			}
		}
		ids := slices.SortedFunc(maps.Keys(kinds), compareIDs)
		for _, id := range ids {
			kind := kinds[id]
			if kind != folder {
				_ = s.settle(context.Background(), id) // opening the context reports what is wrong
				if info, err := s.FS.Lstat(id.String()); err == nil && info.IsDir() {
					kind = folder
				}
			}
			if kind != backup && !yield(entry{id, kind == folder}, nil) {
				return
			}
		}
	}
}

// readLegacy reads the row of a legacy context in a list. It is not listed if it is not a legacy context after all.
func (row *listRow) readLegacy(s *Store, name string) {
	before, _ := s.legacyFileStates(name)
	if r := row.known.decoded(); r != nil && r.Format != "" && r.isOf(before) {
		row.reuse(r)
		return
	}
	sum := Summary{ID: row.id}
	info, err := s.FS.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		sum.Format, err = legacy.Detect(s.FS, name)
		if err == nil && !sum.Format.Legacy() {
			return
		}
		sum.Bytes, sum.CreatedAt, sum.UpdatedAt = info.Size(), info.ModTime().UTC(), info.ModTime().UTC()
	}
	if err == nil {
		err = s.summariseLegacy(&sum, name)
	}
	if err != nil {
		sum.Problem = Wrap(Error{Op: "read", Path: name}, err)
	}
	now, looked := s.legacyFileStates(name)
	row.set(sum)
	row.keep(before, now, looked, "")
}

func (s *Store) summariseLegacy(sum *Summary, name string) error {
	f, err := legacy.Open(s.FS, name, legacy.Options{Limit: s.Options.MaxMessage})
	if err != nil {
		return err
	}
	defer f.Close()
	sum.Title, _ = legacy.Text(f.Members.Get("title"))
	sum.ActiveBranch, _ = legacy.Text(f.Members.Get("active_branch_name"))
	sum.Branches, sum.Messages, sum.Bytes = len(f.Branches), int64(f.Len()), f.Size
	return nil
}
