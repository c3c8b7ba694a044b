package index

import (
	"cmp"
	stdcontext "context"
	"errors"
	"fmt"
	"slices"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// Exclusively runs f while nobody else writes to the context or folds it. The log is then up to date, and a rebuilt
// index is saved. f may call the methods for the holder of the context lock, and [Log.Mark].
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
	if err := l.awaitFiles(ctx); err != nil {
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

// Update brings the log up to date and saves a rebuilt index.
func (l *Log) Update(ctx stdcontext.Context) error {
	return l.Exclusively(ctx, func() error { return nil })
}

// Rebuild rebuilds the index from everything in the context's folder and saves it.
func (l *Log) Rebuild(ctx stdcontext.Context) error {
	if err := l.acquire(ctx, l.dir.FoldLock); err != nil {
		return err
	}
	defer l.dir.FoldLock.Release()
	return l.foldAnew(ctx, fmt.Errorf("%w: a pack is missing from the index", ErrDamaged))
}

// Mark writes into the rows of messages why they are unavailable, by position. An empty reason removes the mark. The
// messages stay listed under their ids; [Erased] leaves nothing else of them. Mark is for use in [Log.Exclusively]. It
// fails with an error that wraps ErrBusy if one of the messages is not folded yet.
//
// Crash order: Mark writes each row in its place and syncs it. A torn row causes a rebuild of the index, which finds
// the message missing again. index.json counts additional lost messages before the rows change, and fewer lost ones
// after. It counts the remaining bytes after, too: a repeated erase counts them again if the first one was interrupted.
func (l *Log) Mark(line uuid.UUID, reasons map[int64]string) error {
	l.advance.Lock()
	defer l.advance.Unlock()
	ln := l.state.lines[line]
	var marked []Entry
	var more, fewer int64 // messages marked lost
	for position, reason := range reasons {
		e, err := l.state.entryAt(line, position)
		if err != nil {
			return err
		}
		if position >= ln.start || ln.changed[position] != nil {
			return fmt.Errorf("%w: position %d is not folded", ErrBusy, position)
		}
		e.Pack, e.place = uuid.Nil, archive.Place{} // the mark is in a row
		if e.isLost() {
			fewer++
		}
		if reason != "" && reason != Erased {
			more++
		}
		if e.Lost = reason; reason == Erased {
			// A checksum and a size would confirm a guess of the message.
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

// mark writes rows in their places, or a new row file where some messages have no row. more and fewer are how many lost
// messages the line gains and loses.
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
		f.Bytes = 0
		for e, err := range l.merged(f) {
			if err != nil {
				return err
			}
			f.Bytes += e.Size
		}
	}
	if err := l.writeRows(w); errors.Is(err, ErrDamaged) {
		return errors.Join(fmt.Errorf("%w: %w", ErrBusy, err), l.distrustRows(err), l.prepare(true))
	} else if err != nil || f.Rows == before && more == 0 && fewer == 0 && f.Bytes == was {
		return err
	}
	f.Lost = max(f.Lost-fewer, 0)
	if err := l.commit(w, x.Journals); err != nil { // even if it says nothing new: other handles then read the rows again
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln := l.state.lines[line]; ln != nil {
		ln.Bytes = max(ln.Bytes+f.Bytes-was, 0)
	}
	return nil
}

// Erased is the reason in the row of a message that was erased on purpose. Readers do not take a file of that name for
// the message, and a rebuild trusts the row.
const Erased = "erased"

// Retire removes the folded journals, even those that index.json no longer names, and begins a new one. A handle that
// relies on a folded journal for a message or payload meets the new one and reads the index again. Retire is for use in
// [Log.Exclusively], after a fold that settled; if more was folded since, the error wraps ErrBusy. A journal that holds
// the only good copy of something stays, and so do those after it; the error says why. A damaged one moves to the
// trash.
//
// Crash order: the contents of the journals are read back from their places and durable there. index.json stops naming
// the journals before they go. The new journal begins where the live one, which is synced, ends.
func (l *Log) Retire() error {
	l.advance.Lock()
	defer l.advance.Unlock()
	x, err := readIndexFile(l.dir)
	if err != nil {
		return err
	}
	if x.unsettled() {
		return fmt.Errorf("%w: messages of folded journals are not durable in their files yet", ErrBusy)
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

// removeStray removes the journals below the live one that index.json does not name. A later journal repeats them.
func (l *Log) removeStray(live uint64) error {
	gens, err := generations(l.dir)
	if err != nil {
		return err
	}
	for _, gen := range gens { // in order of their numbers: see catchUp
		name := ctxfolder.JournalFile(gen)
		if gen >= live || !regular(l.dir, name) {
			continue
		}
		if err := l.remove(name); err != nil {
			return err
		}
		if err := l.dir.FS.SyncDir("."); err != nil { // see finishFold
			return err
		}
	}
	return l.dir.FS.SyncDir(".")
}

// Unfolded calls f with the messages that only journals which are not folded commit, by line, and with the folders of
// lines. It brings the log up to date before, and holds the context lock meanwhile. If it returns a commit, the
// messages are durable when Wait, which needs no lock, returns nil.
func (l *Log) Unfolded(ctx stdcontext.Context, f func(entries map[uuid.UUID][]Entry, folders map[uuid.UUID]string)) (c *Commit, err error) {
	look := func(folders map[uuid.UUID]string) error {
		if !l.opts.Relaxed {
			if err := l.prepare(false); err != nil { // begins a new journal if a sync of this one failed
				return err
			}
			if !l.state.newest().isDurable() {
				c = l.barrier()
			}
		}
		l.noticeFolds()
		f(l.state.unfolded(), folders)
		return nil
	}
	err = l.underLock(ctx, look)
	if errors.Is(err, ErrBusy) { // the index is rebuilt in memory
		if err = l.Update(ctx); err == nil {
			err = l.underLock(ctx, look)
		}
	}
	return c, err
}

// UnfoldedNow is [Log.Unfolded] for the holder of the context lock, who has called Prepare.
func (l *Log) UnfoldedNow() (entries map[uuid.UUID][]Entry, err error) {
	l.advance.Lock()
	if l.state != nil {
		l.noticeFolds() // others may have archived messages, which have no files then
	}
	l.advance.Unlock()
	err = l.view(func(s *state) { entries = s.unfolded() })
	return entries, err
}

// WroteUnfolded reports whether this handle wrote every record of the messages that are not folded.
func (l *Log) WroteUnfolded() (wrote bool) {
	_ = l.view(func(s *state) {
		wrote = s.seq == s.ownTo
		for _, entries := range s.unfolded() {
			wrote = wrote && !slices.ContainsFunc(entries, func(e Entry) bool { return e.seq < s.ownFrom })
		}
	})
	return wrote
}

func (s *state) unfolded() map[uuid.UUID][]Entry {
	lines := map[uuid.UUID][]Entry{}
	for id, ln := range s.lines {
		if entries := ln.unfolded(); len(entries) > 0 {
			lines[id] = entries
		}
	}
	return lines
}

// Unsettled reports whether the journal that holds a message is not settled. Readers take the message from there if its
// file, which need not be durable yet, is missing.
func (l *Log) Unsettled(e *Entry) (due bool) {
	_ = l.view(func(s *state) {
		due = slices.ContainsFunc(s.journals, func(j *journal) bool { return j.gen == e.gen }) ||
			slices.Contains(s.folded.gens, e.gen) && !settled(s.dir, e.gen)
	})
	return due
}

// settled reports whether index.json now says that the message files and blobs of a folded journal are durable.
func settled(dir *ctxfolder.Dir, gen uint64) bool {
	x, err := readIndexFile(dir)
	return err == nil && gen <= x.Settled
}

// DamagedJournals reads the folded records that still exist and returns the journals where some are missing or not
// whole.
func (l *Log) DamagedJournals() (map[uint64]error, error) {
	rebuilt := false
	if err := l.view(func(s *state) { rebuilt = s.unsaved }); err != nil || rebuilt {
		return nil, err // a rebuild reads all journals and reports the problems
	}
	x, err := readIndexFile(l.dir)
	if err != nil {
		return nil, err
	}
	damaged := map[uint64]error{}
	for _, gen := range x.retained() {
		if _, err := readFolded(l.dir, gen); err != nil {
			damaged[gen] = err
		}
	}
	if err := x.checkLive(l.dir); err != nil {
		damaged[x.Live] = err
	}
	if len(damaged) == 0 {
		return nil, nil
	}
	// A fold may have removed them meanwhile.
	if x, err = readIndexFile(l.dir); err != nil {
		return nil, err
	}
	for gen := range damaged {
		if !slices.Contains(x.Journals, gen) {
			delete(damaged, gen)
		}
	}
	return damaged, nil
}

// checkLive reads the folded records of the live journal.
func (x *indexFile) checkLive(dir *ctxfolder.Dir) error {
	if x.Offset == 0 {
		return nil
	}
	j, err := openJournal(dir, x.Live, nil)
	if err != nil {
		return err
	}
	defer j.f.Close()
	n, err := j.read(x.Seq, allDurable)
	for i := range n.changes {
		if c := &n.changes[i]; c.lost > 0 && err == nil {
			err = j.gap(c)
		}
	}
	if k := len(n.changes); err == nil && (k == 0 || n.changes[k-1].place() != x.place()) {
		err = fmt.Errorf("%w: %s does not have record %d", ErrDamaged, ctxfolder.JournalFile(j.gen), x.Seq)
	}
	return err
}
