package engine

import (
	"context"

	"github.com/ctxdir/ctxdir/internal/storefile"
)

// StoreFile is the name of the file that makes a folder a store.
const StoreFile = storefile.Name

// StoreInfo is its content.
type StoreInfo = storefile.Info

// Problem returns why the store opened read-only: an error that wraps [ErrStoreFile], nil for a healthy store.
func (s *Store) Problem() error { return Wrap(Error{Op: "open", Path: s.path}, s.problem) }

// FileProblem is [Store.Problem] without the path of the store.
func (s *Store) FileProblem() error { return s.problem }

// Settings are the settings in ctxdir.json.
type Settings = storefile.Settings

// maxPool bounds the setting of the pool, in bytes: ctxdir.json may come from anyone.
const maxPool = 1 << 30

// ReadSettings reads the settings as they are now; they may have changed since the store was opened.
func (s *Store) ReadSettings() (Settings, error) {
	if s.problem != nil {
		return Settings{}, nil // the store opened without them
	}
	info, err := storefile.Read(s.FS)
	return info.Settings, Wrap(Error{Op: "read settings of", Path: s.path}, err)
}

// Configure changes the settings in ctxdir.json. Collections apply them from then on, in every process. An open store
// keeps its text threshold.
//
// Crash order: none. ctxdir.json is replaced durably: it has the old settings or the new ones.
func (s *Store) Configure(ctx context.Context, change func(*Settings) error) error {
	return Wrap(Error{Op: "configure", Path: s.path}, s.configure(ctx, change))
}

func (s *Store) configure(ctx context.Context, change func(*Settings) error) error {
	if s.ReadOnly {
		return ErrReadOnly
	}
	lock := s.FS.Lock(storeLock)
	defer lock.Close()
	if err := s.Acquire(ctx, lock); err != nil {
		return err
	}
	defer lock.Release()
	return storefile.Configure(s.FS, change)
}
