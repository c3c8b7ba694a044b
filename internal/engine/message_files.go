package engine

import (
	"sync/atomic"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
)

// messageFiles are the message files of an append in progress. A file that cannot be made, on a full disk for example,
// is no error: the journal holds the message, and the next fold makes the file.
type messageFiles struct {
	folders map[uuid.UUID]*ctxfolder.Folder // of the lines; none where a folder cannot be made
	staged  []vfs.Staged                    // nil where a file could not be written
	done    errgroup.Group
}

// writers bounds the message files of one append that are written concurrently.
const writers = 8

// stage starts writing the files of the messages among items.
func (c *Context) stage(items []index.Item, folders map[uuid.UUID]*ctxfolder.Folder) *messageFiles {
	f := &messageFiles{folders: folders, staged: make([]vfs.Staged, len(items))}
	if len(folders) == 0 {
		return f
	}
	var next atomic.Int64
	workers := min(writers, len(items))
	if c.Store.Options.inOrder {
		workers = 1
	}
	for range workers {
		f.done.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(items) {
					return nil
				}
				it := &items[i]
				if it.Kind != index.KindAppend || folders[it.Envelope.Line] == nil {
					continue
				}
				f.staged[i], _ = folders[it.Envelope.Line].Stage(it.Envelope.FileID(), it.Body, it.Envelope.StoredAt)
			}
		})
	}
	if c.Store.Options.inOrder {
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
	for _, folder := range f.folders {
		folder.Release()
	}
}
