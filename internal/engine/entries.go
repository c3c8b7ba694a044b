package engine

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/vfs"
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
				there, err := vfs.IsFolder(s.FS, id.String())
				if err != nil {
					yield(Entry{}, Wrap(Error{Op: "list", Path: s.path}, err))
					return
				}
				if there {
					kind = folder
				}
			}
			if kind != backup && !yield(Entry{id, kind == folder}, nil) {
				return
			}
		}
	}
}

// IDs yields the ids of the contexts in the store, in ascending order, without legacy contexts.
func (s *Store) IDs() iter.Seq2[uuid.UUID, error] {
	return func(yield func(uuid.UUID, error) bool) {
		for e, err := range s.Entries() {
			if err == nil {
				split, serr := IsSplit(s.FS, e.ID.String())
				if serr == nil && (split || !e.Folder) {
					continue
				}
				err = serr
			}
			if !yield(e.ID, err) || err != nil {
				return
			}
		}
	}
}

func compareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }

// Settle waits for a process that is moving a context to its place, empty in between, and finishes an interrupted move.
func (s *Store) Settle(ctx context.Context, id uuid.UUID) error {
	if ready, err := ctxfolder.Ready(s.FS, id); err != nil || !ready {
		return err
	}
	lock := s.FS.Lock(ctxfolder.Locks + "/" + id.String())
	defer lock.Close()
	if err := s.Acquire(ctx, lock); err != nil || s.ReadOnly {
		return err
	}
	return ctxfolder.Settle(s.FS, id)
}

// WasRemoved reports whether a context was removed meanwhile: then nothing is wrong with it.
func (s *Store) WasRemoved(id uuid.UUID) bool {
	_, err := s.FS.Lstat(id.String())
	return errors.Is(err, fs.ErrNotExist)
}
