package index

import (
	stdcontext "context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Options of a Log.
type Options struct {
	// FoldBytes is the size of a journal at which it is folded.
	FoldBytes int64
	// Relaxed leaves out the sync of a commit: a crash may lose the newest messages, never harm others.
	Relaxed bool
	// Payloads is where the payloads in a journal go before the journal does.
	Payloads PayloadStore
	// Wait is how long to wait for one lock, at the most; 0 for as long as the caller's context allows. A wait that was too long gives
	// context.DeadlineExceeded.
	Wait time.Duration
	// Retain is how many folded journals there may be before the message files of the older ones are made durable and
	// they go.
	Retain int
}

// Log is the open index of one context. Its methods can be called by several goroutines. Those that write
// are for the holder of the folder's lock.
type Log struct {
	dir  *ctxfolder.Dir
	opts Options

	// advance is held by who reads on in the journals or writes to them: only the holder changes state, and
	// he reads it without mu.
	advance sync.Mutex

	// read is the index.json that the state is of, or was made beside. It is guarded by advance. renewals counts how often it was another one.
	read     fs.FileInfo
	renewals atomic.Uint64

	// distrust is set when rows turned out to be harmed though index.json is intact: until that file is
	// replaced, the state is rebuilt instead of read.
	distrust fs.FileInfo

	// disbelieved is the metadata.json of which a rebuild does not believe how long lines are. It is guarded by advance.
	disbelieved ctxfolder.Stamp

	// resettle says that a settle's sync has failed: what was written before it must not be trusted. For the
	// holder of the fold lock.
	resettle bool
	failures uint64 // see Dir.SyncAll

	// stuck is how many journals the last settle could not let go of: it is tried again when as many more are folded as may be
	// there. For the holder of the fold lock.
	stuck int

	// mu guards state against readers. It is never held for I/O on message files or journals' ends.
	mu    sync.RWMutex
	state *state

	// foundGen is the newest journal that had a record when the log was first loaded: see mustRewrite. It is guarded by mu.
	foundGen uint64
	loaded   bool
}

// Open returns the log of a context's folder. It reads nothing.
func Open(dir *ctxfolder.Dir, opts Options) *Log {
	if opts.FoldBytes <= 0 {
		opts.FoldBytes = DefaultFoldBytes
	}
	if opts.Retain <= 0 {
		opts.Retain = defaultRetain
	}
	return &Log{dir: dir, opts: opts, failures: dir.SyncFailures()}
}

// DefaultFoldBytes is the size of a journal at which it is folded unless the options say otherwise.
const DefaultFoldBytes = 512 << 10

// defaultRetain times DefaultFoldBytes is what a context has in its journals beside its message files at the most.
const defaultRetain = 8

func (l *Log) acquire(ctx stdcontext.Context, lock vfs.Lock) error {
	if l.opts.Wait > 0 {
		limited, cancel := stdcontext.WithTimeout(ctx, l.opts.Wait)
		defer cancel()
		ctx = limited
	}
	return lock.Acquire(ctx)
}

// Close lets go of the journals.
func (l *Log) Close() error {
	l.advance.Lock()
	defer l.advance.Unlock()
	return l.become(nil)
}

// become makes s the state, and closes what the one before held open and s does not.
func (l *Log) become(s *state) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.state
	l.state = s
	if s != nil && !l.loaded {
		l.loaded = true
		if len(s.journals) > 0 {
			j := s.newest()
			if l.foundGen = j.gen; j.end == j.first {
				l.foundGen--
			}
		}
	}
	if old == nil {
		return nil
	}
	if s != nil {
		l.dir.ForgetFolders()
		old.journals = slices.DeleteFunc(old.journals, func(o *journal) bool {
			return slices.ContainsFunc(s.journals, func(n *journal) bool { return n.f == o.f })
		})
	}
	return old.close()
}

// load reads the index and the journals, if that was not done yet.
func (l *Log) load() error {
	l.mu.RLock()
	done := l.state != nil
	l.mu.RUnlock()
	if done {
		return nil
	}
	l.advance.Lock()
	defer l.advance.Unlock()
	if l.state != nil {
		return nil
	}
	return l.reload()
}

// reload reads index.json, the journals it names, and newer ones. A fold that goes on meanwhile can remove
// a journal between the two: then it reads again. What still does not fit together is damage, and the
// state is rebuilt from rows and message files. While index.json changes from one look to the next, others are at work, and it is no damage.
func (l *Log) reload() error {
	var broken error
	var intact *folded
	var now fs.FileInfo
	for same, looks := 0, 0; same < 4 && looks < 64; looks++ {
		if looks > 0 {
			time.Sleep(time.Millisecond << min(looks, 4)) // a writer may be at work
		}
		before := now
		now, _ = l.dir.FS.Lstat(ctxfolder.IndexFile)
		if same++; !sameIndex(now, before) {
			same = 1
		}
		if l.distrusted() {
			return l.rebuild(fmt.Errorf("%w: rows", ErrDamaged), l.anyFolded(), now)
		}
		x, err := readFolded(l.dir)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				return err
			}
			broken = err
			break
		}
		intact = x
		s, err := readState(l.dir, x, l.held())
		if err == nil {
			l.took(now)
			return l.become(s)
		}
		if !errors.Is(err, ErrDamaged) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		broken = err
	}
	return l.rebuild(broken, intact, now)
}

// rebuild makes the state anew, beside an index.json, now, that cannot be relied on.
func (l *Log) rebuild(why error, x *folded, now fs.FileInfo) error {
	s, err := rebuild(l.dir, l.held(), x)
	if err != nil {
		if gone := l.dir.Check(); errors.Is(gone, ctxfolder.ErrGone) {
			return gone
		}
		return fmt.Errorf("rebuilding the index of %s: %w", l.dir.ID, err)
	}
	s.note("index", "%v: rebuilt", why)
	l.took(now)
	return l.become(s)
}

// distrusted reports whether index.json is still the one whose rows are harmed.
func (l *Log) distrusted() bool {
	if l.distrust == nil {
		return false
	}
	if now, err := l.dir.FS.Lstat(ctxfolder.IndexFile); err == nil && !sameIndex(now, l.distrust) {
		l.distrust = nil
	}
	return l.distrust != nil
}

// rebuildRows makes the state anew from message files and journals, in memory, because rows turned out to be
// harmed; the next writer saves it.
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
	return l.rebuild(why, l.anyFolded(), now)
}

// anyFolded returns index.json, or one that says nothing.
func (l *Log) anyFolded() *folded {
	if x, err := readFolded(l.dir); err == nil {
		return x
	}
	return &folded{}
}

// held returns the journals that are open.
func (l *Log) held() []*journal {
	if l.state == nil {
		return nil
	}
	return l.state.journals
}

// readState begins at index.json and reads the journals that are not folded.
func readState(dir *ctxfolder.Dir, x *folded, held []*journal) (*state, error) {
	s := &state{dir: dir, width: x.RowWidth, settled: x.Settled, kept: kept{gens: x.retained()}}
	s.beginAt(slices.Values(x.Lines), x.Seq, x.chain)
	s.newestAt = x.newest()
	err := s.openLive(x, held)
	if err == nil && x.RowWidth != rowWidth {
		err = fmt.Errorf("%w: rows of %d bytes, wanted %d", ErrDamaged, x.RowWidth, rowWidth)
	}
	if err == nil {
		s.dropSuperseded(held)
		err = s.replay()
	}
	if err != nil {
		s.closeBut(held)
		return nil, err
	}
	return s, nil
}

// Refresh reads what was committed since, by whomever.
func (l *Log) Refresh() error {
	l.advance.Lock()
	defer l.advance.Unlock()
	return l.catchUp()
}

// catchUp reads on in the newest journal and in newer ones. The caller holds advance.
func (l *Log) catchUp() error {
	if l.state == nil {
		return l.reload()
	}
	if l.state.unsaved {
		// Without a saved index there is nothing to read on from.
		return l.reload()
	}
	newest := l.state.newest()
	now, err := vfs.LstatNumber(l.dir.FS, ctxfolder.JournalFile(newest.gen))
	if err != nil || !vfs.SameFile(now, newest.info) {
		return l.reload()
	}
	for {
		if err := l.readOn(newest); err != nil {
			return l.reload()
		}
		if l.state.stray.still(l.dir, newest.gen+1) {
			return nil
		}
		next, err := openJournal(l.dir, newest.gen+1, nil)
		if errors.Is(err, fs.ErrNotExist) {
			if newest.there(l.dir) != nil {
				return l.reload()
			}
			return nil
		}
		if err != nil {
			return l.reload()
		}
		// The rotation was under the lock: what the old journal holds is final now.
		err = l.readOn(newest)
		if err == nil && !next.follows(newest) {
			l.state.stray = stray{next.gen, next.info}
			_ = next.f.Close()
			return nil
		}
		if err != nil || next.begin.Seq != l.state.seq || next.begin.chain != l.state.chain {
			_ = next.f.Close()
			return l.reload()
		}
		newest.sync.settle()
		l.mu.Lock()
		l.state.journals = append(l.state.journals, next)
		l.state.metadata = next.begin.Metadata
		l.state.recount(next.begin.Lines)
		l.mu.Unlock()
		newest = next
		l.forgetRetired()
	}
}

// readOn takes the records of the newest journal that are behind the last one known into the state.
func (l *Log) readOn(j *journal) error {
	if j.quiet() {
		return nil
	}
	news, err := j.read(maxSeq, l.state.acked)
	if err != nil {
		return err
	}
	if len(news.changes) == 0 && news.torn == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.take(j, news)
}

// forgetRetired drops the journals that a fold removed, and the entries that were in memory because of
// them: they have rows.
func (l *Log) forgetRetired() { _, _ = l.takeFolded() }

// takeFolded reads index.json, and takes into the state what others folded or archived. The caller holds advance.
func (l *Log) takeFolded() (*folded, error) {
	now, _ := l.dir.FS.Lstat(ctxfolder.IndexFile)
	x, err := readFolded(l.dir)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.retire(x) {
		l.took(now)
	}
	return x, nil
}

// took notes that the state is that of an index.json, or was made beside it.
func (l *Log) took(now fs.FileInfo) {
	if !sameIndex(now, l.read) {
		l.renewals.Add(1)
	}
	l.read = now
}

// Renewals counts how often another index.json was taken in: for [Log.Renewed].
func (l *Log) Renewals() uint64 { return l.renewals.Load() }

// Renewed takes in what others did to index.json since it was read last, and reports whether there was anything since Renewals
// gave seen, whoever took it in: rows, message files and packs may have been removed for it.
func (l *Log) Renewed(seen uint64) bool {
	l.advance.Lock()
	defer l.advance.Unlock()
	now, err := l.dir.FS.Lstat(ctxfolder.IndexFile)
	if err == nil && l.state != nil && l.state.unsaved {
		return l.readAgain(now) || l.renewals.Load() != seen
	}
	if err != nil || l.state == nil || l.read != nil && sameIndex(now, l.read) {
		return l.renewals.Load() != seen
	}
	if l.catchUp() == nil && !sameIndex(now, l.read) {
		l.forgetRetired()
	}
	return true
}

// readAgain tries once to read index.json, now, in the place of a state that was made anew: what was missing may have been on its way.
func (l *Log) readAgain(now fs.FileInfo) bool {
	if l.distrusted() {
		return false
	}
	x, err := readFolded(l.dir)
	if err != nil {
		return false
	}
	s, err := readState(l.dir, x, l.held())
	if err != nil {
		return false
	}
	l.took(now)
	return l.become(s) == nil
}

func sameIndex(a, b fs.FileInfo) bool {
	return a != nil && b != nil && vfs.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// Problem is something that was found wrong and did not stop the work.
type Problem struct {
	Kind   string // "index", "journal"
	Detail string
}

// Problems returns what was found wrong while reading the index.
func (l *Log) Problems() ([]Problem, error) {
	var p []Problem
	err := l.view(func(s *state) { p = slices.Clone(s.problems) })
	return p, err
}

// view calls f with the state, which it must not keep.
func (l *Log) view(f func(*state)) error {
	if err := l.load(); err != nil {
		return err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	f(l.state)
	return nil
}

// Newest is the generation of the journal that is written to.
func (l *Log) Newest() (gen uint64, err error) {
	err = l.view(func(s *state) {
		if len(s.journals) > 0 && !s.unsaved {
			gen = s.newest().gen
		}
	})
	return gen, err
}

// Seq is the number of the last record known.
func (l *Log) Seq() (seq uint64, err error) {
	err = l.view(func(s *state) { seq = s.seq })
	return seq, err
}

// MetadataCopy is the newest copy of metadata.json in the journals, nil without one.
func (l *Log) MetadataCopy() (raw json.RawMessage, err error) {
	err = l.view(func(s *state) { raw = s.metadata })
	return raw, err
}

// Counts returns how much of a line there is; ok is false when no message of its own was ever committed.
func (l *Log) Counts(id uuid.UUID) (c Counts, ok bool, err error) {
	err = l.view(func(s *state) {
		if ln := s.lines[id]; ln != nil {
			c, ok = ln.Counts, true
		}
	})
	return c, ok, err
}

// AllCounts returns the counts of every line there is.
func (l *Log) AllCounts() (all map[uuid.UUID]Counts, newest int64, err error) {
	err = l.view(func(s *state) {
		all = make(map[uuid.UUID]Counts, len(s.lines))
		for id, ln := range s.lines {
			all[id] = ln.Counts
		}
		newest = s.newestAt
	})
	return all, newest, err
}
