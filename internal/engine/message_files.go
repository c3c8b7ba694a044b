package engine

import (
	"sync/atomic"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"golang.org/x/sync/errgroup"
)

// messageFiles are the message files of an append in progress. A file that cannot be made, on a full disk for example,
// is no error: the journal holds the message, and the next fold makes the file.
type messageFiles struct {
	folder *ctxfolder.Folder // nil where the folder cannot be made
	staged []vfs.Staged      // nil where a file could not be written
	done   errgroup.Group
}

// writers bounds the message files of one append that are written concurrently.
const writers = 8

// stage starts writing the files of the messages among the first written items.
func (a *appendOp) stage(written int) *messageFiles {
	f := &messageFiles{folder: a.folder, staged: make([]vfs.Staged, written)}
	if f.folder == nil {
		return f
	}
	var next atomic.Int64
	workers := min(writers, written)
	if a.b.c.Store.Options.inOrder {
		workers = min(1, written)
	}
	for range workers {
		f.done.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= written {
					return nil
				}
				it := &a.items[i]
				if it.Kind != index.KindAppend {
					continue
				}
				f.staged[i], _ = f.folder.Stage(it.Envelope.FileID(), it.Body, it.Envelope.StoredAt)
			}
		})
	}
	if a.b.c.Store.Options.inOrder {
		_ = f.done.Wait()
	}
	return f
}

// create gives the files their names.
func (f *messageFiles) create() { f.finish(func(s vfs.Staged) { _ = s.Create() }) }

func (f *messageFiles) discard() { f.finish(vfs.Staged.Discard) }

func (f *messageFiles) finish(each func(vfs.Staged)) {
	_ = f.done.Wait()
	for _, s := range f.staged {
		if s != nil {
			each(s)
		}
	}
	if f.folder != nil {
		f.folder.Release()
	}
}
