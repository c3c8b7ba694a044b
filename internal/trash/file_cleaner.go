package trash

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// fileCleaner removes the message files of the messages that an item in a context's trash holds. It looks in the folder
// that the line has, or had when it was cut, and then in all others: a branch may have been renamed since, while its
// line was already forgotten.
type fileCleaner struct {
	c       *engine.Context
	item    string
	info    *ctxfolder.TrashItem
	m       *engine.Metadata              // as of the start
	left    map[uuid.UUID]message.Address // messages whose files are not found yet, by file name
	torn    map[string][]uuid.UUID        // files that hold no message, by folder
	cleared map[string]bool               // folders that may have held such files
}

// run looks for the files once. It holds the fold lock: a settle of a journal from before the cut would make them
// again.
func (x *fileCleaner) run(ctx context.Context) error {
	dir := x.c.Dir
	if err := x.c.Store.Acquire(ctx, dir.FoldLock); err != nil {
		return err
	}
	defer dir.FoldLock.Release()
	x.cleared = map[string]bool{x.info.Folder: true}
	if l, ok := x.m.Line(x.info.Line); ok {
		x.cleared[l.Folder] = true
	}
	if err := x.searchExpected(ctx); err != nil {
		return err
	}
	if len(x.left) > 0 {
		if err := x.searchElsewhere(ctx); err != nil {
			return err
		}
	}
	if err := x.removeTorn(ctx); err != nil {
		return err
	}
	for folder := range x.cleared {
		if err := dir.FS.SyncDir(ctxfolder.Messages + "/" + folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// searchExpected looks for the files where they should be.
func (x *fileCleaner) searchExpected(ctx context.Context) error {
	for k, err := range itemMessages(x.c.Dir.FS, x.item, x.info) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if k.Gap != nil {
			continue
		}
		counts, err := x.wasRestored(k)
		if err != nil {
			return err
		}
		if counts {
			continue
		}
		file := k.FileID()
		x.left[file] = k.Address()
		for folder := range x.cleared {
			if err := x.remove(folder, file); err != nil {
				return err
			}
		}
	}
	return nil
}

// wasRestored reports whether a message was put back: its line has it at its position again.
func (x *fileCleaner) wasRestored(k *itemMessage) (bool, error) {
	counts, ok, err := x.c.Log.Counts(x.info.Line)
	if err != nil || !ok || k.Position >= counts.End() {
		return false, err
	}
	now, err := x.c.Log.Entries(x.info.Line, k.Position, k.Position+1)
	return len(now) == 0 || now[0].ID == k.ID, err
}

// searchElsewhere looks in the other folders.
func (x *fileCleaner) searchElsewhere(ctx context.Context) error {
	folders, err := x.c.Dir.Folders()
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if x.cleared[folder] {
			continue
		}
		var found []uuid.UUID
		err := x.c.Dir.MessageIDs(folder, func(file uuid.UUID) error {
			if _, left := x.left[file]; left {
				found = append(found, file)
			}
			return ctx.Err()
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, file := range found {
			if err := x.remove(folder, file); err != nil {
				return err
			}
		}
		if len(found) > 0 {
			x.cleared[folder] = true
		}
	}
	return nil
}

// remove removes the file of a wanted message from a folder, if it holds that. It notes a file that holds no message.
func (x *fileCleaner) remove(folder string, file uuid.UUID) error {
	wanted, left := x.left[file]
	if !left {
		return nil
	}
	return x.c.Dir.RemoveMessage(folder, file, func(raw []byte) bool {
		there, err := message.Parse(raw)
		if errors.Is(err, message.ErrVersion) {
			return false
		}
		if err != nil {
			x.torn[folder] = append(x.torn[folder], file)
			return false
		}
		if there.ID != wanted.ID || there.Line != wanted.Line || there.Position != wanted.Position {
			return false
		}
		delete(x.left, file)
		return true
	})
}

// removeTorn removes files that hold no message, as after a crash, except where a committed message has that file.
func (x *fileCleaner) removeTorn(ctx context.Context) error {
	for folder, files := range x.torn {
		for _, l := range x.m.Lines {
			counts, ok, err := x.c.Log.Counts(l.ID)
			if err != nil {
				return err
			}
			if !ok || l.Folder != folder {
				continue
			}
			for e, err := range x.c.Log.All(ctx, l.ID, counts.Base, counts.End()) {
				if err != nil {
					return err
				}
				files = slices.DeleteFunc(files, func(file uuid.UUID) bool { return file == e.FileID() })
			}
		}
		for _, file := range files {
			if err := x.c.Dir.RemoveMessage(folder, file, func(raw []byte) bool {
				_, err := message.Parse(raw)
				return err != nil
			}); err != nil {
				return err
			}
		}
	}
	return nil
}
