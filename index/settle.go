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
var ErrOnlyCopy = errors.New("holds the only good copy of some data and stays")

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
	s := l.settling()
	s.folders, s.settled = w.folders, w.settled
	lines, harmed := s.read(journals, w.superseded)
	w.harmed = harmed
	for line, positions := range lines {
		if err := s.line(line, positions); err != nil {
			return 0, err
		}
	}
	if err := s.rowsOf(harmed); err != nil {
		return 0, err
	}
	if err := s.mend(locked); err != nil {
		return 0, err
	}
	if err := s.sync(func() error { return l.keepAgain(journals) }); err != nil {
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
// settles the readable part of a damaged journal, which then goes to the trash, and skips superseded journals.
func (s *settling) read(journals, superseded []uint64) (lines map[uuid.UUID][]int64, harmed []uint64) {
	lines = map[uuid.UUID][]int64{}
	for _, gen := range journals {
		if slices.Contains(superseded, gen) {
			continue
		}
		n, err := s.log.readPayloads(gen, s.mustRewrite(gen))
		whole := false
		switch {
		case err == nil:
			whole = true
		case errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, ErrDamaged):
			harmed = append(harmed, gen)
		default: // the unread data may be whole
			s.stuck[gen] = err
		}
		for _, c := range n.changes {
			if c.kind == KindAppend || c.kind == KindReplace {
				lines[c.address.Line] = append(lines[c.address.Line], c.address.Position)
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
	return lines, harmed
}

// readPayloads reads a journal and stores its payloads. With an error that wraps ErrDamaged it returns what is whole.
func (l *Log) readPayloads(gen uint64, durable bool) (news, error) {
	var n news
	j, err := openJournal(l.dir, gen, nil)
	if err == nil {
		n, err = j.whole()
		err = cmp.Or(err, j.f.Close())
	}
	if errors.Is(err, ErrDamaged) {
		scrap, serr := readScrap(l.dir, gen)
		if serr != nil && regular(l.dir, ctxfolder.JournalFile(gen)) {
			err = fmt.Errorf("%s %w: %w", ctxfolder.JournalFile(gen), errUnread, serr)
		}
		n.changes = scrap.changes
	}
	damaged, kerr := l.keepPayloads(gen, n.changes, durable)
	if kerr == nil && damaged && err == nil {
		err = fmt.Errorf("%w: payload in %s", ErrDamaged, ctxfolder.JournalFile(gen))
	}
	return n, cmp.Or(kerr, err)
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

// mustRewrite reports whether a settle rewrites the files of a journal's records even where they look right. The kernel
// reports a failed write only to descriptors that were open at that moment, and keeps the data in memory. So a settle
// relies on a sync only for files that were written since this log was loaded, or that were settled before.
func (s *settling) mustRewrite(gen uint64) bool {
	l := s.log
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.resettle || gen > s.settled && gen <= l.foundGen
}

func (l *Log) settling() settling {
	return settling{log: l, wrote: map[string][]uuid.UUID{}, stuck: map[uint64]error{}, whole: map[recordAt]bool{}}
}

// settling is the work of one settle.
type settling struct {
	log     *Log
	folders map[uuid.UUID]string   // of the lines
	settled uint64                 // journals up to here were settled before
	wrong   map[uuid.UUID][]Entry  // messages that are wrong in their places, by line
	wrote   map[string][]uuid.UUID // files by folder, for systems that sync each one
	whole   map[recordAt]bool      // records of journals that were read to their ends
	stuck   map[uint64]error       // journals with something that cannot be stored in its place, and why
}

// recordAt is the place of a record and the checksum of its body.
type recordAt struct {
	gen uint64
	off int64
	sum uint64
}

// line examines the files of some of a line's messages, in their current versions.
func (s *settling) line(line uuid.UUID, positions []int64) error {
	for _, p := range positions {
		entries, err := s.log.entries(line, p, p+1)
		if err != nil {
			return err
		}
		if len(entries) > 0 { // the line was not cut
			s.look(line, &entries[0])
		}
	}
	return nil
}

// rowsOf examines every message whose row names one of these journals, which are not whole. A row finds its record
// whatever is wrong around it.
func (s *settling) rowsOf(harmed []uint64) error {
	if len(harmed) == 0 {
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
			for i := range entries {
				if slices.Contains(harmed, entries[i].gen) {
					s.look(line, &entries[i])
				}
			}
		}
	}
	return nil
}

// look notes whether a message is right in its place.
func (s *settling) look(line uuid.UUID, e *Entry) {
	folder := s.folders[line]
	switch {
	case e.Lost == Erased || archived(*e):
		return
	case folder == "":
		if s.anywhere(e) {
			return
		}
	case s.stays(s.file(folder, e), e):
		s.wrote[folder] = append(s.wrote[folder], e.FileID())
		return
	}
	if s.wrong == nil {
		s.wrong = map[uuid.UUID][]Entry{}
	}
	s.wrong[line] = append(s.wrong[line], *e)
}

// anywhere reports whether any folder has the file of a message whose line metadata.json does not know.
func (s *settling) anywhere(e *Entry) bool {
	folders, _ := s.log.dir.Folders()
	return slices.ContainsFunc(folders, func(folder string) bool { return s.file(folder, e) == FileExact })
}

// mendedAtOnce is how many files mend writes before it releases the context lock for others.
const mendedAtOnce = 64

// mend writes the files that are not right, under the context lock: since the look, a branch may have been renamed and
// a message replaced. If a file cannot be written, its journal is stuck, and mend writes the others.
func (s *settling) mend(locked func(func(folders map[uuid.UUID]string) error) error) error {
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

func (s *settling) mendSome(line uuid.UUID, entries []Entry) error {
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
		return fmt.Errorf("%w: the index was found broken meanwhile", ErrBusy)
	}
	return f(l.state.folders())
}

// message makes sure that a message's file exists. It keeps a right or edited one, rewrites any other from the journal,
// and reads it back. Old content goes to the trash, unless a crash left it. The caller holds the context lock.
//
// Crash order: the journal has the message until the file is durable.
func (s *settling) message(folder string, e *Entry) error {
	dir := s.log.dir
	_, is, why := e.ReadFile(dir, folder)
	if !s.stays(is, e) {
		b, ok := s.log.ReadRecord(e)
		switch {
		case !ok && s.whole[recordAt{e.gen, e.off, e.Sum}]:
			return fmt.Errorf("its record in %s could not be read again", ctxfolder.JournalFile(e.gen))
		case !ok:
			return nil // both copies are damaged, or the row is of another history: the row stays, reading reports it
		case folder == "":
			return errors.New("metadata.json does not say where its line keeps its files")
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
func (s *settling) torn(folder string, e *Entry, record []byte) bool {
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

// stays reports whether a settle leaves a file alone.
func (s *settling) stays(is FileState, e *Entry) bool {
	return is == FileEdited || is.Whole() && !s.mustRewrite(e.gen)
}

func (s *settling) file(folder string, e *Entry) FileState {
	_, is, _ := e.ReadFile(s.log.dir, folder)
	return is
}

// sync makes files, folders and blobs durable, if possible with one call, which also flushes other programs' writes to
// the same file system. Otherwise it syncs them one by one, and blobs syncs the blobs.
func (s *settling) sync(blobs func() error) error {
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
