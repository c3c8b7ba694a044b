package index

import (
	stdcontext "context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// FoldDue reports whether the journal has grown enough to be folded.
func (l *Log) FoldDue() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.state == nil {
		return false
	}
	j := l.state.newest()
	// The beginning does not count: it is what a fold leaves.
	return j.end-j.first >= l.opts.FoldBytes
}

// Fold brings what the journals hold into message files, rows and index.json, durably, and retires
// journals. When somebody else is folding this context, it does nothing. It takes the folder's lock only to
// begin a new journal; appends go on meanwhile. Folding again does no harm.
//
// Crash order: each step may be lost or torn until SyncAll, and is done again from the journals, which
// index.json names until it is replaced. A journal goes only when index.json, durable, says that what
// it holds is folded, and one generation late.
func (l *Log) Fold(ctx stdcontext.Context) error {
	ok, err := l.dir.FoldLock.TryAcquire()
	if !ok || err != nil {
		return err
	}
	defer l.dir.FoldLock.Release()
	todo, err := l.rotate(ctx)
	if err != nil || todo == nil {
		return err
	}
	if err := l.writeFolded(todo); err != nil {
		return err
	}
	// The newest folded journal stays as a second copy, beside the one that is being written.
	x, err := l.finishFold(todo, 2)
	if err != nil {
		return err
	}
	l.advance.Lock()
	defer l.advance.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != nil {
		l.state.retire(x)
	}
	return nil
}

// foldWork is what one fold has to do.
type foldWork struct {
	seq, chain uint64
	journals   []uint64 // that exist, oldest first; the last one is not folded
	width      int
	at         int64
	lines      []foldLine
	folders    map[uuid.UUID]string
}

type foldLine struct {
	foldedLine
	entries []Entry // in order of position
}

// rotate begins a new journal under the lock and collects what the older ones hold unfolded. It returns nil
// when there is nothing.
func (l *Log) rotate(ctx stdcontext.Context) (*foldWork, error) {
	if err := l.dir.Lock.Acquire(ctx); err != nil {
		return nil, err
	}
	defer l.dir.Lock.Release()
	l.advance.Lock()
	defer l.advance.Unlock()
	if err := l.dir.Check(); err != nil {
		return nil, err
	}
	if err := l.prepare(true); err != nil {
		return nil, err
	}
	x, err := readFolded(l.dir)
	if errors.Is(err, ErrDamaged) {
		if err := l.reload(); err != nil {
			return nil, err
		}
		return nil, l.prepare(true)
	}
	if err != nil {
		return nil, err
	}
	s := l.state
	if s.seq == x.Seq {
		return nil, nil
	}
	old := s.newest()
	if old.seq > old.begin.Seq || old.end > old.first {
		// Records of the old journal may not be durable yet; those of the new one must not be before them.
		if err := old.sync.wait(old.f.Datasync); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDurability, err)
		}
		if err := l.beginJournal(); err != nil {
			return nil, err
		}
		old.sync.settle()
	}
	w := &foldWork{seq: s.newest().begin.Seq, chain: s.newest().begin.chain, width: rowWidth, at: s.newestAt, folders: s.folders()}
	w.journals = x.retained()
	for _, j := range s.journals {
		w.journals = append(w.journals, j.gen)
	}
	for id, ln := range s.lines {
		f := foldLine{foldedLine: foldedLine{Counts: ln.Counts, Folder: w.folders[id]}}
		for _, e := range ln.changed {
			f.entries = append(f.entries, *e)
		}
		f.entries = append(f.entries, ln.recent...)
		f.entries = slices.DeleteFunc(f.entries, func(e Entry) bool { return e.seq != 0 && e.seq <= x.Seq })
		slices.SortFunc(f.entries, func(a, b Entry) int { return int(a.Position - b.Position) })
		w.lines = append(w.lines, f)
	}
	slices.SortFunc(w.lines, func(a, b foldLine) int { return slices.Compare(a.Line[:], b.Line[:]) })
	return w, nil
}

// beginJournal makes the next generation the newest one.
func (l *Log) beginJournal() error {
	s := l.state
	gen := s.newest().gen + 1
	counts := make([]Counts, 0, len(s.lines))
	for _, ln := range s.lines {
		counts = append(counts, ln.Counts)
	}
	slices.SortFunc(counts, func(a, b Counts) int { return slices.Compare(a.Line[:], b.Line[:]) })
	metadata := s.metadata
	if m, _, err := l.dir.ReadMetadata(); err == nil {
		metadata = ctxfolder.RawMetadata(m)
	}
	b, err := encodeBegin(begin{
		Context: l.dir.ID, Store: l.dir.Store, Generation: gen, Seq: s.seq, chain: s.chain,
		Lines: counts, Metadata: metadata, CreatedAt: time.Now().UTC(),
	})
	if err != nil {
		return err
	}
	if err := l.createJournal(gen, func(f vfs.File) error {
		_, err := f.Write(b)
		return err
	}); err != nil {
		return err
	}
	j, err := openJournal(l.dir, gen, nil)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.journals = append(s.journals, j)
	s.metadata = metadata
	return nil
}

// writeFolded writes message files and rows, and makes them durable.
func (l *Log) writeFolded(w *foldWork) error {
	wrote := map[string][]uuid.UUID{} // folder, files: for systems that must be told each
	for i := range w.lines {
		ln := &w.lines[i]
		if len(ln.entries) == 0 {
			continue
		}
		if err := l.foldMessages(ln, wrote); err != nil {
			return err
		}
		rows, err := openRows(l.dir, ln.Line, ln.Base)
		if err != nil {
			return err
		}
		for i := range ln.entries {
			if err == nil {
				err = rows.put(&ln.entries[i])
			}
		}
		if cerr := rows.close(false); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
	}
	if err := l.syncFolded(w, wrote); err != nil {
		return fmt.Errorf("%w: %w", ErrDurability, err)
	}
	return nil
}

// finishFold replaces index.json, naming the newest so many journals, and removes the others.
func (l *Log) finishFold(w *foldWork, journals int) (*folded, error) {
	keep := w.journals[max(len(w.journals)-journals, 0):]
	x := &folded{
		Context: l.dir.ID, Store: l.dir.Store, Seq: w.seq, chain: w.chain, Journals: keep, Live: keep[len(keep)-1],
		RowWidth: w.width, UpdatedAt: time.Now().UTC(),
	}
	for i := range w.lines {
		x.Lines = append(x.Lines, w.lines[i].foldedLine)
	}
	b, err := x.encode()
	if err != nil {
		return nil, err
	}
	if err := l.dir.MakeWay(ctxfolder.IndexFile); err != nil {
		return nil, err
	}
	if err := l.dir.FS.Replace(ctxfolder.IndexFile, b); err != nil {
		return nil, err
	}
	if err := l.dir.FS.SyncDir("."); err != nil {
		return nil, err
	}
	for _, gen := range w.journals[:len(w.journals)-len(keep)] {
		if err := l.dir.MakeWay(ctxfolder.JournalFile(gen)); err != nil {
			return nil, err
		}
		if err := l.dir.FS.Remove(ctxfolder.JournalFile(gen)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return x, nil
}

// foldMessages makes sure that the message files are there. One that is right, or edited by hand, is left
// alone; any other that is not what was committed is written again from the journal.
func (l *Log) foldMessages(ln *foldLine, wrote map[string][]uuid.UUID) error {
	folder := ln.Folder
	if folder == "" {
		// A line that metadata.json does not know has no place for files. Its journal records are kept in
		// the rows' stead by repair, which knows where to put them.
		return nil
	}
	for i := range ln.entries {
		e := &ln.entries[i]
		if e.gen == 0 {
			continue
		}
		info, err := l.dir.StatMessage(folder, e.FileID())
		switch {
		case err == nil && e.made && ctxfolder.Untouched(info, e.Size, e.StoredAt()):
		case err == nil && l.keep(folder, e):
		default:
			b, ok := l.ReadRecord(e)
			if !ok {
				continue // damaged on both sides: the row stays, reading tells
			}
			if err == nil && !info.Mode().IsRegular() {
				if err := l.dir.SetAside(ctxfolder.Messages + "/" + folder + "/" + ctxfolder.MessageFile(e.FileID())); err != nil {
					return err
				}
			}
			write := l.dir.CreateMessage
			if err == nil {
				write = l.dir.ReplaceMessage
			}
			if err := write(folder, e.FileID(), b, e.StoredAt()); err != nil {
				return err
			}
		}
		wrote[folder] = append(wrote[folder], e.FileID())
	}
	return nil
}

// keep reports whether a file that looks touched is to stay: it holds what was committed, or a valid
// envelope with its own id, which is an edit by hand.
func (l *Log) keep(folder string, e *Entry) bool {
	b, _, err := l.dir.ReadMessage(folder, e.FileID())
	if err != nil {
		return false
	}
	if bodySum(b) == e.Sum {
		return true
	}
	env, err := message.Parse(b)
	return err == nil && env.ID == e.ID && env.FileID() == e.FileID() && env.Position == e.Position && env.StoredAt.UnixNano() >= e.At
}

// syncFolded makes files, folders and rows durable: with one call where the system has it, which also flushes
// what other programs wrote to the same file system, else one by one.
func (l *Log) syncFolded(w *foldWork, wrote map[string][]uuid.UUID) error {
	err := l.dir.FS.SyncAll()
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	for folder, ids := range wrote {
		path := ctxfolder.Messages + "/" + folder
		for _, id := range ids {
			if err := vfs.SyncFile(l.dir.FS, path+"/"+ctxfolder.MessageFile(id)); err != nil {
				return err
			}
		}
		if err := l.dir.FS.SyncDir(path); err != nil {
			return err
		}
	}
	for i := range w.lines {
		if len(w.lines[i].entries) > 0 {
			if err := vfs.SyncFile(l.dir.FS, ctxfolder.RowsFile(w.lines[i].Line)); err != nil {
				return err
			}
		}
	}
	for _, dir := range []string{ctxfolder.Messages, ctxfolder.RowsFolder, "."} {
		if err := l.dir.FS.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
