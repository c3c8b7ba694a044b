package index

import (
	"cmp"
	stdcontext "context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// Exclusively runs f while nobody else writes to the context or folds it. The log is up to date then, and a rebuilt index
// saved. f may call what is for the holder of the folder's lock, and [Log.Mark].
func (l *Log) Exclusively(ctx stdcontext.Context, f func() error) error {
	if err := l.acquire(ctx, l.dir.FoldLock); err != nil {
		return err
	}
	defer l.dir.FoldLock.Release()
	if err := l.acquire(ctx, l.dir.Lock); err != nil {
		return err
	}
	defer l.dir.Lock.Release()
	if err := l.dir.Check(); err != nil {
		return err
	}
	l.advance.Lock()
	err := l.prepare(true)
	l.advance.Unlock()
	if err != nil {
		return err
	}
	return f()
}

// Current makes the log current and a rebuilt index saved.
func (l *Log) Current(ctx stdcontext.Context) error {
	return l.Exclusively(ctx, func() error { return nil })
}

// Rebuild makes the index anew from everything there is, and saves it.
func (l *Log) Rebuild(ctx stdcontext.Context) error {
	if err := l.acquire(ctx, l.dir.FoldLock); err != nil {
		return err
	}
	defer l.dir.FoldLock.Release()
	return l.foldAnew(ctx, fmt.Errorf("%w: a pack is not in it", ErrDamaged))
}

// Mark writes into the rows of messages why they cannot be had, by position; an empty reason takes the mark away. They stay
// listed under their ids; with [Erased] nothing else is left of them. It is for use in [Log.Exclusively], and fails with an
// error that wraps ErrBusy when one of them is not folded yet.
//
// Crash order: each row is written in its place and synced. One that is torn makes the index be rebuilt, which finds the
// message missing again. Where there are more lost ones then, index.json says so before, and where there are fewer, after. How many bytes are left it says
// after: an erase that was stopped in between counts them again when it is repeated.
func (l *Log) Mark(line uuid.UUID, reasons map[int64]string) error {
	l.advance.Lock()
	defer l.advance.Unlock()
	ln := l.state.lines[line]
	var marked []Entry
	var more, fewer int64 // that are lost
	for position, reason := range reasons {
		e, err := l.state.entryAt(line, position)
		if err != nil {
			return err
		}
		if position >= ln.start || ln.changed[position] != nil {
			return fmt.Errorf("%w: position %d is not folded", ErrBusy, position)
		}
		e.Pack, e.place = uuid.Nil, archive.Place{} // a row says so
		if e.unfound() {
			fewer++
		}
		if reason != "" && reason != Erased {
			more++
		}
		if e.Lost = reason; reason == Erased {
			// A checksum and a size would tell whoever guesses the message that the guess is right.
			e = Entry{Position: e.Position, ID: e.ID, At: e.At, Lost: Erased}
		}
		marked = append(marked, e)
	}
	if len(marked) == 0 {
		return nil
	}
	slices.SortFunc(marked, func(a, b Entry) int { return cmp.Compare(a.Position, b.Position) })
	return l.mark(line, marked, max(more-fewer, 0), max(fewer-more, 0))
}

// mark writes rows in their places, or a new row file where some have none. So many more of the line are lost then, or fewer.
func (l *Log) mark(line uuid.UUID, marked []Entry, more, fewer int64) error {
	x, err := l.takeFolded()
	if err != nil {
		return err
	}
	w := l.workOf(x)
	i := slices.IndexFunc(w.lines, func(f foldLine) bool { return f.Line == line })
	if i < 0 {
		return fmt.Errorf("%w: line %s is not folded", ErrBusy, line)
	}
	f := &w.lines[i]
	if f.Lost += more; more > 0 {
		if err := l.commit(w, x.Journals); err != nil {
			return err
		}
	}
	before := f.Rows
	f.start, f.entries = f.End(), marked
	was := f.Bytes
	if slices.ContainsFunc(marked, func(e Entry) bool { return e.Lost == Erased }) {
		if f.Bytes, err = l.bytesWith(f, marked); err != nil {
			return err
		}
	}
	if err := l.writeRows(w); errors.Is(err, ErrDamaged) {
		return errors.Join(fmt.Errorf("%w: %w", ErrBusy, err), l.distrustRows(err), l.prepare(true))
	} else if err != nil || f.Rows == before && more == 0 && fewer == 0 && f.Bytes == was {
		return err
	}
	f.Lost = max(f.Lost-fewer, 0)
	if err := l.commit(w, x.Journals); err != nil { // also where it says nothing new: who has read the rows reads them again
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln := l.state.lines[line]; ln != nil {
		ln.Bytes = max(ln.Bytes+f.Bytes-was, 0)
	}
	return nil
}

// bytesWith adds up the envelopes of a line as it will be, with other rows for some of them.
func (l *Log) bytesWith(f *foldLine, marked []Entry) (bytes int64, err error) {
	for from := f.Base; from < f.End(); from += atOnce {
		entries, err := l.stored(f.Line, from, min(from+atOnce, f.End()))
		if err != nil {
			return 0, err
		}
		for i := range entries {
			e := &entries[i]
			for len(marked) > 0 && marked[0].Position < e.Position {
				marked = marked[1:]
			}
			if len(marked) > 0 && marked[0].Position == e.Position {
				e = &marked[0]
			}
			bytes += e.Size
		}
	}
	return bytes, nil
}

// workOf returns a fold that changes nothing.
func (l *Log) workOf(x *folded) *foldWork {
	w := &foldWork{seq: x.Seq, chain: x.chain, width: x.RowWidth, settled: x.Settled, journals: x.Journals, newestAt: x.newest()}
	for _, ln := range x.Lines {
		w.lines = append(w.lines, foldLine{FoldedLine: ln})
	}
	return w
}

// commit replaces index.json, and takes it in.
func (l *Log) commit(w *foldWork, keep []uint64) error {
	x, err := l.finishFold(w, keep)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.retire(x)
	return nil
}

// Erased is the reason in the row of a message that was erased on purpose. A file of that name is not the message, and a
// rebuild believes the row.
const Erased = "erased"

// Retire removes the folded journals, those that nothing names any more included, and begins a new one: whoever took the
// folded ones for the copy of a message or of a payload meets it and reads the index again. It is for use in
// [Log.Exclusively], after a fold that settled; with an error that wraps ErrBusy it fails when more was folded since. A journal that holds the only
// good copy of something stays, and those behind it: the error says why. One that is harmed goes to trash.
//
// Crash order: what they hold is read back from its places and durable there. index.json stops naming them before they go. The new journal
// begins where the live one, which is synced, ends.
func (l *Log) Retire() error {
	l.advance.Lock()
	defer l.advance.Unlock()
	x, err := readFolded(l.dir)
	if err != nil {
		return err
	}
	if x.unsettled() {
		return fmt.Errorf("%w: folded journals are not settled", ErrBusy)
	}
	w, retained := l.workOf(x), x.retained()
	w.folders, w.journals = l.state.folders(), append(x.retained(), x.Live)
	locked := func(f func(map[uuid.UUID]string) error) error { return f(w.folders) }
	settled, stuck := l.settleUnder(w, retained, locked)
	if errors.Is(stuck, ErrDamaged) {
		return errors.Join(fmt.Errorf("%w: %w", ErrBusy, stuck), l.distrustRows(stuck), l.prepare(true))
	}
	if settled < len(retained) {
		w.settled = retained[settled] - 1
	}
	if err := l.commit(w, w.journals[settled:]); err != nil || stuck != nil {
		return errors.Join(stuck, err)
	}
	if err := l.removeStray(x.Live); err != nil {
		return err
	}
	return l.renew(roomy)
}

// removeStray removes the journals below the live one that index.json does not name: a later one repeated what they hold.
func (l *Log) removeStray(live uint64) error {
	gens, err := generations(l.dir)
	if err != nil {
		return err
	}
	for _, gen := range gens { // in the order of their numbers: see catchUp
		name := ctxfolder.JournalFile(gen)
		if gen >= live || !regular(l.dir, name) {
			continue
		}
		if err := l.dir.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return l.dir.FS.SyncDir(".")
}

// renew begins a new journal. The folder's lock and advance are held, and the log is prepared.
//
// Crash order: records of the old journal may not be durable yet; those of the new one must not be before them.
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

// Due reports whether the journal that has a message is not settled: readers take the message from there where its file, which need not be durable
// yet, is missing.
func (l *Log) Due(e *Entry) (due bool) {
	_ = l.view(func(s *state) {
		due = slices.ContainsFunc(s.journals, func(j *journal) bool { return j.gen == e.gen }) ||
			slices.Contains(s.kept.gens, e.gen) && !settled(s.dir, e.gen)
	})
	return due
}

// settled reports whether message files and blobs of what a folded journal holds were made durable, as index.json says it now.
func settled(dir *ctxfolder.Dir, gen uint64) bool {
	x, err := readFolded(dir)
	return err == nil && gen <= x.Settled
}

// HarmedJournals reads the folded journals that still exist, and returns those that are missing or not whole.
func (l *Log) HarmedJournals() (map[uint64]error, error) {
	var gens []uint64
	err := l.view(func(s *state) { gens = slices.Clone(s.kept.gens) })
	if err != nil {
		return nil, err
	}
	harmed := map[uint64]error{}
	for _, gen := range gens {
		j, err := openJournal(l.dir, gen, nil)
		if err == nil {
			_, err = j.whole()
			_ = j.f.Close()
		}
		if err != nil {
			harmed[gen] = err
		}
	}
	if len(harmed) == 0 {
		return nil, nil
	}
	// A fold may have removed them meanwhile.
	x, err := readFolded(l.dir)
	if err != nil {
		return nil, err
	}
	for gen := range harmed {
		if !slices.Contains(x.Journals, gen) {
			delete(harmed, gen)
		}
	}
	return harmed, nil
}
