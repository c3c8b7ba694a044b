package index

import (
	"cmp"
	stdcontext "context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// settle makes the message files of what journals hold durable, so that the journals can go.
//
// Crash order: until SyncAll returns a file may be missing, empty or torn after a power cut; the journals are there, and
// readers take the message from them. Settling again makes the files again.
func (l *Log) settle(ctx stdcontext.Context, w *foldWork, journals []uint64) error {
	journals = slices.DeleteFunc(slices.Clone(journals), func(gen uint64) bool { return gen <= w.settled })
	lines, harmed, err := l.committed(journals)
	if err != nil {
		return err
	}
	w.harmed = append(w.harmed, harmed...)
	s := settling{log: l, folders: w.folders, wrote: map[string][]uuid.UUID{}}
	for line, positions := range lines {
		if err := s.line(line, positions); err != nil {
			return err
		}
	}
	if len(s.wrong) > 0 {
		if err := s.mend(ctx); err != nil {
			return err
		}
	}
	err = s.sync(func() error { return l.keepAgain(journals) })
	if err != nil {
		l.resettle = true
		return fmt.Errorf("%w: %w", ErrDurability, err)
	}
	l.resettle = false
	return nil
}

// committed returns the positions that records in journals commit, in order, without repetition, and stores the payloads.
// What cannot be read of a journal cannot be settled from it: such ones are harmed, and to be kept in trash.
func (l *Log) committed(journals []uint64) (lines map[uuid.UUID][]int64, harmed []uint64, err error) {
	lines = map[uuid.UUID][]int64{}
	for _, gen := range journals {
		n, err := l.readPayloads(gen, l.resettle)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, ErrDamaged):
			harmed = append(harmed, gen)
		case err != nil:
			return nil, nil, err
		}
		for _, c := range n.changes {
			if c.kind == KindAppend || c.kind == KindReplace {
				lines[c.address.Line] = append(lines[c.address.Line], c.address.Position)
			}
		}
	}
	for line, p := range lines {
		slices.Sort(p)
		lines[line] = slices.Compact(p)
	}
	return lines, harmed, nil
}

// readPayloads reads a journal and stores the payloads in it. With an error that wraps ErrDamaged comes what is whole.
func (l *Log) readPayloads(gen uint64, durable bool) (news, error) {
	j, err := openJournal(l.dir, gen, nil)
	if err != nil {
		return news{}, err
	}
	n, err := j.whole()
	damaged, kerr := l.keepPayloads(j, n.changes, durable)
	if kerr != nil {
		err = kerr
	}
	if cerr := j.f.Close(); err == nil {
		err = cerr
	}
	return n, cmp.Or(err, damaged)
}

// keepAgain stores the payloads of journals one by one, durably.
func (l *Log) keepAgain(journals []uint64) error {
	for _, gen := range journals {
		if _, err := l.readPayloads(gen, true); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrDamaged) {
			return err
		}
	}
	return nil
}

// settling is the work of one settle.
type settling struct {
	log     *Log
	folders map[uuid.UUID]string   // of the lines
	wrong   map[uuid.UUID][]Entry  // messages whose files are not right, by line
	wrote   map[string][]uuid.UUID // folder, files: for systems that must be told each
}

// atOnce is how many rows are read at once.
const atOnce = 1024

// line looks at the files of some of a line's messages, in the versions that count now.
func (s *settling) line(line uuid.UUID, positions []int64) error {
	for len(positions) > 0 {
		from := positions[0]
		n := 0
		for n < len(positions) && positions[n] < from+atOnce {
			n++
		}
		entries, err := s.log.entries(line, from, positions[n-1]+1)
		if err != nil {
			return err
		}
		for i := range entries {
			if _, found := slices.BinarySearch(positions[:n], entries[i].Position); found {
				s.look(line, &entries[i])
			}
		}
		positions = positions[n:]
	}
	return nil
}

// look notes whether a message's file is right.
func (s *settling) look(line uuid.UUID, e *Entry) {
	folder := s.folders[line]
	if folder == "" {
		return // a line that metadata.json does not know has no place for files
	}
	if is := s.file(folder, e); s.stays(is) {
		s.wrote[folder] = append(s.wrote[folder], e.FileID())
		return
	}
	if s.wrong == nil {
		s.wrong = map[uuid.UUID][]Entry{}
	}
	s.wrong[line] = append(s.wrong[line], *e)
}

// mend makes the files that are not right, with the folder's lock held: a branch may have been renamed since its folder
// was looked up, and a message may have been replaced.
func (s *settling) mend(ctx stdcontext.Context) error {
	l := s.log
	return l.underLock(ctx, func(folders map[uuid.UUID]string) error {
		s.folders = folders
		for line, entries := range s.wrong {
			for i := range entries {
				if !l.state.has(line, entries[i].Position) {
					continue // the line was cut meanwhile
				}
				e, err := l.state.entryAt(line, entries[i].Position)
				if err != nil {
					return err
				}
				if err := s.message(folders[line], &e); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// underLock runs f with the folder's lock and advance held, the log up to date, and what metadata.json says of the lines' folders: for who holds the
// fold lock.
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
		return fmt.Errorf("%w: the index was found broken meanwhile", ErrBusy)
	}
	return f(l.state.folders())
}

// message makes sure that a message's file is there. One that is right, or edited by hand, is left alone; any other that is
// not what was committed is written again from the journal. The folder's lock is held.
func (s *settling) message(folder string, e *Entry) error {
	dir := s.log.dir
	if folder == "" {
		return nil
	}
	if is := s.file(folder, e); !s.stays(is) {
		b, ok := s.log.ReadRecord(e)
		if !ok {
			return nil // damaged on both sides: the row stays, reading tells
		}
		if err := dir.MakeWay(ctxfolder.Messages + "/" + folder + "/" + ctxfolder.MessageFile(e.FileID())); err != nil {
			return err
		}
		write := dir.ReplaceMessage
		if is == FileMissing {
			write = dir.CreateMessage
		}
		if err := write(folder, e.FileID(), b, e.StoredAt()); err != nil {
			return err
		}
	}
	s.wrote[folder] = append(s.wrote[folder], e.FileID())
	return nil
}

// stays reports whether a file is left alone. After a failed sync the kernel may show what it has not written and will
// not write: then everything is written again.
func (s *settling) stays(is FileState) bool {
	return is == FileEdited || is.Whole() && !s.log.resettle
}

func (s *settling) file(folder string, e *Entry) FileState {
	_, is, _ := e.ReadFile(s.log.dir, folder)
	return is
}

// sync makes files, folders and blobs durable: with one call where the system has it, which also flushes what other
// programs wrote to the same file system, else one by one; blobs does that for those.
func (s *settling) sync(blobs func() error) error {
	fsys := s.log.dir.FS
	if err := s.log.dir.SyncAll(); !errors.Is(err, errors.ErrUnsupported) {
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
