package index

import (
	"cmp"
	stdcontext "context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// ErrOnlyCopy reports a journal that has to stay.
var ErrOnlyCopy = errors.New("stays: it holds the only good copy of some data")

// settle makes the contents of folded journals durable, so that these can go. It reads each current message of theirs
// from its place, a file or a pack, rewrites wrong files from the journal, and stores the payloads. It returns how
// many, from the oldest on, can go. An error that wraps ErrOnlyCopy says why the others stay: each holds the only good
// copy of something or follows one that does, since journals go in order. ErrDamaged and ErrBusy are about the index.
//
// Crash order: until SyncAll returns, a power cut may leave a file missing, empty or torn. The journals still exist,
// and readers take the message from them. Settling again rewrites the files.
func (l *Log) settle(ctx stdcontext.Context, w *foldWork, journals []uint64) (int, error) {
	return l.settleUnder(w, journals, func(f func(folders map[uuid.UUID]string) error) error { return l.underLock(ctx, f) })
}

// withRetry runs a settle. A failed sync may be about any file written since the last one, even by another program. So
// the settle runs a second time and rewrites everything: the first error is not about these files.
func (l *Log) withRetry(settle func() error) error {
	err := settle()
	if errors.Is(err, ErrDurability) {
		l.resettle = true
		err = settle()
	}
	if err == nil || errors.Is(err, ErrOnlyCopy) {
		l.resettle = false
	}
	return err
}

// settleUnder is settle with the context lock from locked, which it takes more than once if it has files to write.
func (l *Log) settleUnder(
	w *foldWork,
	journals []uint64,
	locked func(func(folders map[uuid.UUID]string) error) error,
) (settled int, err error) {
	err = l.withRetry(func() error {
		settled, err = l.settleOnce(w, journals, locked)
		return err
	})
	return settled, err
}

func (l *Log) settleOnce(w *foldWork, journals []uint64, locked func(func(folders map[uuid.UUID]string) error) error) (int, error) {
	s := l.newSettle()
	s.folders, s.settled = w.folders, w.settled
	lines, damaged := s.read(journals, w.superseded)
	w.damaged = damaged
	for line, positions := range lines {
		if err := s.inspectLine(line, positions); err != nil {
			return 0, err
		}
	}
	if err := s.inspectRowsOf(damaged); err != nil {
		return 0, err
	}
	if err := s.mend(locked); err != nil {
		return 0, err
	}
	if err := s.sync(func() error { return l.storePayloadsDurably(journals) }); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrDurability, err)
	}
	for i, gen := range journals {
		if err := s.stuck[gen]; err != nil {
			return i, fmt.Errorf("%s %w: %w", ctxfolder.JournalFile(gen), ErrOnlyCopy, err)
		}
	}
	return len(journals), nil
}

// read stores the payloads of journals and returns the positions that their records commit, sorted and unique. It
// settles the readable part of a damaged journal, which then moves to the trash, and skips superseded journals.
func (s *settleRun) read(journals, superseded []uint64) (lines map[uuid.UUID][]int64, damaged []uint64) {
	lines = map[uuid.UUID][]int64{}
	for _, gen := range journals {
		if slices.Contains(superseded, gen) {
			continue
		}
		n, err := s.log.readPayloads(gen, s.found(gen))
		whole := false
		switch {
		case err == nil:
			whole = true
		case errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, ErrDamaged):
			damaged = append(damaged, gen)
		default: // the unread data may be whole
			s.stuck[gen] = err
		}
		for _, c := range n.changes {
			if c.kind == KindAppend || c.kind == KindReplace {
				lines[c.address.Line] = append(lines[c.address.Line], c.address.Position)
				s.copies[bodyKey{c.len, c.sum}] = recordAt{gen, c.off, c.sum}
				if whole {
					s.whole[recordAt{gen, c.off, c.sum}] = true
				}
			}
		}
	}
	for line, p := range lines {
		slices.Sort(p)
		lines[line] = slices.Compact(p)
	}
	return lines, damaged
}

// readPayloads reads a journal and stores its payloads, durably those of the records before an offset. With an error
// that wraps ErrDamaged it returns what is whole.
func (l *Log) readPayloads(gen uint64, durable int64) (news, error) {
	n, err := readFolded(l.dir, gen)
	if errors.Is(err, ErrDamaged) {
		found, serr := salvage(l.dir, gen, 0)
		if serr != nil && regular(l.dir, ctxfolder.JournalFile(gen)) {
			err = fmt.Errorf("%s %w: %w", ctxfolder.JournalFile(gen), errUnread, serr)
		}
		n.changes = found.changes
	}
	k, _ := slices.BinarySearchFunc(n.changes, durable, func(c change, off int64) int { return cmp.Compare(c.off, off) })
	damaged, kerr := l.storePayloads(gen, n.changes[:k], true)
	others, oerr := l.storePayloads(gen, n.changes[k:], false)
	damaged, kerr = damaged || others, cmp.Or(kerr, oerr)
	if kerr == nil && damaged && err == nil {
		err = fmt.Errorf("%w: a payload in %s", ErrDamaged, ctxfolder.JournalFile(gen))
	}
	return n, cmp.Or(kerr, err)
}

// storePayloadsDurably stores the payloads of journals one by one, durably.
func (l *Log) storePayloadsDurably(journals []uint64) error {
	for _, gen := range journals {
		if _, err := l.readPayloads(gen, math.MaxInt64); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrDamaged) {
			return err
		}
	}
	return nil
}

// found returns up to where a settle rewrites the files of a journal's records even if they look right. The kernel
// reports a failed write only to descriptors that were open at that moment, and keeps the data in memory. So a settle
// relies on a sync only for files that were written since this log was loaded, or that were settled before.
func (s *settleRun) found(gen uint64) int64 {
	l := s.log
	l.mu.RLock()
	defer l.mu.RUnlock()
	switch {
	case l.resettle || gen > s.settled && gen < l.foundGen:
		return math.MaxInt64
	case gen > s.settled && gen == l.foundGen:
		return l.foundEnd
	}
	return 0
}

func (l *Log) newSettle() settleRun {
	return settleRun{
		log: l, wrote: map[string][]uuid.UUID{}, stuck: map[uint64]error{}, whole: map[recordAt]bool{},
		copies: map[bodyKey]recordAt{},
	}
}

// settleRun is the work of one settle.
type settleRun struct {
	log     *Log
	folders map[uuid.UUID]string   // of the lines
	settled uint64                 // journals up to here were settled before
	wrong   map[uuid.UUID][]Entry  // messages that are wrong in their places, by line
	wrote   map[string][]uuid.UUID // files by folder, for systems that sync each one
	whole   map[recordAt]bool      // records of journals that were read to their ends
	copies  map[bodyKey]recordAt   // where journals have each message
	stuck   map[uint64]error       // journals with something that cannot be stored in its place, and why
}

// recordAt is the place of a record and the checksum of its body.
type recordAt struct {
	gen uint64
	off int64
	sum uint64
}

// inspectedAtOnce is how many entries a settle reads from the rows at once.
const inspectedAtOnce = 256

// inspectLine examines the files of some of a line's messages, in their current versions. The positions are in order.
func (s *settleRun) inspectLine(line uuid.UUID, positions []int64) error {
	for len(positions) > 0 {
		n := 1
		for n < min(len(positions), inspectedAtOnce) && positions[n] == positions[0]+int64(n) {
			n++
		}
		entries, err := s.log.entries(line, positions[0], positions[n-1]+1) // none where the line was cut
		if err != nil {
			return err
		}
		s.inspect(line, entries)
		positions = positions[n:]
	}
	return nil
}

// inspectRowsOf examines every message whose row names one of these journals, which are not whole. A row finds its
// record whatever is wrong around it.
func (s *settleRun) inspectRowsOf(damaged []uint64) error {
	if len(damaged) == 0 {
		return nil
	}
	all, _, err := s.log.AllCounts()
	if err != nil {
		return err
	}
	for line := range all {
		for entries, err := range s.log.pages(s.log.entries, line, 0, math.MaxInt64) {
			if err != nil {
				return err
			}
			s.inspect(line, slices.DeleteFunc(entries, func(e Entry) bool { return !slices.Contains(damaged, e.gen) }))
		}
	}
	return nil
}

// inspect notes which messages are right in their places.
func (s *settleRun) inspect(line uuid.UUID, entries []Entry) {
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.Lost == Erased || archived(e) })
	folder := s.folders[line]
	files := s.log.dir.Files(folder)
	defer files.Release()
	exact := make([]bool, len(entries))
	files.Load(len(entries), func(i int) (uuid.UUID, int64) { return entries[i].FileID(), entries[i].Size }, func(i int, b []byte) {
		exact[i] = entries[i].Lost == "" && entries[i].exact(b) != nil
		vfs.Yield()
	})
	for i := range entries {
		e, is := &entries[i], FileExact
		if !exact[i] {
			is = s.fileState(folder, e)
		}
		switch {
		case folder == "":
			if s.hasFileAnywhere(e) {
				continue
			}
		case s.keepsFile(is, e):
			s.wrote[folder] = append(s.wrote[folder], e.FileID())
			continue
		}
		if s.wrong == nil {
			s.wrong = map[uuid.UUID][]Entry{}
		}
		s.wrong[line] = append(s.wrong[line], *e)
	}
}

// hasFileAnywhere reports whether any folder has the file of a message whose line metadata.json does not know.
func (s *settleRun) hasFileAnywhere(e *Entry) bool {
	folders, _ := s.log.dir.Folders()
	return slices.ContainsFunc(folders, func(folder string) bool { return s.fileState(folder, e) == FileExact })
}
