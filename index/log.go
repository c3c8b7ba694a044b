package index

import (
	stdcontext "context"
	"errors"
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
	// Retain is how many times FoldBytes a journal grows to. Then a fold begins a new one, makes the message files of
	// the older ones durable and removes those journals. If it is negative, every fold does.
	Retain int
	// MakeFiles makes the message files of this process that are to come; nil if there are none.
	MakeFiles func()
}

// Log is the open index of one context. Several goroutines may call its methods. Methods that write are for the holder
// of the context lock.
type Log struct {
	dir  *ctxfolder.Dir
	opts Options

	// advance is for the goroutine that reads on in the journals or writes to them. Only its holder changes state, and
	// it reads state without mu.
	advance sync.Mutex

	// read is the index.json from which the state was read, or the one that was there when the state was rebuilt. advance
	// guards it. version counts how often the file changed.
	read    fs.FileInfo
	version atomic.Uint64

	// distrust is set when rows turned out to be damaged though index.json is intact. Until that file is replaced, the
	// log rebuilds the state instead of reading it.
	distrust fs.FileInfo

	// disbelieved is a metadata.json whose line lengths a rebuild does not believe. advance guards it.
	disbelieved ctxfolder.Stamp

	// resettle says that a settle's sync failed: nothing written before it is to be trusted. The fold lock guards it.
	resettle bool
	failures uint64 // see Dir.SyncAll

	// stuck is how many journals the last settle could not remove. A fold settles again when more than those are folded.
	// The fold lock guards it.
	stuck int

	// mu guards state against readers. Nobody holds it during I/O on message files or journals' ends.
	mu    sync.RWMutex
	state *state

	// foundGen is the newest journal, and foundEnd its end, when the log was first loaded: see found. mu guards both.
	foundGen uint64
	foundEnd int64
	loaded   bool
}

// Open returns the log of a context's folder. It reads nothing.
func Open(dir *ctxfolder.Dir, opts Options) *Log {
	if opts.FoldBytes <= 0 {
		opts.FoldBytes = DefaultFoldBytes
	}
	if opts.Retain == 0 {
		opts.Retain = defaultRetain
	}
	return &Log{dir: dir, opts: opts, failures: dir.SyncFailures()}
}

// DefaultFoldBytes is the size at which a journal is folded unless the options say otherwise.
const DefaultFoldBytes = 512 << 10

// defaultRetain times DefaultFoldBytes is the size of a journal. Twice that bounds the journals of a context.
const defaultRetain = 8

func (l *Log) acquire(ctx stdcontext.Context, lock vfs.Lock) error {
	return l.limited(ctx, lock.Acquire)
}

// awaitFiles is [ctxfolder.Dir.AwaitFiles] within the configured time.
func (l *Log) awaitFiles(ctx stdcontext.Context) error {
	if l.opts.MakeFiles != nil {
		l.opts.MakeFiles()
	}
	return l.limited(ctx, l.dir.AwaitFiles)
}

func (l *Log) limited(ctx stdcontext.Context, wait func(stdcontext.Context) error) error {
	if l.opts.Wait > 0 {
		limited, cancel := stdcontext.WithTimeout(ctx, l.opts.Wait)
		defer cancel()
		ctx = limited
	}
	return wait(ctx)
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
	return l.setState(nil)
}

// setState makes s the state and closes the files that only the previous state has open.
func (l *Log) setState(s *state) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.state
	l.state = s
	if s != nil && !l.loaded {
		l.loaded = true
		if len(s.journals) > 0 {
			l.foundGen, l.foundEnd = s.newest().gen, s.newest().end
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

// NewestJournal returns the generation of the journal that writers append to.
func (l *Log) NewestJournal() (gen uint64, err error) {
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

// Spot returns the place after the newest record: a [Tail] that resumes there yields every later one.
func (l *Log) Spot() (at Spot, err error) {
	err = l.view(func(s *state) { at = s.place() })
	return at, err
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

// Newest returns the time of the newest message.
func (l *Log) Newest() (at time.Time, err error) {
	err = l.view(func(s *state) { at = time.Unix(0, s.newestAt) })
	return at, err
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
