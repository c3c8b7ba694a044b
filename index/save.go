package index

import (
	"fmt"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// save writes a rebuilt index: message files that only journals have, every row, a journal to continue in, and
// index.json. The caller holds the context lock.
//
// Crash order: index.json comes last; until then the next open rebuilds again. The new journal is created when the rows
// are durable, since a rebuild trusts the counts in its begin record.
func (l *Log) save(foldLocked bool) error {
	if !foldLocked {
		if ok, err := l.dir.FoldLock.TryAcquire(); err != nil {
			return err
		} else if !ok {
			return ErrBusy
		}
		defer l.dir.FoldLock.Release()
	}
	old, err := generations(l.dir)
	if err != nil {
		return err
	}
	w, err := l.rebuiltWork()
	if err != nil {
		return err
	}
	if err := l.writeRows(w); err != nil {
		return err
	}
	if err := l.withRetry(func() error { return l.settleRebuilt(w) }); err != nil {
		return err
	}
	gen := slices.Max(append(old, 0))
	if x, err := readIndexFile(l.dir); err == nil {
		gen = max(gen, slices.Max(x.Journals))
	}
	counts := make([]Counts, 0, len(w.lines))
	for i := range w.lines {
		counts = append(counts, w.lines[i].Counts)
	}
	b, err := encodeBegin(l.dir, gen+1, Spot{w.seq, w.chain}, counts, l.state.metadataCopy())
	if err != nil {
		return err
	}
	if err := l.createJournal(gen+1, func(f vfs.File) error {
		_, err := f.Write(b)
		return err
	}); err != nil {
		return err
	}
	// The old journals' numbers do not lead to this state, so index.json names none of them. They may hold unreadable
	// data, so they go to the trash.
	w.journals, w.settled = []uint64{gen + 1}, gen
	if _, err := l.finishFold(w, w.journals); err != nil {
		return err
	}
	for _, gen := range old {
		if err := l.trash(ctxfolder.JournalFile(gen)); err != nil {
			return err
		}
	}
	l.distrust = nil
	return l.reload()
}

// rebuiltWork returns the fold that writes every row of a rebuilt state.
func (l *Log) rebuiltWork() (*foldWork, error) {
	s := l.state
	numbers, err := rowFiles(l.dir)
	w := &foldWork{seq: s.seq, chain: s.chain, newestAt: s.newestAt, metadata: s.metadataCopy(), folders: s.folders()}
	for id, ln := range s.lines {
		if ln.Count == 0 {
			continue
		}
		f := foldLine{FoldedLine: FoldedLine{Counts: ln.Counts, Folder: w.folders[id]}, entries: ln.unfolded(), cut: true}
		if slices.ContainsFunc(f.entries, archived) {
			f.Rows, f.Packs = slices.Max(append(numbers[id], 0)), s.packOrder // leave a file that an index.json may name
		}
		w.lines = append(w.lines, f)
	}
	return w, err
}

// settleRebuilt makes the message files durable that only journals hold: those journals go to the trash.
func (l *Log) settleRebuilt(w *foldWork) error {
	if err := l.storeAllPayloads(); err != nil {
		return err
	}
	s := l.newSettle()
	for i := range w.lines {
		ln := &w.lines[i]
		for k := range ln.entries {
			if e := &ln.entries[k]; e.gen != 0 && ln.Folder != "" {
				if err := s.message(ln.Folder, e); err != nil {
					return err
				}
			}
		}
	}
	if err := s.sync(func() error { return nil }); err != nil { // storeAllPayloads has synced the payloads
		return fmt.Errorf("%w: %w", ErrDurability, err)
	}
	return nil
}
