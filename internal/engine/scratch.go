package engine

import (
	"os"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// scratchStore makes a store for temporary contexts: in staging/, where a sweep removes leftovers, or in the temporary
// folder where staging/ is not writable or the store is read-only. remove closes and removes the store.
func scratchStore(like *Store) (s *Store, remove func(), err error) {
	threshold := like.TextThreshold()
	opts := []Option{
		WithDurability(Relaxed), WithFoldBytes(-1), WithTextThreshold(threshold), WithMaxMessage(like.opts.maxMessage), WithPool(like.opts.pool),
	}
	in, drop, err := scratchFolder(like)
	if err == nil {
		if s, err = Init(ctxfolder.Staging, append(opts, withFS(in))...); err == nil {
			return s, func() { _ = s.Close(); drop() }, nil
		}
		drop()
	}
	dir, err := os.MkdirTemp("", "ctxdir-")
	if err != nil {
		return nil, nil, err
	}
	if s, err = Init(dir, opts...); err != nil {
		_ = os.RemoveAll(dir)
		return nil, nil, err
	}
	return s, func() {
		_ = s.Close()
		_ = os.RemoveAll(dir)
	}, nil
}

// scratchFolder makes a folder in staging/. A lock marks it as in use, like that of a context in the making.
func scratchFolder(like *Store) (in vfs.FS, drop func(), err error) {
	if like.readOnly {
		return nil, nil, ErrReadOnly
	}
	store, id := like.fs, uuid.New()
	folder, name := ctxfolder.StagingFolder(id), ctxfolder.Locks+"/"+id.String()
	lock := store.Lock(name)
	drop = func() {
		if in != nil {
			_ = in.Close()
		}
		_ = vfs.RemoveAll(store, folder)
		_ = store.Remove(name) // only a sweep asks for this lock, and it finds nothing
		_ = lock.Close()
	}
	ok, err := lock.TryAcquire()
	if err == nil && !ok {
		err = ErrLocked
	}
	if err == nil {
		err = store.Mkdir(folder)
	}
	if err == nil {
		in, err = store.Sub(folder)
	}
	if err != nil {
		drop()
		return nil, nil, err
	}
	return in, drop, nil
}
