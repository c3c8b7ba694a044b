package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// IsWithin reports whether path is the folder in, or is below it. It follows links as far as the paths exist.
func IsWithin(path, in string) (bool, error) {
	_, within, err := RelativePath(path, in)
	return within, err
}

// RelativePath is IsWithin, and also returns the path relative to in.
func RelativePath(path, in string) (rel string, within bool, err error) {
	if path, err = resolved(path); err != nil {
		return "", false, err
	}
	if in, err = resolved(in); err != nil {
		return "", false, err
	}
	rel, err = filepath.Rel(in, path)
	return rel, err == nil && filepath.IsLocal(rel), nil
}

func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for rest := ""; ; path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest) {
		there, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(there, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
			return "", err
		}
	}
}

// SyncTree makes a folder and its contents durable.
func SyncTree(fsys vfs.FS, folder string) error {
	for e, err := range fsys.ReadDir(folder) {
		if err != nil {
			return err
		}
		path := folder + "/" + e.Name()
		if e.IsDir() {
			err = SyncTree(fsys, path)
		} else {
			err = vfs.SyncFile(fsys, path)
		}
		if err != nil {
			return err
		}
	}
	return fsys.SyncDir(folder)
}

// SyncStaged makes a staged context durable, and blobs that were stored without a sync.
func (s *Store) SyncStaged(id uuid.UUID, blobs map[blob.Sum]bool) error {
	if err := s.FS.SyncAll(); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	for sum := range blobs {
		if durable, err := s.Blobs.Share(sum, true); !durable {
			return errors.Join(fmt.Errorf("%w: payload %s", ErrDurability, sum), err)
		}
	}
	return SyncTree(s.FS, ctxfolder.StagingFolder(id))
}

// CreateFile makes a new file for writing. It fails where the path exists.
func CreateFile(fsys vfs.FS, path string) (vfs.File, error) {
	return fsys.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
}
