package index

import (
	stdcontext "context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// ClearLeftovers removes what an interrupted [Log.Arrange] left: the files of archived messages, and unfinished packs.
func (l *Log) ClearLeftovers(ctx stdcontext.Context) error {
	if ids, err := l.Packs(); err != nil || len(ids) == 0 {
		return err
	}
	if err := l.acquire(ctx, l.dir.FoldLock); err != nil {
		return err
	}
	defer l.dir.FoldLock.Release()
	if err := l.fold(ctx, false); err != nil {
		return err
	}
	a := arrangement{log: l}
	if err := a.begin(); err != nil {
		return err
	}
	if err := l.syncIndex(); err != nil {
		return err
	}
	if err := a.clearTemporary(); err != nil {
		return err
	}
	more, err := a.outnumbered()
	if err != nil || len(more) == 0 {
		return err
	}
	return a.clearFiles(ctx, func(ln *foldLine) bool { return len(ln.Packs) > 0 && more[a.work.folders[ln.Line]] })
}

// clearTemporary removes unfinished packs. The caller holds the fold lock, so nobody is writing one.
func (a *arrangement) clearTemporary() error {
	var names []string
	for e, err := range a.log.dir.FS.ReadDir(ctxfolder.Archive) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if strings.HasPrefix(e.Name(), ".") && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	for _, name := range names {
		if err := a.log.remove(ctxfolder.Archive + "/" + name); err != nil {
			return err
		}
	}
	return nil
}

// outnumbered returns the folders that hold more files than their lines have messages with a file.
func (a *arrangement) outnumbered() (map[string]bool, error) {
	room := map[string]int64{}
	for i := range a.work.lines {
		ln := &a.work.lines[i]
		room[a.work.folders[ln.Line]] += ln.End() - ln.first(ln.Base) // its rows
	}
	more := map[string]bool{}
	for folder, left := range room {
		if folder == "" {
			continue // metadata.json does not know the line
		}
		err := a.log.dir.MessageIDs(folder, func(uuid.UUID) error {
			left--
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if left < 0 {
			more[folder] = true
		}
	}
	return more, nil
}

// clearedAtOnce bounds the message files that are removed under one hold of the context lock.
const clearedAtOnce = 256

// clear removes what nothing needs any more: the files of messages in the new pack, and unused packs.
func (a *arrangement) clear(ctx stdcontext.Context) error {
	dir := a.log.dir
	if a.moved.Pack != uuid.Nil {
		if err := a.clearFiles(ctx, func(ln *foldLine) bool { return slices.Contains(ln.Packs, a.moved.Pack) }); err != nil {
			return err
		}
	}
	for _, id := range a.moved.Removed {
		path := ctxfolder.Archive + "/" + archive.FileName(id)
		info, err := dir.FS.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			a.moved.Freed += info.Size()
			remove := dir.FS.Remove
			if slices.Contains(a.plan.Aside, id) {
				remove = dir.SetAside
			} else {
				err = a.log.copyHidden(id, nil)
			}
			if err == nil {
				err = remove(path)
			}
		}
		if err != nil {
			return err
		}
	}
	if len(a.moved.Removed) == 0 {
		return nil
	}
	return dir.FS.SyncDir(ctxfolder.Archive)
}

// clearFiles removes the files of archived messages, in the lines that of selects.
func (a *arrangement) clearFiles(ctx stdcontext.Context, of func(*foldLine) bool) error {
	cleared := map[string]bool{}
	for i := range a.work.lines {
		ln := &a.work.lines[i]
		if !of(ln) {
			continue
		}
		for entries, err := range a.log.storedPages(ln.Line, ln.Base, ln.End()) {
			if err != nil {
				return err
			}
			for some := range slices.Chunk(entries, clearedAtOnce) {
				packed := make([][]byte, len(some))
				a.log.ReadPacked(some, packed)
				err := a.log.underLock(ctx, func(folders map[uuid.UUID]string) error {
					cleared[folders[ln.Line]] = true
					return a.clearFilesOf(folders[ln.Line], ln.Line, some, packed)
				})
				if err != nil {
					return err
				}
			}
		}
	}
	return a.log.underLock(ctx, func(map[uuid.UUID]string) error {
		dir := a.log.dir
		for folder := range cleared {
			if seq, err := a.log.Seq(); err == nil && seq == a.x.Seq { // else a writer may be about to create a file
				if err := dir.RemoveFolder(folder); err != nil {
					return err
				}
			}
			if err := dir.FS.SyncDir(ctxfolder.Messages + "/" + folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return dir.FS.SyncDir(ctxfolder.Messages)
	})
}

// clearFilesOf removes the files of archived messages. It keeps a file that was touched: that is not what was archived.
// It also keeps a file whose message it could not read back from its pack: that is the last copy.
func (a *arrangement) clearFilesOf(folder string, line uuid.UUID, entries []Entry, packed [][]byte) error {
	dir := a.log.dir
	for i := range entries {
		e := &entries[i]
		if packed[i] == nil || folder == "" || a.log.isChanged(line, e.Position) {
			continue
		}
		info, err := dir.StatMessage(folder, e.FileID())
		if err != nil || !ctxfolder.Untouched(info, e.Size, e.StoredAt()) {
			continue
		}
		if err := dir.RemoveMessage(folder, e.FileID(), e.sameAs); err != nil {
			return err
		}
	}
	return nil
}
