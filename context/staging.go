package context

import (
	stdcontext "context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// StagingFolder returns the path, in the store's folder, where a context is staged.
func StagingFolder(id uuid.UUID) string { return Staging + "/" + id.String() }

// Create makes the folder of a context, whole or not at all: it stages the folder, makes it durable and renames it. It
// fails with ErrExist when the id is taken.
//
// Crash order: before the rename there is only a folder in staging/, which SweepStaging removes. After it there is the
// whole context. Its log is durable already; metadata.json is not, and readers do without it. The last step, the sync of
// the store's folder, makes the name durable.
func Create(ctx stdcontext.Context, store vfs.FS, m *Metadata, begin func(folder vfs.FS) error) error {
	name := m.ID.String()
	lock := store.Lock(Locks + "/" + name)
	defer lock.Close()
	// The lock marks the staging folder as in use, for a sweep and for another creation of this id.
	if err := lock.Acquire(ctx); err != nil {
		return err
	}
	defer lock.Release()
	if err := IsFree(store, m.ID); err != nil {
		return err
	}
	staged := Staging + "/" + name
	if err := vfs.RemoveAll(store, staged); err != nil {
		return err
	}
	err := stage(store, staged, m, begin)
	if err == nil {
		err = PublishNew(store, m.ID)
	}
	if err != nil {
		_ = vfs.RemoveAll(store, staged)
	}
	return err
}

func stage(store vfs.FS, staged string, m *Metadata, begin func(folder vfs.FS) error) error {
	encoded, err := m.Encode()
	if err != nil {
		return err
	}
	if err := store.Mkdir(staged); err != nil {
		return err
	}
	folder, err := store.Sub(staged)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := folder.Mkdir(Messages); err != nil {
		return err
	}
	if err := vfs.WriteNew(folder, MetadataFile, encoded); err != nil {
		return err
	}
	if err := begin(folder); err != nil { // last: one commit of the file system serves all
		return err
	}
	return folder.SyncDir(".")
}

// IsFree fails with ErrExist if the id of a new context is taken. The caller holds the context's lock.
func IsFree(store vfs.FS, id uuid.UUID) error {
	_, err := store.Lstat(id.String())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil:
		err = fmt.Errorf("%w: %s", ErrExist, id)
	}
	return err
}

// PublishNew moves a whole, durable staged context into its place, which is free. The caller holds the context's lock.
//
// Crash order: the rename is the only step, and the sync of the store's folder makes it durable.
func PublishNew(store vfs.FS, id uuid.UUID) error {
	staged, name := StagingFolder(id), id.String()
	err := store.Rename(staged, name)
	if err != nil {
		return err
	}
	if err = store.SyncDir("."); err != nil {
		// A crash can still take the name away, so no process may use the context. If this rename fails too, only the name is
		// not durable.
		_ = store.Rename(name, staged)
	}
	return err
}

// Publish moves a whole, durable staged context into its place. What occupies the place moves to the trash. The caller
// holds the context's lock.
//
// Crash order: two renames are not atomic. So the staged folder first gets a name, durably, that marks it as ready. If
// a crash follows the removal of the old context, SweepStaging publishes the new one. While the old one is in its
// place, it counts.
func Publish(store vfs.FS, id uuid.UUID) error {
	return publish(store, id, func(name string) error {
		item := TrashItem{Kind: TrashContext, Name: name, Context: id}
		_, err := IntoTrash(store, item, func(folder string) error { return store.Rename(name, folder+"/"+name) })
		return err
	})
}

// PublishBeside is Publish that renames the old occupant within the store's folder, and then calls may. If may
// fails or the name is taken (fs.ErrExist), the occupant keeps its place.
func PublishBeside(store vfs.FS, id uuid.UUID, old string, may func() error) error {
	return publish(store, id, func(name string) error {
		err := store.RenameNew(name, old)
		if err == nil {
			if err = may(); err == nil {
				return store.SyncDir(".")
			}
			// The old name is durable before the new context goes: otherwise a crash could publish the new one.
			err = errors.Join(err, store.RenameNew(old, name), store.SyncDir("."))
		}
		_ = vfs.RemoveAll(store, StagingFolder(id)+readyEnd)
		return err
	})
}

func publish(store vfs.FS, id uuid.UUID, away func(name string) error) error {
	name := id.String()
	ready := StagingFolder(id) + readyEnd
	if err := vfs.RemoveAll(store, ready); err != nil {
		return err
	}
	if err := store.Rename(StagingFolder(id), ready); err != nil {
		return err
	}
	if err := store.SyncDir(Staging); err != nil {
		return err
	}
	switch taken, err := vfs.Exists(store, name); {
	case err != nil:
		return err
	case taken:
		if err := away(name); err != nil {
			return err
		}
	}
	return putReady(store, id)
}

func putReady(store vfs.FS, id uuid.UUID) error {
	if err := store.Rename(StagingFolder(id)+readyEnd, id.String()); err != nil {
		return err
	}
	if err := store.SyncDir(Staging); err != nil {
		return err
	}
	return store.SyncDir(".")
}

// SweepStaging removes what unfinished creations left behind, and publishes ready contexts whose places are free. It
// skips a running creation, which holds its context's lock.
func SweepStaging(store vfs.FS) error {
	var names []string
	for e, err := range store.ReadDir(Staging) {
		if err != nil {
			return err
		}
		names = append(names, e.Name())
	}
	for _, name := range names {
		plain, ready := strings.CutSuffix(name, readyEnd)
		id, ok := ParseID(plain)
		if !ok {
			continue
		}
		lock := store.Lock(Locks + "/" + plain)
		if ok, _ := lock.TryAcquire(); ok {
			if err := sweepStaged(store, id, name, ready); err != nil {
				_ = lock.Close()
				return err
			}
			_ = lock.Release()
		}
		_ = lock.Close()
	}
	return nil
}

// Ready reports whether a context is about to be published. Its place may be empty for a moment.
func Ready(store vfs.FS, id uuid.UUID) (bool, error) {
	return vfs.Exists(store, StagingFolder(id)+readyEnd)
}

// Settle publishes a ready context. The caller holds the context's lock.
func Settle(store vfs.FS, id uuid.UUID) error {
	if ready, err := Ready(store, id); err != nil || !ready {
		return err
	}
	return sweepStaged(store, id, id.String()+readyEnd, true)
}

func sweepStaged(store vfs.FS, id uuid.UUID, name string, ready bool) error {
	if info, err := store.Lstat(Staging + "/" + name); err != nil || !info.IsDir() {
		return err // not a staged context
	}
	_, err := store.Lstat(id.String())
	switch {
	case ready && errors.Is(err, fs.ErrNotExist):
		return putReady(store, id)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return vfs.RemoveAll(store, Staging+"/"+name)
}
