package engine

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// latest returns the current time, or a later one in the context: with a clock that was set back, a new item must not
// look old.
func (s *Store) latest(ctx context.Context, id uuid.UUID) time.Time {
	c, err := s.Open(ctx, id)
	if err != nil {
		return s.Now()
	}
	defer c.Close()
	return c.RemovalTime(c.Current())
}

// ItemID returns the id of the item with this path.
func ItemID(path string) uuid.UUID {
	id, _ := ctxfolder.ParseID(path[strings.LastIndexByte(path, '/')+1:])
	return id
}

// Delete moves a whole context, also a legacy one, to the store's trash. It waits for writers. It fails with
// [ErrNotExist].
//
// Crash order: the item's note is durable before the context's folder is renamed into the item. The rename moves the
// context; the syncs of both folders make it durable.
func (s *Store) Delete(ctx context.Context, id uuid.UUID) (TrashItem, error) {
	t, err := s.delete(ctx, id)
	if err == nil {
		err = s.ForgetDerived(ctx, id)
	}
	return t, Wrap(Error{Op: "delete", Context: id}, err)
}

// TrashItem is an item in a trash, or the result of moving one there.
type TrashItem struct {
	Context   uuid.UUID
	Path      string // relative to the store
	Bytes     int64  // size of the files
	Reason    string
	Item      uuid.UUID // the item's id, for a restore or a purge
	Kind      string    // "context", "line", "version", "blobs", "tail" or "damaged"; empty when the item does not say
	Name      string    // of the removed thing: the name of a branch or a file
	RemovedAt time.Time
	Problem   error        // why the item cannot be read or restored
	Line      *RemovedLine // of an item of the kind "line"
}

// RemovedLine describes a line that no branch has any more, in the trash.
type RemovedLine struct {
	Why        string // the branch was "rewound" or "removed", or nothing says how the line lost its name: "unnamed"
	First, End int64  // the positions of its messages that no branch shows
	From       string // the branch that shares the most messages with the line; empty for none
	Shared     int64  // number of messages that both begin with
}

func (s *Store) delete(ctx context.Context, id uuid.UUID) (TrashItem, error) {
	if s.ReadOnly {
		return TrashItem{}, ErrReadOnly
	}
	s.Forget(id)
	switch format, err := s.Legacy(id); {
	case err != nil:
		return TrashItem{}, err
	case format == LegacyFile:
		return s.deleteLegacy(ctx, id)
	}
	dir, err := ctxfolder.Open(s.FS, s.id, id)
	if err != nil {
		return TrashItem{}, err
	}
	defer dir.Close()
	if err := s.Acquire(ctx, dir.Lock); err != nil {
		return TrashItem{}, err
	}
	defer dir.Lock.Release()
	t, err := s.DeleteLocked(ctx, dir)
	if err == nil {
		s.NoteChange(id) // another context can get the id
	}
	return t, err
}

// DeleteLocked is delete for a caller that holds the context's lock.
func (s *Store) DeleteLocked(ctx context.Context, dir *ctxfolder.Dir) (TrashItem, error) {
	if err := dir.Check(); err != nil {
		return TrashItem{}, err
	}
	if err := s.awaitFiles(ctx, dir); err != nil {
		return TrashItem{}, err
	}
	id := dir.ID
	return s.moveToTrash(ctxfolder.TrashItem{Name: id.String(), Context: id, RemovedAt: s.latest(ctx, id)}, vfs.TreeSize(dir.FS, "."))
}

// moveToTrash moves a context, also a legacy one, by its name in the store. The caller holds the context's lock.
func (s *Store) moveToTrash(removed ctxfolder.TrashItem, size int64) (TrashItem, error) {
	removed.Kind = ctxfolder.TrashContext
	item, err := ctxfolder.IntoTrash(s.FS, removed, func(folder string) error { return s.FS.Rename(removed.Name, folder+"/"+removed.Name) })
	if err != nil {
		return TrashItem{}, err
	}
	return TrashItem{
		Context: removed.Context, Path: item + "/" + removed.Name, Bytes: size, Reason: "removed",
		Item: ItemID(item), Kind: removed.Kind, Name: removed.Name, RemovedAt: removed.RemovedAt,
	}, s.FS.SyncDir(".")
}

// deleteLegacy is delete for a legacy context that is a file.
func (s *Store) deleteLegacy(ctx context.Context, id uuid.UUID) (TrashItem, error) {
	lock := s.FS.Lock(ctxfolder.Locks + "/" + id.String())
	defer lock.Close()
	if err := s.Acquire(ctx, lock); err != nil {
		return TrashItem{}, err
	}
	defer lock.Release()
	name := id.String() + ".json"
	info, err := s.FS.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return TrashItem{}, ErrGone // it was migrated meanwhile
	}
	if err != nil {
		return TrashItem{}, err
	}
	return s.moveToTrash(ctxfolder.TrashItem{Name: name, Context: id, RemovedAt: s.Now()}, info.Size())
}
