package index

import (
	"errors"
	"io/fs"
	"iter"
	"sync"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/google/uuid"
)

// Index is the open history of one context. Several goroutines may call its methods; those that write are for the
// holder of the lock of the context.
type Index struct {
	dir  Folder
	opts Options

	// advance is for the goroutine that reads on in the logs, or writes to them. Only its holder changes state, and it
	// reads state without mu.
	advance sync.Mutex
	// mu guards state against readers. Nobody reads segments or bodies meanwhile.
	mu    sync.RWMutex
	state *state

	seen    seen
	rotated uint64 // what Rotate made fit for a seal: the records up to this number
}

// Options configure a Index.
type Options struct {
	// Relaxed leaves out the sync of a commit: a crash may lose the newest ones, but damages no others.
	Relaxed bool
	// Full is the length of a log's records at which another one begins, in bytes; 0 means 1 MiB.
	Full int64
	// Cut receives the torn end of a log, which nobody was told of, before it goes; nil for nobody.
	Cut func(log string, tail []byte) error
	// Payloads stores the payloads of a log durably, before the log goes; nil stores none. An error of the sequence is for it
	// to return.
	Payloads func(iter.Seq2[[]byte, error]) error
}

const full = 1 << 20

// Open returns the history in a folder. It reads nothing.
func Open(dir Folder, o Options) *Index {
	if o.Full <= 0 {
		o.Full = full
	}
	return &Index{dir: dir, opts: o}
}

// Close closes all files.
func (ix *Index) Close() {
	ix.advance.Lock()
	defer ix.advance.Unlock()
	ix.set(nil)
}

// set makes s the state.
func (ix *Index) set(s *state) {
	ix.mu.Lock()
	old := ix.state
	ix.state = s
	ix.mu.Unlock()
	if old != nil {
		old.close()
	}
}

// Refresh reads what others committed.
func (ix *Index) Refresh() error {
	ix.advance.Lock()
	defer ix.advance.Unlock()
	return ix.refresh()
}

// refresh is Refresh for the holder of advance.
func (ix *Index) refresh() error {
	if ix.state != nil && !ix.state.lenient {
		err := ix.follow()
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrDamaged) {
			return err
		}
	}
	return ix.reload()
}

// Reload reads the history anew: which segments there are, too.
func (ix *Index) Reload() error {
	ix.advance.Lock()
	defer ix.advance.Unlock()
	return ix.reload()
}

// reload is Reload for the holder of advance.
func (ix *Index) reload() error {
	s, err := load(ix.dir, ix.state)
	if err != nil {
		return err
	}
	if err := ix.seen.takeViews(ix.dir, s); err != nil {
		s.close()
		return err
	}
	if ix.state != nil {
		for _, o := range s.logs {
			for _, was := range ix.state.logs {
				o.Adopt(was.Log)
			}
		}
	}
	ix.set(s)
	return nil
}

// follow reads on in the newest log, and in those that continue it. The error wraps fs.ErrNotExist if a log is not there
// any more, or is another one.
func (ix *Index) follow() error {
	for {
		o := ix.state.newest()
		if !o.IsThere() {
			return fs.ErrNotExist
		}
		if o.Next() == "" && !o.Unchanged() {
			ix.mu.Lock()
			err := ix.state.readLog(o)
			ix.mu.Unlock()
			if err != nil {
				return err
			}
		}
		if o.Next() == "" {
			return nil
		}
		next, err := openLogIn(ix.dir, o.Next())
		if errors.Is(err, journal.ErrBlank) {
			return nil // it begins with its first commit
		}
		if err != nil {
			return err
		}
		if next.From() != ix.state.at || next.IsTorn() {
			next.release()
			return damaged("%s does not continue %s", next.Name(), o.Name())
		}
		ix.mu.Lock()
		ix.state.logs = append(ix.state.logs, next)
		ix.mu.Unlock()
	}
}

// view calls f with the state, which is loaded before if necessary.
func (ix *Index) view(f func(s *state)) error {
	ix.mu.RLock()
	if ix.state == nil {
		ix.mu.RUnlock()
		if err := ix.Refresh(); err != nil {
			return err
		}
		ix.mu.RLock()
	}
	defer ix.mu.RUnlock()
	if ix.state == nil {
		return fs.ErrClosed
	}
	f(ix.state)
	return nil
}

// viewLogs is view for f that asks the logs how far they go, which changes while somebody reads on or writes.
func (ix *Index) viewLogs(f func(s *state)) error {
	ix.advance.Lock()
	defer ix.advance.Unlock()
	if ix.state == nil {
		if err := ix.refresh(); err != nil {
			return err
		}
	}
	f(ix.state)
	return nil
}

// IsFresh reports whether nothing shows a commit after the one that created the context.
func (ix *Index) IsFresh() (is bool, err error) {
	err = ix.viewLogs(func(s *state) {
		is = len(s.logs) == 0 || s.newest().Len() == 0 || s.at.Seq == 1
	})
	return is, err
}

// At returns the place after the last known record.
func (ix *Index) At() (at journal.Position, err error) {
	err = ix.view(func(s *state) { at = s.at })
	return at, err
}

// Metadata returns the newest known metadata, nil for none. It must not be changed.
func (ix *Index) Metadata() (m *ctxfolder.Metadata, err error) {
	err = ix.view(func(s *state) { m = s.metadata.m })
	return m, err
}

// Counts returns the counts of a line. ok is false if the history never had it.
func (ix *Index) Counts(line uuid.UUID) (c Counts, ok bool, err error) {
	err = ix.view(func(s *state) {
		ln := s.lines[line]
		if ok = ln != nil; ok {
			c = ln.Counts
		}
	})
	return c, ok, err
}

// AllCounts returns the counts of all lines, and when a message was committed last; that is zero if none was.
func (ix *Index) AllCounts() (all map[uuid.UUID]Counts, newest time.Time, err error) {
	err = ix.view(func(s *state) {
		if s.newestAt > 0 {
			newest = time.UnixMicro(s.newestAt).UTC()
		}
		all = make(map[uuid.UUID]Counts, len(s.lines))
		for id, ln := range s.lines {
			all[id] = ln.Counts
		}
	})
	return all, newest, err
}
