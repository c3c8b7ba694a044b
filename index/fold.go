package index

import (
	"cmp"
	stdcontext "context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// FoldDue reports whether the records that have no rows have reached size, in bytes.
func (l *Log) FoldDue(size int64) bool {
	due := func() bool { return l.state != nil && l.state.unfoldedSize() >= size }
	l.mu.RLock()
	is := due()
	l.mu.RUnlock()
	if !is {
		return false
	}
	l.advance.Lock()
	defer l.advance.Unlock()
	if now, err := l.dir.FS.Lstat(ctxfolder.IndexFile); err == nil && !sameIndex(now, l.read) {
		l.forgetRetired() // another process has folded
	}
	return due()
}

// unfoldedSize returns the length of the newest journal's records that index.json does not count.
func (s *state) unfoldedSize() int64 {
	j := s.newest()
	from := j.first
	if j.gen == s.live {
		from = max(from, s.offset)
	}
	return j.end - from
}

// Fold writes the contents of the journals to rows and index.json, durably, so that no reader has to read those records
// again. Writers continue in the same journal until it has Options.Retain times the size at which it is folded. Then,
// or at once with settle, Fold begins a new journal, reads the contents of the others back from their places, makes
// them durable there, and removes all but the newest one. Until then the journals are the durable copy of their
// messages. If a journal could not be settled, Fold does all else, and the error wraps ErrOnlyCopy.
//
// While somebody else folds this context, Fold does nothing. It takes the context lock only to see what there is, and
// to begin a new journal; appends continue meanwhile. Folding again does no harm.
//
// Crash order: the records that get rows are durable before the rows are written. Rows beyond the counts in index.json
// mean nothing, so they are durable before it is replaced. Until then a reader finds their records in the journals. A
// journal goes only when a durable index.json does not name it any more. index.json stops naming it only when the
// message files of its records are durable.
func (l *Log) Fold(ctx stdcontext.Context, settle bool) error {
	ok, err := l.dir.FoldLock.TryAcquire()
	if !ok || err != nil {
		return err
	}
	defer l.dir.FoldLock.Release()
	if err := l.layOut(settle); err != nil {
		return err
	}
	return l.fold(ctx, settle)
}

// fold is Fold for the holder of the fold lock.
func (l *Log) fold(ctx stdcontext.Context, settle bool) error {
	todo, err := l.collect(ctx, settle)
	if err != nil || todo == nil {
		return err
	}
	if err := todo.sync(); err != nil {
		return err
	}
	if x := todo.first; x != nil { // it is durable before there are rows
		if _, err := l.finishFold(l.workOf(x), x.Journals); err != nil {
			return err
		}
	}
	if err := l.writeRows(todo); errors.Is(err, ErrDamaged) {
		return l.foldAnew(ctx, err) // the damaged rows were to be copied
	} else if err != nil {
		return err
	}
	keep := todo.journals
	var unsettled error
	if folded := len(keep) - 1; folded > 0 && (settle || todo.unsettled > l.stuck || len(todo.superseded) > 0) {
		var settled int
		settled, unsettled = l.settle(ctx, todo, keep[:folded])
		if errors.Is(unsettled, ErrDamaged) || errors.Is(unsettled, ErrBusy) {
			return l.foldAnew(ctx, unsettled)
		}
		if unsettled == nil || errors.Is(unsettled, ErrOnlyCopy) {
			l.stuck = folded - settled
			todo.settled = keep[settled] - 1
			keep = keep[min(settled, folded-1):] // the newest folded one stays, as a second copy
			if settled == folded && (slices.Contains(todo.damaged, keep[0]) || slices.Contains(todo.superseded, keep[0])) {
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
	offset     int64        // of that record in the last journal; 0 if that one begins after it
	sync       func() error // makes the records that get rows durable
	journals   []uint64     // existing ones, oldest first; the last one stays the live one
	settled    uint64       // journals up to here are only a second copy
	unsettled  int          // how many of the others are not
	damaged    []uint64     // journals that could not be read whole: they go to the trash
	superseded []uint64     // a later journal repeats these: index.json does not name them, and they go with this fold
	newestAt   int64
	metadata   json.RawMessage
	lines      []foldLine
	folders    map[uuid.UUID]string
	idle       bool       // nothing to fold, and index.json records what is settled
	first      *indexFile // the index.json of a context that was not folded yet; otherwise nil
}

type foldLine struct {
	FoldedLine
	start   int64   // entries before this position are stored already
	entries []Entry // entries to store, in order of position
	cut     bool    // there may be rows after the last one that counts
}

// collect collects the unfolded contents of the journals, and begins a new journal if the newest one is large or is to
// be settled. It returns nil when there is nothing to fold or settle.
func (l *Log) collect(ctx stdcontext.Context, settle bool) (*foldWork, error) {
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
	if err == nil && l.state.droppedLive(x) {
		if err = l.prepareAnew(); err == nil {
			x, err = l.takeFolded()
		}
	}
	if errors.Is(err, ErrDamaged) {
		return nil, l.prepareAnew()
	}
	if err != nil {
		return nil, err
	}
	s := l.state
	if s.seq == x.Seq && (!settle || len(x.retained()) == 0 && x.Offset == 0) {
		return nil, nil
	}
	if l.rotationDue(settle) {
		if err := l.renew(roomy); err != nil {
			return nil, err
		}
	}
	return l.newWork(x), nil
}

// prepareAnew reads everything again, and prepares for a change.
func (l *Log) prepareAnew() error {
	if err := l.reload(); err != nil {
		return err
	}
	return l.prepare(true)
}

// droppedLive reports whether the state dropped the live journal of index.json, since a later one repeats it, before a
// fold counted that journal up to an offset. Rows name its records now, so it must be settled.
func (s *state) droppedLive(x *indexFile) bool {
	return x.Offset > 0 && slices.Contains(s.superseded, x.Live)
}

// rotationDue reports whether a fold begins a new journal.
func (l *Log) rotationDue(settle bool) bool {
	j := l.state.newest()
	size := j.end - j.first
	return size > 0 && (settle || size >= l.opts.FoldBytes*int64(l.opts.Retain))
}

// newWork returns the fold of everything that the journals have beyond index.json.
func (l *Log) newWork(x *indexFile) *foldWork {
	s := l.state
	live := s.newest()
	w := &foldWork{seq: s.seq, chain: s.chain, offset: live.last, newestAt: s.newestAt, metadata: s.metadataCopy(), folders: s.folders()}
	w.sync = func() error { return nil }
	if end := live.end; !live.isDurable() {
		w.sync = func() error { return live.syncTo(end) }
	}
	w.journals, w.settled, w.superseded = append(x.retained(), s.superseded...), x.Settled, s.superseded
	w.idle = s.seq == x.Seq && !x.unsettled() && len(s.superseded) == 0
	w.unsettled = x.unsettledJournals() + len(s.journals) - 1
	for _, j := range s.journals {
		w.journals = append(w.journals, j.gen)
	}
	slices.Sort(w.journals)
	for id, ln := range s.lines {
		if ln.Count == 0 {
			continue
		}
		f := foldLine{start: ln.start, cut: ln.cut > x.Seq}
		f.Counts, f.Placement, f.Folder = ln.Counts, ln.Placement, w.folders[id]
		f.entries = slices.DeleteFunc(ln.unfolded(), func(e Entry) bool { return e.seq != 0 && e.seq <= x.Seq })
		s.countFound(ln, &f)
		w.lines = append(w.lines, f)
	}
	slices.SortFunc(w.lines, func(a, b foldLine) int { return compareIDs(a.Line, b.Line) })
	if x.isFirst() {
		w.first = x
	}
	return w
}

// countFound reduces the count of lost messages by those that now have another version, whose rows are to be written.
func (s *state) countFound(ln *line, f *foldLine) {
	for i := 0; f.Lost > 0 && i < len(f.entries) && f.entries[i].Position < ln.start; i++ {
		rows, err := s.readRows(ln, f.entries[i].Position, f.entries[i].Position+1)
		if err == nil && rows[0].isLost() && !f.entries[i].isLost() {
			f.Lost--
		}
	}
}

// timeOrZero converts nanoseconds since 1970 to a time; 0 stands for none.
func timeOrZero(ns int64) (t time.Time) {
	if ns > 0 {
		t = time.Unix(0, ns).UTC()
	}
	return t
}

// finishFold replaces index.json. It names the journals to keep, the newest ones, and removes the others.
func (l *Log) finishFold(w *foldWork, keep []uint64) (*indexFile, error) {
	x := &indexFile{
		Context: l.dir.ID, Store: l.dir.Store, Seq: w.seq, chain: w.chain, Journals: keep, Live: keep[len(keep)-1], Offset: w.offset,
		Settled: w.settled, RowWidth: rowWidth, UpdatedAt: time.Now().UTC(), NewestAt: timeOrZero(w.newestAt), Metadata: w.metadata,
	}
	for i := range w.lines {
		x.Lines = append(x.Lines, w.lines[i].FoldedLine)
	}
	x.Dropped = x.dropped(l.dir)
	gone := w.journals[:len(w.journals)-len(keep)]
	if len(gone) > 0 {
		w.damaged = append(w.damaged, l.replaced(w.journals[:len(gone)+1])...)
		if gens, err := generations(l.dir); err == nil {
			gone = slices.Concat(l.leading(gens, w.journals), gone)
		}
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
	for i, gen := range gone { // in order of their numbers: see catchUp
		name := ctxfolder.JournalFile(gen)
		if i > 0 { // a crash must not bring back a journal that leads to none: it would count as another history
			if err := l.dir.FS.SyncDir("."); err != nil {
				return nil, err
			}
		}
		if err := l.dir.MakeWay(name); err != nil {
			return nil, err
		}
		remove := l.remove
		if slices.Contains(w.damaged, gen) {
			remove = l.trash
		}
		if err := cmp.Or(remove(name), l.removeDoubts(gen)); err != nil {
			return nil, err
		}
	}
	return x, l.removeRows(x)
}

// workOf returns a fold that changes nothing.
func (l *Log) workOf(x *indexFile) *foldWork {
	w := &foldWork{
		seq: x.Seq, chain: x.chain, offset: x.Offset, settled: x.Settled, journals: x.Journals, newestAt: x.newest(), metadata: x.Metadata,
	}
	for _, ln := range x.Lines {
		w.lines = append(w.lines, foldLine{FoldedLine: ln})
	}
	return w
}

// commit replaces index.json and updates the state.
func (l *Log) commit(w *foldWork, keep []uint64) error {
	x, err := l.finishFold(w, keep)
	if err != nil {
		return err
	}
	l.retire(x)
	return nil
}

// retire updates the state to an index.json that this log wrote. The caller holds advance.
func (l *Log) retire(x *indexFile) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != nil {
		l.state.retire(x)
	}
}
