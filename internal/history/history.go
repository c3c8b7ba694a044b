package history

import (
	"errors"
	"io/fs"
	"iter"
	"sync"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/google/uuid"
)

// History is the open history of one context. Several goroutines may call its methods; those that write are for the
// holder of the lock of the context.
type History struct {
	dir  Folder
	opts Options

	// advance is for the goroutine that reads on in the logs, or writes to them. Only its holder changes state, and it
	// reads state without mu.
	advance sync.Mutex
	// mu guards state against readers. Nobody reads segments or bodies meanwhile.
	mu    sync.RWMutex
	state *state
}

// Options configure a History.
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
func Open(dir Folder, o Options) *History {
	if o.Full <= 0 {
		o.Full = full
	}
	return &History{dir: dir, opts: o}
}

// Close closes all files.
func (h *History) Close() {
	h.advance.Lock()
	defer h.advance.Unlock()
	h.set(nil)
}

// set makes s the state.
func (h *History) set(s *state) {
	h.mu.Lock()
	old := h.state
	h.state = s
	h.mu.Unlock()
	if old != nil {
		old.close()
	}
}

// Refresh reads what others committed.
func (h *History) Refresh() error {
	h.advance.Lock()
	defer h.advance.Unlock()
	return h.refresh()
}

// refresh is Refresh for the holder of advance.
func (h *History) refresh() error {
	if h.state != nil && !h.state.lenient {
		err := h.follow()
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return h.reload()
}

// Reload reads the history anew: which segments there are, too.
func (h *History) Reload() error {
	h.advance.Lock()
	defer h.advance.Unlock()
	return h.reload()
}

// reload is Reload for the holder of advance.
func (h *History) reload() error {
	s, err := load(h.dir, h.state)
	if err != nil {
		return err
	}
	h.set(s)
	return nil
}

// follow reads on in the newest log, and in those that continue it. The error wraps fs.ErrNotExist if a log is not there
// any more, or is another one.
func (h *History) follow() error {
	for {
		o := h.state.newest()
		if !o.IsThere() {
			return fs.ErrNotExist
		}
		if o.Next() == "" && !o.Unchanged() {
			h.mu.Lock()
			err := h.state.readLog(o)
			h.mu.Unlock()
			if err != nil {
				return err
			}
		}
		if o.Next() == "" {
			return nil
		}
		next, err := openLogIn(h.dir, o.Next())
		if errors.Is(err, journal.ErrBlank) {
			return nil // it begins with its first commit
		}
		if err != nil {
			return err
		}
		if next.From() != h.state.at {
			next.release()
			return damaged("%s does not continue %s", next.Name(), o.Name())
		}
		h.mu.Lock()
		h.state.logs = append(h.state.logs, next)
		h.mu.Unlock()
	}
}

func (s *state) newest() *openLog { return s.logs[len(s.logs)-1] }

// view calls f with the state, which is loaded before if necessary.
func (h *History) view(f func(s *state)) error {
	h.mu.RLock()
	if h.state == nil {
		h.mu.RUnlock()
		if err := h.Refresh(); err != nil {
			return err
		}
		h.mu.RLock()
	}
	defer h.mu.RUnlock()
	if h.state == nil {
		return fs.ErrClosed
	}
	f(h.state)
	return nil
}

// At returns the place after the last known record.
func (h *History) At() (at journal.Spot, err error) {
	err = h.view(func(s *state) { at = s.at })
	return at, err
}

// Metadata returns the newest known metadata, nil for none. It must not be changed.
func (h *History) Metadata() (m *ctxfolder.Metadata, err error) {
	err = h.view(func(s *state) { m = s.metadata.m })
	return m, err
}

// Counts returns the counts of a line. ok is false if the history never had it.
func (h *History) Counts(line uuid.UUID) (c Counts, ok bool, err error) {
	err = h.view(func(s *state) {
		ln := s.lines[line]
		if ok = ln != nil; ok {
			c = ln.Counts
		}
	})
	return c, ok, err
}

// AllCounts returns the counts of all lines.
func (h *History) AllCounts() (all map[uuid.UUID]Counts, err error) {
	err = h.view(func(s *state) {
		all = make(map[uuid.UUID]Counts, len(s.lines))
		for id, ln := range s.lines {
			all[id] = ln.Counts
		}
	})
	return all, err
}
