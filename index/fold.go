package index

import (
	"bytes"
	"cmp"
	stdcontext "context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// FoldDue reports whether the journal has reached 1/part of the size at which it is folded.
func (l *Log) FoldDue(part int64) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.state == nil {
		return false
	}
	j := l.state.newest()
	// The begin record does not count: it is what a fold leaves.
	return j.end-j.first >= l.opts.FoldBytes/part
}

// Fold writes the contents of the journals to rows and index.json, durably, so that no reader has to read those
// journals again. The journals stay as the durable copy of their messages until there are more than Options.Retain.
// Then, or at once with settle, Fold reads their contents back from their places, makes them durable there, and removes
// all but the newest one. If a journal could not be settled, Fold does all else, and the error wraps ErrOnlyCopy.
//
// While somebody else folds this context, Fold does nothing. It takes the context lock only to begin a new journal;
// appends continue meanwhile. Folding again does no harm.
//
// Crash order: rows beyond the counts in index.json mean nothing, so they are durable before it is replaced. Until then
// it names the journals of those rows as live. A journal goes only when a durable index.json does not name it any more.
// index.json stops naming it only when the message files of its records are durable.
func (l *Log) Fold(ctx stdcontext.Context, settle bool) error {
	ok, err := l.dir.FoldLock.TryAcquire()
	if !ok || err != nil {
		return err
	}
	defer l.dir.FoldLock.Release()
	if err := l.layOut(); err != nil {
		return err
	}
	return l.fold(ctx, settle)
}

// fold is Fold for the holder of the fold lock.
func (l *Log) fold(ctx stdcontext.Context, settle bool) error {
	todo, err := l.rotate(ctx, settle)
	if err != nil || todo == nil {
		return err
	}
	if err := l.writeRows(todo); errors.Is(err, ErrDamaged) {
		return l.foldAnew(ctx, err) // the damaged rows were to be copied
	} else if err != nil {
		return err
	}
	keep := todo.journals
	var unsettled error
	if folded := len(keep) - 1; folded > 0 && (settle || folded > l.opts.Retain+l.stuck || len(todo.superseded) > 0) {
		var settled int
		settled, unsettled = l.settle(ctx, todo, keep[:folded])
		if errors.Is(unsettled, ErrDamaged) || errors.Is(unsettled, ErrBusy) {
			return l.foldAnew(ctx, unsettled)
		}
		if unsettled == nil || errors.Is(unsettled, ErrOnlyCopy) {
			l.stuck = folded - settled
			todo.settled = keep[settled] - 1
			keep = keep[min(settled, folded-1):] // the newest folded one stays, as a second copy
			if settled == folded && (slices.Contains(todo.harmed, keep[0]) || slices.Contains(todo.superseded, keep[0])) {
				keep = keep[1:]
			}
		}
	}
	if len(keep) > maxJournals/2 || unsettled != nil && len(todo.superseded) > 0 {
		return unsettled // index.json cannot name more of them; the journal grows until a settle succeeds
	}
	if todo.idle && unsettled == nil && len(keep) == len(todo.journals) {
		return nil
	}
	x, err := l.finishFold(todo, keep)
	if err != nil {
		return errors.Join(unsettled, err)
	}
	l.advance.Lock()
	defer l.advance.Unlock()
	l.retire(x)
	return unsettled
}

// foldAnew folds after rows turned out to be damaged: it rebuilds the whole index and settles everything.
func (l *Log) foldAnew(ctx stdcontext.Context, why error) error {
	if err := l.rebuildRows(why); err != nil {
		return err
	}
	if err := l.acquire(ctx, l.dir.Lock); err != nil {
		return err
	}
	defer l.dir.Lock.Release()
	l.advance.Lock()
	defer l.advance.Unlock()
	if err := l.dir.Check(); err != nil {
		return err
	}
	return l.prepare(true)
}

// foldWork is the work of one fold.
type foldWork struct {
	seq, chain uint64
	journals   []uint64 // existing ones, oldest first; the last one is not folded
	settled    uint64   // journals up to here are only a second copy
	harmed     []uint64 // journals that could not be read whole: they go to the trash
	superseded []uint64 // a later journal repeats these: index.json does not name them, and they go with this fold
	newestAt   int64
	lines      []foldLine
	folders    map[uuid.UUID]string
	idle       bool // nothing to fold, and index.json records what is settled
}

type foldLine struct {
	FoldedLine
	start   int64   // entries before this position are stored already
	entries []Entry // entries to store, in order of position
	cut     bool    // there may be rows after the last one that counts
}

// rotate begins a new journal under the lock and collects the unfolded contents of the older ones. It returns nil when
// there is nothing to fold or settle.
func (l *Log) rotate(ctx stdcontext.Context, settle bool) (*foldWork, error) {
	if err := l.acquire(ctx, l.dir.Lock); err != nil {
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
	x, err := l.takeFolded() // another process may have folded or archived
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
	if s.seq == x.Seq && (!settle || len(x.retained()) == 0) {
		return nil, nil
	}
	old := s.newest()
	if old.seq > old.begin.Seq || old.end > old.first {
		if err := l.renew(roomy); err != nil {
			return nil, err
		}
	}
	w := &foldWork{seq: s.newest().begin.Seq, chain: s.newest().begin.chain, newestAt: s.newestAt, folders: s.folders()}
	w.journals, w.settled, w.superseded = append(x.retained(), s.superseded...), x.Settled, s.superseded
	w.idle = s.seq == x.Seq && !x.unsettled() && len(s.superseded) == 0
	for _, j := range s.journals {
		w.journals = append(w.journals, j.gen)
	}
	slices.Sort(w.journals)
	for id, ln := range s.lines {
		if ln.Count == 0 {
			continue
		}
		f := foldLine{FoldedLine: FoldedLine{Counts: ln.Counts, Stored: ln.Stored, Folder: w.folders[id]}, start: ln.start, cut: ln.cut > x.Seq}
		f.entries = slices.DeleteFunc(ln.unfolded(), func(e Entry) bool { return e.seq != 0 && e.seq <= x.Seq })
		s.countFound(ln, &f)
		w.lines = append(w.lines, f)
	}
	slices.SortFunc(w.lines, func(a, b foldLine) int { return compareIDs(a.Line, b.Line) })
	return w, nil
}

// countFound reduces the count of lost messages by those that now have another version, whose rows are to be written.
func (s *state) countFound(ln *line, f *foldLine) {
	for i := 0; f.Lost > 0 && i < len(f.entries) && f.entries[i].Position < ln.start; i++ {
		rows, err := s.readRows(ln, f.entries[i].Position, f.entries[i].Position+1)
		if err == nil && rows[0].unfound() && !f.entries[i].unfound() {
			f.Lost--
		}
	}
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
	metadata := s.metadata
	if m, _, err := l.dir.ReadMetadata(); err == nil {
		metadata = ctxfolder.RawMetadata(m)
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
	s.metadata = metadata
	return nil
}

// layOut preallocates the next journal as blank space, durably: the slow part of a rotation precedes the lock. For all
// others, a journal that has not begun does not exist.
func (l *Log) layOut() error {
	var newest *journal
	var end int64
	var empty bool
	err := l.view(func(s *state) {
		if empty = s.unsaved; !empty {
			newest = s.newest()
			end, empty = newest.first, newest.end == newest.first
		}
	})
	if err != nil || empty {
		return err
	}
	gen := newest.gen + 1
	if _, err := l.dir.FS.Lstat(ctxfolder.JournalFile(gen)); err == nil {
		return l.dir.FS.SyncDir(".") // another process rotated or preallocated it; that sync may have failed
	}
	if newest.there(l.dir) != nil {
		return nil // others rotated more than once
	}
	// The blank file must not replace a journal that an append, after a failed sync, begins meanwhile under the lock.
	err = l.createFile(ctxfolder.JournalFile(gen), ".blank", func(f vfs.File) error {
		_, err := f.Write(bytes.Repeat([]byte{'\n'}, int(end)+space(end)))
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

// writeRows writes the rows of the folded entries and makes them durable.
func (l *Log) writeRows(w *foldWork) error {
	named := false
	for i := range w.lines {
		ln := &w.lines[i]
		if len(ln.entries) == 0 && !ln.cut {
			continue
		}
		write := l.writeRowsOf
		if dense := ln.dense(
			ln.Base,
		); ln.cut && ln.End() < dense || len(ln.entries) > 0 && ln.entries[0].Position < dense ||
			slices.ContainsFunc(ln.entries, archived) {
			write = l.rewriteRowsOf
		}
		made, err := write(ln)
		if err != nil {
			return err
		}
		named = named || made
	}
	if !named {
		return nil
	}
	return l.syncRows()
}

// writeRowsOf writes rows of the dense part in their places. It reports whether it created the file.
func (l *Log) writeRowsOf(ln *foldLine) (made bool, err error) {
	first := ln.first(ln.Base)
	rows, err := openRows(l.dir, ctxfolder.RowsFile(ln.Line, ln.Rows), first)
	if err != nil {
		return false, err
	}
	for i := range ln.entries {
		if err == nil {
			err = rows.put(&ln.entries[i])
		}
	}
	if err == nil {
		err = rows.end(ln.End() - first)
	}
	return rows.made, cmp.Or(err, rows.close())
}

// rewriteRowsOf writes a new row file where rows belong between others: rows of archived messages that now have another
// version, or none.
//
// Crash order: index.json names the old file until the new one is durable. The old file goes last.
func (l *Log) rewriteRowsOf(ln *foldLine) (made bool, err error) {
	rows, err := buildRows(l.dir, ln.Counts, ln.Rows+1, ln.Packs)
	if err != nil {
		return false, err
	}
	for e, err := range l.merged(ln) {
		if err == nil {
			err = rows.put(e)
		}
		if err != nil {
			rows.abandon()
			return false, err
		}
	}
	ln.Stored, err = rows.finish()
	return true, err
}

// merged yields all entries of a line: the new ones of a fold, and the stored ones in the other positions.
func (l *Log) merged(ln *foldLine) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		news, next := ln.entries, ln.Base
		put := func(e *Entry) bool {
			if e.Position != next {
				yield(nil, fmt.Errorf("%w: line %s has no entry of position %d", ErrDamaged, ln.Line, next))
				return false
			}
			next++
			return yield(e, nil)
		}
		for old, err := range l.storedPages(ln.Line, ln.Base, min(ln.start, ln.End())) {
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range old {
				e := &old[i]
				if len(news) > 0 && news[0].Position == e.Position {
					e, news = &news[0], news[1:]
				}
				if !put(e) {
					return
				}
			}
		}
		for i := range news {
			if !put(&news[i]) {
				return
			}
		}
	}
}

// syncRows makes the names of row files durable.
func (l *Log) syncRows() error { return l.syncDirs(ctxfolder.RowsFolder, ".") }

// syncIndex makes the name of index.json durable: the process that replaced it may have stopped before. Only then is
// data that index.json does not name useless.
func (l *Log) syncIndex() error { return l.syncDirs(".") }

func (l *Log) syncDirs(dirs ...string) error {
	for _, dir := range dirs {
		if err := l.dir.FS.SyncDir(dir); err != nil {
			return fmt.Errorf("%w: %w", ErrDurability, err)
		}
	}
	return nil
}

// timeOrZero converts nanoseconds since 1970 to a time; 0 stands for none.
func timeOrZero(ns int64) (t time.Time) {
	if ns > 0 {
		t = time.Unix(0, ns).UTC()
	}
	return t
}

// finishFold replaces index.json. It names the journals to keep, the newest ones, and removes the others.
func (l *Log) finishFold(w *foldWork, keep []uint64) (*folded, error) {
	x := &folded{
		Context: l.dir.ID, Store: l.dir.Store, Seq: w.seq, chain: w.chain, Journals: keep, Live: keep[len(keep)-1], Settled: w.settled,
		RowWidth: rowWidth, UpdatedAt: time.Now().UTC(), NewestAt: timeOrZero(w.newestAt),
	}
	for i := range w.lines {
		x.Lines = append(x.Lines, w.lines[i].FoldedLine)
	}
	x.Dropped = x.dropped(l.dir)
	gone := w.journals[:len(w.journals)-len(keep)]
	if len(gone) > 0 {
		w.harmed = append(w.harmed, l.replaced(w.journals[:len(gone)+1])...)
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
	for _, gen := range gone { // in order of their numbers: see catchUp
		name := ctxfolder.JournalFile(gen)
		if err := l.dir.MakeWay(name); err != nil {
			return nil, err
		}
		remove := l.remove
		if slices.Contains(w.harmed, gen) {
			remove = l.trash
		}
		if err := remove(name); err != nil {
			return nil, err
		}
	}
	return x, l.removeRows(x)
}
