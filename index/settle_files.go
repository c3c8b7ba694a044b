package index

import (
	stdcontext "context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// mendedAtOnce is how many files mend writes before it releases the context lock for others.
const mendedAtOnce = 4

// mend writes the files that are not right, under the context lock: since the look, a branch may have been renamed and
// a message replaced. If a file cannot be written, its journal is stuck, and mend writes the others.
func (s *settleRun) mend(locked func(func(folders map[uuid.UUID]string) error) error) error {
	for line, entries := range s.wrong {
		for some := range slices.Chunk(entries, mendedAtOnce) {
			err := locked(func(folders map[uuid.UUID]string) error {
				s.folders = folders
				return s.mendSome(line, some)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *settleRun) mendSome(line uuid.UUID, entries []Entry) error {
	for i := range entries {
		if !s.log.state.has(line, entries[i].Position) {
			continue // the line was cut meanwhile
		}
		e, err := s.log.state.entryAt(line, entries[i].Position)
		if err != nil {
			return err
		}
		if err := s.message(s.folders[line], &e); err != nil && s.stuck[e.gen] == nil {
			s.stuck[e.gen] = fmt.Errorf("message %s cannot be written to its file: %w", e.ID, err)
		}
	}
	return nil
}

// underLock runs f with the context lock and advance held, the log up to date, and the lines' folders from
// metadata.json. The caller holds the fold lock.
func (l *Log) underLock(ctx stdcontext.Context, f func(folders map[uuid.UUID]string) error) error {
	if err := l.acquire(ctx, l.dir.Lock); err != nil {
		return err
	}
	defer l.dir.Lock.Release()
	if err := l.dir.Check(); err != nil {
		return err
	}
	l.advance.Lock()
	defer l.advance.Unlock()
	if err := l.catchUp(); err != nil {
		return err
	}
	if l.state.unsaved {
		return fmt.Errorf("%w: the index was found damaged meanwhile", ErrBusy)
	}
	return f(l.state.folders())
}

// message makes sure that a message's file exists. It keeps a right or edited one, rewrites any other from the journal,
// and reads it back. Old content moves to the trash, unless a crash left it. The caller holds the context lock.
//
// Crash order: the journal has the message until the file is durable.
func (s *settleRun) message(folder string, e *Entry) error {
	dir := s.log.dir
	_, is, why := e.ReadFile(dir, folder)
	if !s.keepsFile(is, e) {
		b, ok := s.log.ReadRecord(e)
		if at, known := s.copies[bodyKey{e.Size, e.Sum}]; !ok && known { // a later journal repeats it
			copied := *e
			copied.gen, copied.off = at.gen, at.off
			b, ok = s.log.ReadRecord(&copied)
		}
		switch {
		case !ok && s.whole[recordAt{e.gen, e.off, e.Sum}]:
			return fmt.Errorf("its record in %s could be read before but not now", ctxfolder.JournalFile(e.gen))
		case !ok:
			return nil // both copies are damaged, or the row is of another history: the row stays, reading reports it
		case folder == "":
			return errors.New("metadata.json does not name the folder of its line")
		case errors.Is(why, ctxfolder.ErrVersion):
			return why
		}
		if err := dir.MakeFolderWay(folder); err != nil {
			return err
		}
		if is == FileDamaged && !s.torn(folder, e, b) {
			if err := s.log.trash(dir.MessagePath(folder, e.FileID())); err != nil {
				return err // MakeFolderWay has moved a link in place of the folder
			}
			is = FileMissing
		}
		write := dir.ReplaceMessage
		if is == FileMissing {
			write = dir.CreateMessage
		}
		if err := write(folder, e.FileID(), b, e.StoredAt()); err != nil {
			return err
		}
		if _, is, why := e.ReadFile(dir, folder); is != FileExact && is != FileEdited {
			return why
		}
	}
	s.wrote[folder] = append(s.wrote[folder], e.FileID())
	return nil
}

// torn reports whether a damaged file holds only bytes of the message, in their places, and zero bytes: so a crash
// leaves a file that is not durable yet.
func (s *settleRun) torn(folder string, e *Entry, record []byte) bool {
	info, err := s.log.dir.StatMessage(folder, e.FileID())
	if err != nil || !info.Mode().IsRegular() || info.Size() > e.Size+1 {
		return false
	}
	raw, _, err := s.log.dir.ReadMessage(folder, e.FileID())
	for i, b := range raw {
		if b != 0 && (i >= len(record) || b != record[i]) {
			return false
		}
	}
	return err == nil
}

// keepsFile reports whether a settle leaves a file alone.
func (s *settleRun) keepsFile(is FileState, e *Entry) bool {
	return is == FileEdited || is.Whole() && e.off >= s.found(e.gen)
}

func (s *settleRun) fileState(folder string, e *Entry) FileState {
	_, is, _ := e.ReadFile(s.log.dir, folder)
	return is
}

// sync makes files, folders and blobs durable, if possible with one call, which also flushes other programs' writes to
// the same file system. Otherwise it syncs them one by one, and blobs syncs the blobs.
func (s *settleRun) sync(blobs func() error) error {
	fsys := s.log.dir.FS
	if err := s.log.dir.SyncAll(&s.log.failures); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err := blobs(); err != nil {
		return err
	}
	for folder, ids := range s.wrote {
		path := ctxfolder.Messages + "/" + folder
		for _, id := range ids {
			if err := vfs.SyncFile(fsys, path+"/"+ctxfolder.MessageFile(id)); err != nil {
				return err
			}
		}
		if err := fsys.SyncDir(path); err != nil {
			return err
		}
	}
	for _, dir := range []string{ctxfolder.Messages, "."} {
		if err := fsys.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
