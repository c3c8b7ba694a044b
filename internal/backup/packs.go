package backup

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// packs copies the packs and returns their ids.
func (b *copier) packs(ctx context.Context) ([]uuid.UUID, error) {
	packs, err := b.c.Log.Packs()
	if err != nil || len(packs) == 0 {
		return nil, err
	}
	if err := b.staged.Mkdir(ctxfolder.Archive); err != nil {
		return nil, err
	}
	for _, id := range packs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := b.copyFile(ctxfolder.Archive + "/" + archive.FileName(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return packs, nil
}

// copyFile copies an immutable file of the context's folder.
func (b *copier) copyFile(path string) error {
	from, err := b.c.Dir.FS.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := b.staged.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	if err = vfs.CopyData(to, from); err == nil {
		err = to.Sync()
	}
	return errors.Join(err, to.Close())
}
