package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/server/users"
	"github.com/google/uuid"
)

// Stores has the stores of users.
type Stores interface {
	// Open opens the store of a user, and makes it with the first request. The server closes it.
	Open(ctx context.Context, user uuid.UUID) (Store, error)
}

// Store is the store of a user, and where it is.
type Store interface {
	Engine() *ctxdir.Store
	// Size returns how much room the store takes, in bytes.
	Size() (int64, error)
	// Alive returns why nothing works any more until the store is opened anew; nil as long as it works.
	Alive() error
	// Failing returns why the last request to an object store failed; nil if it did not. The store goes on.
	Failing() error
	// Look is Alive after a look at where the store is: another server may have taken it over.
	Look(ctx context.Context) error
	Close() error
}

// Folders keeps a store for each user in a folder. It needs no database.
type Folders string

// Open implements [Stores].
func (dir Folders) Open(_ context.Context, user uuid.UUID) (Store, error) {
	at := filepath.Join(string(dir), filepath.FromSlash(users.StorePath(user)))
	if _, err := os.Stat(filepath.Dir(at)); err != nil { // the user may have been removed since
		return nil, fmt.Errorf("user %s: %w", user, err)
	}
	s, err := ctxdir.Init(at)
	return inFolder{s, at}, err
}

// inFolder is a store in a folder.
type inFolder struct {
	*ctxdir.Store
	path string
}

func (s inFolder) Engine() *ctxdir.Store { return s.Store }
func (s inFolder) Alive() error          { return nil }
func (s inFolder) Failing() error        { return nil }

// Look implements [Store]. Several processes may use a folder.
func (s inFolder) Look(context.Context) error { return nil }

func (s inFolder) Size() (bytes int64, err error) {
	err = filepath.WalkDir(s.path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return ignoreMissing(err)
		}
		info, err := e.Info()
		if err == nil {
			bytes += info.Size()
		}
		return ignoreMissing(err)
	})
	return bytes, err
}

// ignoreMissing is for files that may go meanwhile.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
