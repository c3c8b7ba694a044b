package index

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// renew begins a new journal. The caller holds the context lock and advance, and has prepared the log.
//
// Crash order: records of the old journal may not be durable yet; those of the new one must not be durable before them.
func (l *Log) renew(r room) error {
	old := l.state.newest()
	if err := old.makeDurable(); err != nil {
		return err
	}
	if err := l.beginJournal(r); err != nil {
		return err
	}
	old.sync.settle()
	return nil
}

// room is how much space a new journal preallocates.
type room bool

const (
	roomy room = true  // for the next appends
	tight room = false // the least that a journal must have
)

// beginJournal begins the next generation as the newest journal.
func (l *Log) beginJournal(r room) error {
	s := l.state
	gen := s.newest().gen + 1
	counts := make([]Counts, 0, len(s.lines))
	for _, ln := range s.lines {
		counts = append(counts, ln.Counts)
	}
	metadata := s.metadataCopy()
	if m, is, _, _ := l.dir.EffectiveMetadata(s.meta); is == ctxfolder.ProjectionNewer {
		metadata = ctxfolder.RawMetadata(m) // of a context/1, or of a journal that is lost
	}
	b, err := encodeBegin(l.dir, gen, Spot{s.seq, s.chain}, counts, metadata)
	if err != nil {
		return err
	}
	if err := l.clearWay(gen); err != nil {
		return err
	}
	if r == tight {
		b = append(bytes.TrimRight(b, "\n"), '\n', '\n')
		if err := l.remove(ctxfolder.JournalFile(gen)); err != nil {
			return err // the preallocated file
		}
	}
	if err := l.start(gen, b); err != nil {
		return err
	}
	j, err := openJournal(l.dir, gen, nil)
	if err != nil {
		return err
	}
	j.setDurable()
	l.mu.Lock()
	defer l.mu.Unlock()
	s.journals = append(s.journals, j)
	s.takeMetadata(KindMetadata, metadata, nil)
	return s.parseMetadata()
}

// layOut preallocates the next journal as blank space, durably: the slow part of a rotation precedes the lock. For all
// others, a journal that has not begun does not exist.
func (l *Log) layOut(settle bool) error {
	var newest *journal
	var end int64
	due := false
	err := l.view(func(s *state) {
		if due = !s.unsaved && l.rotationDue(settle); due {
			newest = s.newest()
			end = newest.first + int64(space(newest.first))
			if !settle { // the next one will become as long
				end = max(end, min(newest.end, maxSpace)/page*page)
			}
		}
	})
	if err != nil || !due {
		return err
	}
	gen := newest.gen + 1
	if _, err := l.dir.FS.Lstat(ctxfolder.JournalFile(gen)); err == nil {
		return l.dir.FS.SyncDir(".") // another process rotated or preallocated it; that sync may have failed
	}
	if newest.exists(l.dir) != nil {
		return nil // others rotated more than once
	}
	// The blank file must not replace a journal that an append, after a failed sync, begins meanwhile under the lock.
	err = l.createFile(ctxfolder.JournalFile(gen), ".blank", func(f vfs.File) error {
		_, err := f.Write(bytes.Repeat([]byte{'\n'}, int(end)))
		return err
	}, l.dir.FS.RenameNew)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return l.dir.FS.SyncDir(".")
}

// start writes a journal's begin record: into preallocated space, or into a new file.
//
// Crash order: until the sync the journal may be blank or torn, and counts as missing; nothing in it is acknowledged.
// The previous journal is durable already. If start fails, the new journal must be gone for good before another record
// is acknowledged in the previous one: it would count instead of that record. If it cannot be removed, every writer
// continues in it and rewrites its begin record: see cover.
func (l *Log) start(gen uint64, beginning []byte) error {
	err := l.writeBeginning(gen, beginning)
	if err == nil {
		return nil
	}
	gone := l.remove(ctxfolder.JournalFile(gen))
	if gone == nil {
		gone = l.dir.FS.SyncDir(".")
	}
	if gone != nil {
		l.state.newest().sync.fail(err) // the next append begins a journal that repeats everything, unless this one still exists
	}
	return err
}

func (l *Log) writeBeginning(gen uint64, beginning []byte) error {
	f, err := l.dir.FS.OpenFile(ctxfolder.JournalFile(gen), os.O_RDWR)
	if err == nil {
		blank, berr := (&journal{f: f}).blankBehind(0)
		if blank {
			if _, err = f.WriteAt(beginning, 0); err == nil {
				err = f.Datasync()
			}
		}
		err = errors.Join(err, berr, f.Close())
		if blank || err != nil {
			return err
		}
	}
	return l.createJournal(gen, func(f vfs.File) error {
		_, err := f.Write(beginning)
		return err
	})
}

// createJournal creates the file of a generation, whole and durable, or leaves none. The caller holds the context lock.
func (l *Log) createJournal(gen uint64, fill func(vfs.File) error) error {
	name := ctxfolder.JournalFile(gen)
	if err := l.createFile(name, ".tmp", fill, l.dir.FS.Rename); err != nil {
		return err
	}
	if err := l.dir.FS.SyncDir("."); err != nil {
		// Never append to a file whose name may not last.
		_ = l.dir.FS.Remove(name)
		return err
	}
	return nil
}

// createFile makes a file durable under a temporary name and renames it. The new name is not durable. Callers that hold
// different locks use different endings for the temporary name.
func (l *Log) createFile(name, ending string, fill func(vfs.File) error, rename func(from, to string) error) error {
	tmp := "." + name + ending
	if err := l.remove(tmp); err != nil {
		return err
	}
	f, err := l.dir.FS.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	err = fill(f)
	if err == nil {
		err = f.Sync()
	}
	err = cmp.Or(err, f.Close())
	if err == nil {
		err = rename(tmp, name)
	}
	if err != nil {
		_ = l.dir.FS.Remove(tmp)
	}
	return err
}
