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

// Options configures a Log.
type Options struct {
	// FoldBytes is the size of a journal at which it is folded.
	FoldBytes int64
	// Relaxed omits the sync of a commit: a crash may lose the newest messages but damages no others.
	Relaxed bool
	// Payloads takes over the payloads of a journal before the journal goes.
	Payloads PayloadStore
	// Wait bounds the wait for one lock; 0 leaves it to the caller's context. A wait that takes longer fails with
	// context.DeadlineExceeded.
	Wait time.Duration
	// Retain is how many folded journals may exist. Beyond it, a fold makes the message files of the older ones durable
	// and removes those journals.
	Retain int
}

// Log is the open index of one context. Several goroutines may call its methods. Methods that write are for the holder
// of the context lock.
type Log struct {
	dir  *ctxfolder.Dir
	opts Options

	// advance is for the goroutine that reads on in the journals or writes to them. Only its holder changes state, and
	// it reads state without mu.
	advance sync.Mutex

	// read is the index.json from which the state was read, or beside which it was rebuilt. advance guards it. renewals
	// counts how often the file changed.
	read     fs.FileInfo
	renewals atomic.Uint64

	// distrust is set when rows turned out to be damaged though index.json is intact. Until that file is replaced, the
	// log rebuilds the state instead of reading it.
	distrust fs.FileInfo

	// disbelieved is a metadata.json whose line lengths a rebuild does not believe. advance guards it.
	disbelieved ctxfolder.Stamp

	// resettle says that a settle's sync failed: nothing written before it is to be trusted. The fold lock guards it.
	resettle bool
	failures uint64 // see Dir.SyncAll

	// stuck is how many journals the last settle could not remove. A fold settles again when more than Options.Retain
	// beyond those are folded. The fold lock guards it.
	stuck int

	// mu guards state against readers. Nobody holds it during I/O on message files or journals' ends.
	mu    sync.RWMutex
	state *state

	// foundGen is the newest journal that had a record when the log was first loaded: see mustRewrite. mu guards it.
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

// DefaultFoldBytes is the size at which a journal is folded unless the options say otherwise.
const DefaultFoldBytes = 512 << 10

// defaultRetain times DefaultFoldBytes bounds the journals that a context has beside its message files.
const defaultRetain = 8

func (l *Log) acquire(ctx stdcontext.Context, lock vfs.Lock) error {
	if l.opts.Wait > 0 {
		limited, cancel := stdcontext.WithTimeout(ctx, l.opts.Wait)
		defer cancel()
		ctx = limited
	}
	return lock.Acquire(ctx)
}

// remove removes a file of the context's folder, if it is there.
func (l *Log) remove(path string) error { return ifThere(l.dir.FS.Remove(path)) }

// trash moves a file or folder of the context's folder to the trash, if it is there.
func (l *Log) trash(path string) error { return ifThere(l.dir.SetAside(path)) }

func ifThere(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Close closes the journals and all other open files.
func (l *Log) Close() error {
	l.advance.Lock()
	defer l.advance.Unlock()
	return l.become(nil)
}

// become makes s the state and closes the files that only the previous state has open.
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
	if s == nil {
		return old.close(nil)
	}
	l.dir.ForgetFolders()
	return old.close(s.journals)
}

// load reads the index and the journals unless that was done before.
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

// reload reads index.json, the journals that it names, and newer ones. A concurrent fold can remove a journal in
// between; then reload reads again. While index.json changes from one look to the next, others are at work and nothing
// is damaged. A mismatch that remains is damage, and reload rebuilds the state from rows and message files.
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

// rebuild rebuilds the state beside an unreliable index.json. now is the stat data of that file.
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
	return l.rebuild(why, l.anyFolded(), now)
}

// anyFolded returns index.json, or an empty one if it cannot be read.
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

// readState reads the state from index.json and the unfolded journals.
func readState(dir *ctxfolder.Dir, x *folded, held []*journal) (*state, error) {
	s := &state{dir: dir, settled: x.Settled, kept: kept{gens: x.retained()}}
	s.beginAt(slices.Values(x.Lines), x.Seq, x.chain)
	s.newestAt = x.newest()
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

// Refresh reads what any process committed since.
func (l *Log) Refresh() error {
	l.advance.Lock()
	defer l.advance.Unlock()
	return l.catchUp()
}

// catchUp reads new records from the newest journal and from newer ones. The caller holds advance.
func (l *Log) catchUp() error {
	if l.state == nil {
		return l.reload()
	}
	if l.state.unsaved {
		// Only a saved index gives a place to read on from.
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
		// The rotation held the lock, so the old journal is final now.
		err = l.readOn(newest)
		if err == nil && !next.follows(newest) {
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

// readOn applies the records of the newest journal after the last known one.
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

// forgetRetired drops the journals that a fold removed, and the entries in memory that now have rows.
func (l *Log) forgetRetired() { _, _ = l.takeFolded() }

// takeFolded reads index.json and applies what others folded or archived to the state. The caller holds advance.
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

// took notes the index.json from which the state was read, or beside which it was rebuilt.
func (l *Log) took(now fs.FileInfo) {
	if !sameIndex(now, l.read) {
		l.renewals.Add(1)
	}
	l.read = now
}

// Renewals counts how often the log took in another index.json, for [Log.Renewed].
func (l *Log) Renewals() uint64 { return l.renewals.Load() }

// Renewed takes in changes of index.json since it was last read. It reports whether the log took in any since Renewals
// returned seen, in whichever call. A change may have removed rows, message files and packs.
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

// readAgain tries once to read index.json, now, in place of a rebuilt state: the missing files may only have been late.
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

// Problem is a fault that did not stop the work.
type Problem struct {
	Kind   string // "index", "journal"
	Detail string
}

// Problems returns the faults found while reading the index.
func (l *Log) Problems() ([]Problem, error) {
	var p []Problem
	err := l.view(func(s *state) { p = slices.Clone(s.problems) })
	return p, err
}

// view calls f with the state, which f must not keep.
func (l *Log) view(f func(*state)) error {
	if err := l.load(); err != nil {
		return err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	f(l.state)
	return nil
}

// Newest returns the generation of the journal that writers append to.
func (l *Log) Newest() (gen uint64, err error) {
	err = l.view(func(s *state) {
		if len(s.journals) > 0 && !s.unsaved {
			gen = s.newest().gen
		}
	})
	return gen, err
}

// Seq returns the number of the last known record.
func (l *Log) Seq() (seq uint64, err error) {
	err = l.view(func(s *state) { seq = s.seq })
	return seq, err
}

// MetadataCopy returns the newest copy of metadata.json in the journals, nil if there is none.
func (l *Log) MetadataCopy() (raw json.RawMessage, err error) {
	err = l.view(func(s *state) { raw = s.metadata })
	return raw, err
}

// Counts returns the counts of a line; ok is false when no message of its own was ever committed.
func (l *Log) Counts(id uuid.UUID) (c Counts, ok bool, err error) {
	err = l.view(func(s *state) {
		if ln := s.lines[id]; ln != nil {
			c, ok = ln.Counts, true
		}
	})
	return c, ok, err
}

// AllCounts returns the counts of every line, and the time of the newest message.
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
