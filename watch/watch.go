// Package watch tells in which folders of a tree something may have happened.
//
// What it tells are *hints*: a folder may have changed, or a file in one. There may be too many, and after an overflow, or where
// the system cannot watch, there is only the hint that anything may have changed. So whoever follows something reads what is there, and takes a
// hint as a reason to look. Folders that cannot be watched are looked at every so often instead.
package watch

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Bounds of what is remembered until it is taken. Beyond them anything may have changed.
const (
	mostFolders = 1 << 16
	mostFiles   = 1 << 12
)

// Hints collects hints until they are taken. It can be used by several goroutines.
type Hints struct {
	slow, fast time.Duration
	below      func(path string) bool
	system     *fsnotify.Watcher // nil: everything is polled
	wake       chan struct{}
	ended      sync.WaitGroup

	mu      sync.Mutex
	folders map[string]bool // in which something happened
	files   map[string]bool
	cut     bool // files are missing
	all     bool
	why     error // why there are folders that are polled
	closed  bool
}

// Options changes how hints are found.
type Options struct {
	Poll  error         // not nil: nothing is watched, for that reason
	Every time.Duration // how often what cannot be watched is looked at; 0: 200 ms
	// Below says of what appears in a watched folder whether that is a folder to be watched as well. Nil: nothing is.
	Below func(path string) bool
}

// Ordinary intervals.
const (
	pollEvery = 200 * time.Millisecond
	// sweepEvery is how often everything is looked at all the same: a hint more than enough costs little, one too few would cost an event.
	sweepEvery = 5 * time.Second
)

// New returns hints about no folder. Close lets go of what they hold.
func New(o Options) *Hints {
	h := &Hints{slow: sweepEvery, fast: pollEvery, below: o.Below, why: o.Poll, wake: make(chan struct{}, 1), folders: map[string]bool{}, files: map[string]bool{}}
	if o.Every > 0 {
		h.fast, h.slow = o.Every, max(o.Every, sweepEvery)
	}
	if o.Poll != nil {
		return h
	}
	var err error
	if h.system, err = fsnotify.NewWatcher(); err != nil {
		h.why = err
		return h
	}
	h.ended.Add(1)
	go h.collect()
	return h
}

// collect takes what the system tells as it comes, so that its queue stays short however slow the reader is.
func (h *Hints) collect() {
	defer h.ended.Done()
	for {
		select {
		case e, ok := <-h.system.Events:
			if !ok {
				return
			}
			if e.Has(fsnotify.Create) && h.below != nil && h.below(e.Name) {
				h.Watch(e.Name)
			}
			if e.Op != fsnotify.Chmod {
				h.mark(e.Name)
			}
		case err, ok := <-h.system.Errors:
			if !ok {
				return
			}
			h.fail(err)
		}
	}
}

// mark notes that something happened to a path.
func (h *Hints) mark(path string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.folders[filepath.Dir(path)] = true; len(h.folders) > mostFolders {
		h.all = true
		clear(h.folders)
	}
	if len(h.files) < mostFiles {
		h.files[path] = true
	} else {
		h.cut = true
	}
	h.wakeUp()
}

// fail notes that hints were lost: an overflow of the system's queue, as a rule.
func (h *Hints) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = true
	if !errors.Is(err, fsnotify.ErrEventOverflow) {
		h.why = err
	}
	h.wakeUp()
}

func (h *Hints) wakeUp() {
	select {
	case h.wake <- struct{}{}:
	default: // it is to wake up already
	}
}

// Watch begins to watch a folder, not what lies below its folders. From before it returns on nothing goes unnoticed. Where it cannot be
// watched, because the system's limit is reached for instance, it will be polled; see [Hints.Polling].
func (h *Hints) Watch(dir string) {
	if h.system == nil {
		return
	}
	if err := h.system.Add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fsnotify.ErrClosed) {
		if errors.Is(err, syscall.ENOSPC) {
			err = errTooMany
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.why = err
	}
}

// errTooMany is what inotify calls a full disk.
var errTooMany = errors.New("too many folders are watched; on Linux fs.inotify.max_user_watches bounds them")

// Forget ends watching a folder.
func (h *Hints) Forget(dir string) {
	if h.system != nil {
		_ = h.system.Remove(dir) // it may be gone
	}
}

// Polling is why folders are looked at every so often; nil while all of them are watched.
func (h *Hints) Polling() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.why
}

// Every is how often all that is watched is to be looked at, hint or no hint.
func (h *Hints) Every() time.Duration {
	if h.Polling() != nil {
		return h.fast
	}
	return h.slow
}

// Changed receives when there is something to be taken.
func (h *Hints) Changed() <-chan struct{} { return h.wake }

// Taken is what may have changed.
type Taken struct {
	All     bool            // anything
	Folders map[string]bool // these folders
	Files   map[string]bool // these files in them
	Cut     bool            // and others in them
}

// Take returns what may have changed since it was called last.
func (h *Hints) Take() Taken {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := Taken{h.all, h.folders, h.files, h.cut}
	h.all, h.cut, h.folders, h.files = false, false, map[string]bool{}, map[string]bool{}
	return t
}

// Close ends watching. Nothing goes on when it returns.
func (h *Hints) Close() error {
	h.mu.Lock()
	closed := h.closed
	h.closed = true
	h.mu.Unlock()
	if h.system == nil || closed {
		return nil
	}
	err := h.system.Close()
	h.ended.Wait()
	return err
}
