package backup

import (
	"cmp"
	"context"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Result is the result of a backup.
type Result struct {
	Context  uuid.UUID
	Path     string // of the copy, relative to its store
	Messages int64
	Bytes    int64 // of the messages
	Missing  int64 // unavailable messages and payloads
	Problem  error // why the first of those is unavailable, nil if there is none
	Current  bool  // nothing was copied: the other store has a copy of this state
}

// copier is the state of one backup.
type copier struct {
	c       *engine.Context
	to      *engine.Store
	id      uuid.UUID    // of the copy
	ix      *index.Index // that has the messages
	kept    bool         // the copy has the logs of ix, with their payloads
	staged  vfs.FS
	folders map[string]vfs.FS // of the copy, by name
	seen    map[blob.Sum]bool
	blobs   map[blob.Sum]bool // that were stored without a sync
	done    Result
}

func newCopier(c *engine.Context, to *engine.Store, id uuid.UUID) *copier {
	return &copier{c: c, to: to, id: id, folders: map[string]vfs.FS{}, seen: map[blob.Sum]bool{}, blobs: map[blob.Sum]bool{}}
}

// staging runs f with the lock of the copy, and its folder in staging/. If f fails, staging removes the folder.
func (b *copier) staging(ctx context.Context, f func() error) error {
	lock := b.to.FS.Lock(ctxfolder.Locks + "/" + b.id.String())
	defer lock.Close()
	if err := b.to.Acquire(ctx, lock); err != nil {
		return err
	}
	defer lock.Release()
	err := b.begin()
	if err == nil {
		err = f()
	}
	for _, f := range b.folders {
		_ = f.Close()
	}
	if b.staged != nil {
		_ = b.staged.Close()
	}
	if err != nil {
		_ = vfs.RemoveAll(b.to.FS, ctxfolder.StagingFolder(b.id))
	}
	return err
}

// begin makes the folder of the copy again.
func (b *copier) begin() (err error) {
	folder := ctxfolder.StagingFolder(b.id)
	if err := vfs.RemoveAll(b.to.FS, folder); err != nil {
		return err
	}
	if b.staged != nil {
		_ = b.staged.Close()
	}
	for _, dir := range []string{folder, folder + "/" + ctxfolder.Messages} {
		if err := b.to.FS.Mkdir(dir); err != nil {
			return err
		}
	}
	b.staged, err = b.to.FS.Sub(folder)
	return err
}

func (b *copier) countMissing(err error) {
	b.done.Missing++
	b.done.Problem = cmp.Or(b.done.Problem, err)
}
