package engine

import (
	"context"
	"errors"
	"io/fs"
	"path"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/blob"
)

// SetAside moves whatever takes the place of a blob, or of a folder of blobs, to the store's trash. The lock admits one
// writer at a time: a slow writer must not move the blob that a faster writer has put there meanwhile.
func (s *Store) SetAside(name string) error {
	lock := s.FS.Lock(storeLock)
	defer lock.Close()
	if err := s.Acquire(context.Background(), lock); err != nil {
		return err
	}
	defer lock.Release()
	info, err := s.FS.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || blob.InOrder(name, info) {
		return err
	}
	base := path.Base(name)
	item := ctxfolder.TrashItem{Kind: ctxfolder.TrashDamaged, Name: base}
	_, err = ctxfolder.IntoTrash(s.FS, item, func(folder string) error { return s.FS.Rename(name, folder+"/"+base) })
	return err
}
