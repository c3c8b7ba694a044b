package index

import (
	stdcontext "context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// ClearLeft removes what a stopped [Log.Arrange] left: the message files of archived messages, half-made packs.
func (l *Log) ClearLeft(ctx stdcontext.Context) error {
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
	a := arranging{log: l}
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

// syncIndex makes the name of index.json durable: who replaced it may have been stopped before. What it does not name is of no use only then.
func (l *Log) syncIndex() error {
	if err := l.dir.FS.SyncDir("."); err != nil {
		return fmt.Errorf("%w: %w", ErrDurability, err)
	}
	return nil
}

// clearTemporary removes packs that were not finished. The fold lock is held, so nobody is making one.
func (a *arranging) clearTemporary() error {
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
		if err := a.log.dir.FS.Remove(ctxfolder.Archive + "/" + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// outnumbered returns the folders that have more files than their lines have messages with one.
func (a *arranging) outnumbered() (map[string]bool, error) {
	room := map[string]int64{}
	for i := range a.work.lines {
		ln := &a.work.lines[i]
		room[a.work.folders[ln.Line]] += ln.End() - ln.first(ln.Base) // its rows
	}
	more := map[string]bool{}
	for folder, left := range room {
		if folder == "" {
			continue // of a line that metadata.json does not know
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

// clearedAtOnce is how many message files are removed with the lock held once.
const clearedAtOnce = 256

// clear removes what nobody needs any more: the files of messages in the new pack, and packs.
func (a *arranging) clear(ctx stdcontext.Context) error {
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
				err = a.log.keepHidden(id, nil)
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

// clearFiles removes the message files of what some lines have in packs.
func (a *arranging) clearFiles(ctx stdcontext.Context, of func(*foldLine) bool) error {
	cleared := map[string]bool{}
	for i := range a.work.lines {
		ln := &a.work.lines[i]
		if !of(ln) {
			continue
		}
		for from := ln.Base; from < ln.End(); from += clearedAtOnce {
			entries, err := a.log.stored(ln.Line, from, min(from+clearedAtOnce, ln.End()))
			packed := make([][]byte, len(entries))
			a.log.readPacks(entries, packed)
			if err == nil {
				err = a.log.underLock(ctx, func(folders map[uuid.UUID]string) error {
					cleared[folders[ln.Line]] = true
					return a.clearSome(folders[ln.Line], ln.Line, entries, packed)
				})
			}
			if err != nil {
				return err
			}
		}
	}
	return a.log.underLock(ctx, func(map[uuid.UUID]string) error {
		dir := a.log.dir
		for folder := range cleared {
			if seq, err := a.log.Seq(); err == nil && seq == a.x.Seq { // else a file may be on its way
				dir.RemoveFolder(folder)
			}
			if err := dir.FS.SyncDir(ctxfolder.Messages + "/" + folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return dir.FS.SyncDir(ctxfolder.Messages)
	})
}

// clearSome removes message files of archived messages. One that somebody touched is not what was archived, and one whose message was not
// read back from its pack is the last copy.
func (a *arranging) clearSome(folder string, line uuid.UUID, entries []Entry, packed [][]byte) error {
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
