package engine

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/google/uuid"
)

// Entry is the file or folder in the store under the id of a context.
type Entry struct {
	ID     uuid.UUID
	Folder bool // a folder, of a context or a split legacy one; else a file
}

// Entries yields whatever may be a context, each id once, in ascending order, even while it is being migrated.
func (s *Store) Entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		const (
			backup = iota // only a backup of a migrated context, which is none
			file
			folder
		)
		kinds := map[uuid.UUID]int{}
		for e, err := range s.FS.ReadDir(".") {
			if err != nil {
				yield(Entry{}, Wrap(Error{Op: "list", Path: s.path}, err))
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
				_ = s.Settle(context.Background(), id) // opening the context reports what is wrong
				if info, err := s.FS.Lstat(id.String()); err == nil && info.IsDir() {
					kind = folder
				}
			}
			if kind != backup && !yield(Entry{id, kind == folder}, nil) {
				return
			}
		}
	}
}

func compareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }
