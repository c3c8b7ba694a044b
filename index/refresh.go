package index

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Refresh reads what any process committed since.
func (l *Log) Refresh() error {
	l.advance.Lock()
	defer l.advance.Unlock()
	return l.catchUp()
}

// catchUp reads new records from the newest journal and from newer ones. The caller holds advance.
func (l *Log) catchUp() error {
	_, err := l.follow()
	return err
}

// follow is catchUp that reports whether blank space follows the last record, as it did before.
func (l *Log) follow() (unchanged bool, err error) {
	if l.state == nil || l.state.unsaved { // only a saved index gives a place to read on from
		return false, l.reload()
	}
	newest := l.state.newest()
	for {
		if unchanged, err = l.readOn(newest); err != nil {
			return false, l.reload()
		}
		if newest.isLast(l.dir) {
			return unchanged, nil
		}
		next, err := l.openNext(newest)
		if errors.Is(err, fs.ErrNotExist) && newest.exists(l.dir) == nil {
			return false, nil
		}
		if err != nil {
			return false, l.reload()
		}
		newest.sync.settle()
		l.mu.Lock()
		l.state.journals = append(l.state.journals, next)
		l.state.takeMetadata(KindMetadata, next.begin.Metadata, nil)
		err = l.state.parseMetadata()
		l.state.recount(next.begin.Lines)
		l.mu.Unlock()
		if err != nil {
			return false, err
		}
		newest = next
		l.forgetRetired()
	}
}

// openNext opens the journal that continues the newest one at the state's end. It fails with fs.ErrNotExist if none
// does, and a journal of another history has the number.
func (l *Log) openNext(newest *journal) (*journal, error) {
	next, err := openJournal(l.dir, newest.gen+1, nil)
	if err != nil {
		return nil, err
	}
	// The rotation held the lock, so the old journal is final now.
	_, err = l.readOn(newest)
	if err == nil && next.begin.place() == l.state.place() {
		return next, nil
	}
	if err == nil {
		if err = errChanged; !next.follows(newest) {
			err = fs.ErrNotExist
		}
	}
	return nil, errors.Join(err, next.f.Close())
}

// readOn applies the records of the newest journal after the last known one. unchanged says that there are none.
func (l *Log) readOn(j *journal) (unchanged bool, err error) {
	if j.unchanged() {
		return true, nil
	}
	news, err := j.read(maxSeq, nil)
	if err != nil {
		return false, err
	}
	if len(news.changes) == 0 && !news.torn && j.checked {
		return false, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return false, l.state.take(j, news)
}

// reload reads index.json, the journals that it names, and newer ones. A concurrent fold can remove a journal in
// between; then reload reads again. While index.json changes from one look to the next, others are at work and nothing
// is damaged. A mismatch that remains is damage, and reload rebuilds the state from rows and message files.
func (l *Log) reload() error {
	var broken error
	var intact *indexFile
	var now fs.FileInfo
	for same, looks := 0, 0; same < 4 && looks < 64; looks++ {
		if looks > 0 {
			time.Sleep(time.Millisecond << min(looks, 4)) // a writer may be at work
		}
		before := now
		x, info, err := statIndexFile(l.dir)
		if now = info; now == nil {
			now, _ = l.dir.FS.Lstat(ctxfolder.IndexFile)
		}
		if same++; !sameIndex(now, before) {
			same = 1
		}
		if l.distrusted() {
			return l.rebuild(fmt.Errorf("%w: rows of the index", ErrDamaged), l.anyIndexFile(), now)
		}
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				return err
			}
			broken = err
			break
		}
		if x.torn == nil {
			intact = x
		}
		s, err := readState(l.dir, x, l.held())
		if err == nil {
			return l.setStateOf(s, now)
		}
		if !errors.Is(err, ErrDamaged) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		broken = cmp.Or(x.torn, err)
	}
	return l.rebuild(broken, intact, now)
}

// readState reads the state from index.json and the unfolded journals.
func readState(dir *ctxfolder.Dir, x *indexFile, held []*journal) (*state, error) {
	s := &state{
		dir: dir, lines: make(map[uuid.UUID]*line, len(x.Lines)), seq: x.Seq, chain: x.chain,
		newestAt: x.newest(), settled: x.Settled, live: x.Live, offset: x.Offset,
	}
	s.folded.only(x)
	s.takeMetadata(KindMetadata, x.Metadata, nil)
	for i := range x.Lines {
		ln := newLine(x.Lines[i].Counts)
		ln.Placement = x.Lines[i].Placement
		s.lines[ln.Line] = ln
	}
	err := s.openLive(x, held)
	if err == nil {
		s.dropSuperseded(held)
		err = s.replay()
	}
	if err != nil {
		_ = closeBut(s.journals, held)
		return nil, err
	}
	return s, nil
}

// held returns the journals that are open.
func (l *Log) held() []*journal {
	if l.state == nil {
		return nil
	}
	return l.state.journals
}

// rebuild rebuilds the state beside an unreliable index.json. now is the stat data of that file.
func (l *Log) rebuild(why error, x *indexFile, now fs.FileInfo) error {
	s, err := rebuild(l.dir, l.held(), x)
	if err != nil {
		if gone := l.dir.Check(); errors.Is(gone, ctxfolder.ErrGone) {
			return gone
		}
		if errors.Is(err, ctxfolder.ErrMetadata) {
			return err
		}
		return fmt.Errorf("rebuilding the index of %s: %w", l.dir.ID, err)
	}
	s.note("index", "%v; the index was rebuilt", why)
	return l.setStateOf(s, now)
}

// distrusted reports whether index.json is still the file whose rows are damaged.
func (l *Log) distrusted() bool {
	if l.distrust == nil {
		return false
	}
	if now, err := l.dir.FS.Lstat(ctxfolder.IndexFile); err == nil && !sameIndex(now, l.distrust) {
		l.distrust = nil
	}
	return l.distrust != nil
}

// rebuildRows rebuilds the state from message files and journals, in memory, because rows turned out to be damaged. The
// next writer saves it.
func (l *Log) rebuildRows(why error) error {
	l.advance.Lock()
	defer l.advance.Unlock()
	return l.distrustRows(why)
}

// distrustRows is rebuildRows for the holder of advance.
func (l *Log) distrustRows(why error) error {
	now, err := l.dir.FS.Lstat(ctxfolder.IndexFile)
	if err == nil {
		l.distrust = now
	}
	return l.rebuild(why, l.anyIndexFile(), now)
}

// anyIndexFile returns index.json, or an empty one if it cannot be read.
func (l *Log) anyIndexFile() *indexFile {
	if x, err := readIndexFile(l.dir); err == nil && x.torn == nil {
		return x
	}
	return &indexFile{}
}

// forgetRetired drops the journals that a fold removed, and the entries in memory that now have rows.
func (l *Log) forgetRetired() { _, _ = l.takeFolded() }

// noticeFolds is forgetRetired if others replaced index.json. The caller holds advance, and the log is up to date.
func (l *Log) noticeFolds() {
	if now, err := l.dir.FS.Lstat(ctxfolder.IndexFile); err == nil && !sameIndex(now, l.read) {
		l.forgetRetired()
	}
}

// takeFolded reads index.json and applies what others folded or archived to the state. The caller holds advance.
func (l *Log) takeFolded() (*indexFile, error) {
	now, _ := l.dir.FS.Lstat(ctxfolder.IndexFile)
	x, err := readIndexFile(l.dir)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.retire(x) {
		l.noteIndexFile(now)
	}
	return x, nil
}

// setStateOf sets a state that was read from an index.json, or rebuilt beside one. Whoever finds the version changed
// finds the state too.
func (l *Log) setStateOf(s *state, now fs.FileInfo) error {
	err := l.setState(s)
	l.noteIndexFile(now)
	return err
}

// noteIndexFile notes the index.json to which the state belongs.
func (l *Log) noteIndexFile(now fs.FileInfo) {
	if !sameIndex(now, l.read) {
		l.version.Add(1)
	}
	l.read = now
}

// IndexVersion counts how often the log read another index.json, for [Log.IndexChanged].
func (l *Log) IndexVersion() uint64 { return l.version.Load() }

// IndexChanged reads index.json again if it changed. It reports whether the log read a change since IndexVersion
// returned seen, in whichever call. A change may have removed rows, message files and packs.
func (l *Log) IndexChanged(seen uint64) bool {
	l.advance.Lock()
	defer l.advance.Unlock()
	now, err := l.dir.FS.Lstat(ctxfolder.IndexFile)
	if err == nil && l.state != nil && l.state.unsaved {
		return l.readAgain(now) || l.version.Load() != seen
	}
	if err != nil || l.state == nil || l.read != nil && sameIndex(now, l.read) {
		return l.version.Load() != seen
	}
	if l.catchUp() == nil {
		l.noticeFolds()
	}
	return true
}

// readAgain tries once to read index.json, now, in place of a rebuilt state: the missing files may only have been late.
func (l *Log) readAgain(now fs.FileInfo) bool {
	if l.distrusted() {
		return false
	}
	x, err := readIndexFile(l.dir)
	if err != nil {
		return false
	}
	s, err := readState(l.dir, x, l.held())
	if err != nil {
		return false
	}
	return l.setStateOf(s, now) == nil
}

func sameIndex(a, b fs.FileInfo) bool {
	return a != nil && b != nil && vfs.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// retire forgets what a fold brought into index.json: journals, and the entries that now have rows. It reports whether
// the state is then that of x, which it is not while it has journals to read.
func (s *state) retire(x *indexFile) bool {
	if s.unsaved || s.seq < x.Seq {
		return false // it was rebuilt because the rows are unreliable, or has records to read
	}
	for len(s.journals) > 1 && s.journals[0].gen < x.Live {
		_ = s.journals[0].f.Close()
		s.journals = s.journals[1:]
	}
	if s.journals[0].gen < x.Live {
		return false
	}
	s.settled, s.live, s.offset = x.Settled, x.Live, x.Offset
	for sum, at := range s.payloads {
		if at.gen < x.Live {
			delete(s.payloads, sum)
		}
	}
	s.folded.only(x)
	s.superseded = slices.DeleteFunc(s.superseded, func(gen uint64) bool { return gen < x.Live })
	s.rows.Clear() // a rebuild may have replaced the files
	for id, ln := range s.lines {
		if ln.Count == 0 && ln.cut <= x.Seq {
			delete(s.lines, id)
			continue
		}
		n := len(ln.recent)
		for n > 0 && ln.recent[n-1].seq > x.Seq {
			n--
		}
		for i := range n { // all of them have rows, even those replaced since
			if e := ln.recent[i]; e.seq > x.Seq {
				ln.changeRow(e)
			}
		}
		ln.byID = nil
		ln.recent = slices.Clone(ln.recent[n:])
		ln.start += int64(n)
		for p, e := range ln.changed {
			if e.seq <= x.Seq {
				delete(ln.changed, p)
			}
		}
	}
	packs := map[uuid.UUID]bool{}
	for i := range x.Lines {
		if ln := s.lines[x.Lines[i].Line]; ln != nil {
			if !slices.Equal(ln.Packs, x.Lines[i].Packs) {
				s.dir.ForgetFolders() // archiving may have removed one
			}
			ln.Placement = x.Lines[i].Placement
			ln.Lost, ln.lostIDs = x.Lines[i].Lost, nil
		}
		for _, id := range x.Lines[i].Packs {
			packs[id] = true
		}
	}
	s.packs.Only(func(id uuid.UUID) bool { return packs[id] })
	return true
}

// recount takes over another process's byte counts of lines at the state's end: it may have erased messages.
func (s *state) recount(lines []Counts) {
	for _, c := range lines {
		if ln := s.lines[c.Line]; ln != nil {
			ln.Bytes = c.Bytes
		}
	}
}
