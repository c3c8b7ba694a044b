package index

import (
	"context"
	"errors"

	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// CopyTo copies the files of the history, of one moment, to the new folder of the context in another store. It syncs
// nothing. The caller holds the lock for sealing; without it, the error wraps fs.ErrNotExist if a segment is gone
// meanwhile. What cannot be read of a segment, the copy has as damaged.
func (ix *Index) CopyTo(ctx context.Context, to Folder) error {
	ix.advance.Lock()
	err := ix.reload()
	var names []string
	if err == nil {
		for _, o := range ix.state.segments.all {
			names = append(names, o.name.File())
		}
		for _, o := range ix.state.logs {
			err = errors.Join(err, o.CopyTo(to.Logs, to.Store))
		}
		if n := len(ix.state.logs); err == nil && n > 0 && ix.state.newest().Next() != "" { // it has not begun
			err = journal.Preallocate(to.Logs, ix.state.newest().Next(), room)
		}
	}
	ix.advance.Unlock()
	for _, name := range names {
		if err == nil {
			err = vfs.CopyFile(ctx, to.Segments, name, ix.dir.Segments, name)
		}
	}
	return err
}
