package migrate

import (
	"os"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// scratchStore makes a store for temporary contexts: in staging/, where a sweep removes leftovers, or in the temporary
// folder where staging/ is not writable or the store is read-only. remove closes and removes the store.
func scratchStore(like *engine.Store) (s *engine.Store, remove func(), err error) {
	opts := []engine.Option{
		engine.WithDurability(engine.Relaxed), engine.WithSealBytes(-1), engine.WithTextThreshold(like.TextThreshold()),
		engine.WithMaxMessage(like.Options.MaxMessage), engine.WithPool(like.Options.Pool),
	}
	in, drop, err := scratchFolder(like)
	if err == nil {
		if s, err = engine.Init(ctxfolder.Staging, append(opts, engine.WithFS(in))...); err == nil {
			return s, func() { _ = s.Close(); drop() }, nil
		}
		drop()
	}
	dir, err := os.MkdirTemp("", "ctxdir-")
	if err != nil {
		return nil, nil, err
	}
	if s, err = engine.Init(dir, opts...); err != nil {
		_ = os.RemoveAll(dir)
		return nil, nil, err
	}
	return s, func() {
		_ = s.Close()
		_ = os.RemoveAll(dir)
	}, nil
}

// scratchFolder makes a folder in staging/. A lock marks it as in use, like that of a context in the making.
func scratchFolder(like *engine.Store) (in vfs.FS, drop func(), err error) {
	if like.ReadOnly {
		return nil, nil, engine.ErrReadOnly
	}
	store, id := like.FS, uuid.New()
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
		err = engine.ErrLocked
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
