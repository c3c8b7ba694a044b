package context

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// StagingFolder is where a context is made, below the store's folder.
func StagingFolder(id uuid.UUID) string { return Staging + "/" + id.String() }

// Publish gives a context its place that was staged whole and is durable. What is there already goes to trash. The context's
// lock is held.
//
// Crash order: two renames cannot be one. So the staged folder first gets a name, durably, that says that it is to take its
// place: when the old one is gone from there and the new one not yet there, SweepStaging does the rest. While the old one is
// there, it counts.
func Publish(store vfs.FS, id uuid.UUID) error {
	return publish(store, id, func(name string) error {
		item, err := NewTrash(store, TrashItem{Kind: "context", Name: name, Context: id})
		if err != nil {
			return err
		}
		if err := store.Rename(name, item+"/"+name); err != nil {
			return err
		}
		return store.SyncDir(item)
	})
}

// PublishBeside is Publish that gives what is there already another name in the store's folder, and then asks whether that may be. Where it may
// not, or the name is taken, fs.ErrExist, what is there stays.
func PublishBeside(store vfs.FS, id uuid.UUID, old string, may func() error) error {
	return publish(store, id, func(name string) error {
		err := store.RenameNew(name, old)
		if err == nil {
			if err = may(); err == nil {
				return store.SyncDir(".")
			}
			// Durably, before the new one goes: a crash must not bring it into the place of what lost its name.
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
	if _, err := store.Lstat(name); err == nil {
		if err := away(name); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
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

// SweepStaging removes what creations that did not finish left behind, and puts what was about to take the place of another
// one there, if that is free. One that is still going on holds its context's lock and is passed over.
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

// Ready reports whether a context is about to get its place, which may be empty for a moment.
func Ready(store vfs.FS, id uuid.UUID) bool {
	_, err := store.Lstat(StagingFolder(id) + readyEnd)
	return err == nil
}

// Settle gives a context its place that was about to get it. The context's lock is held.
func Settle(store vfs.FS, id uuid.UUID) error {
	if !Ready(store, id) {
		return nil
	}
	return sweepStaged(store, id, id.String()+readyEnd, true)
}

func sweepStaged(store vfs.FS, id uuid.UUID, name string, ready bool) error {
	if info, err := store.Lstat(Staging + "/" + name); err != nil || !info.IsDir() {
		return err // nothing of ours
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
