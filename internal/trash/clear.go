package trash

import (
	"errors"
	"fmt"
	"io/fs"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
)

// clearFolder removes from a context's folder what may hold what a purge removed, other than the history and the files of
// messages: what interrupted writers left, the folders of lines that are gone, and older views. What another history has
// moves to the trash. The caller holds the locks of the context.
func clearFolder(c *engine.Context, cut []ctxfolder.CutLine) error {
	folders, err := messageFolders(c.Dir.FS)
	if err != nil {
		return err
	}
	if err := ClearTemporaries(c.Dir.FS, append(folders, ".", ctxfolder.Segments)...); err != nil {
		return err
	}
	if err := removeFolders(c, cut); err != nil {
		return err
	}
	if err := trashUnlinked(c); err != nil {
		return err
	}
	if err := c.Dir.FS.SyncDir(ctxfolder.Segments); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	summary, err := c.Index.Summary()
	if err == nil {
		err = c.Dir.ReplaceView(ctxfolder.IndexFile, summary)
	}
	if err == nil {
		_, err = c.Dir.WriteMetadata(c.Current()) // durably, and the removal of logs with it
	}
	return err
}

// trashUnlinked moves logs and segments of another history to the trash. It fails if the history is damaged: then they may
// be part of it.
func trashUnlinked(c *engine.Context) error {
	unlinked, err := c.Index.Tidy()
	if err != nil || len(unlinked) == 0 {
		return err
	}
	problems, err := c.Index.Problems()
	if err == nil && len(problems) > 0 {
		err = fmt.Errorf("%w: %s; run a repair first", engine.ErrDamaged, problems[0].String())
	}
	for _, path := range unlinked {
		if err == nil {
			err = c.Dir.SetAside(path)
		}
	}
	return err
}
