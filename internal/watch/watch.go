// Package watch reports the folders of a tree in which something may have changed.
//
// Its reports are *hints*: a folder, or a file in it, may have changed. Some hints are spurious. After an overflow,
// or where the system cannot watch, the only hint is that anything may have changed. So a follower reads the folder
// itself, and treats a hint only as a reason to read. Folders that cannot be watched are polled.
package watch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Bounds of the hints kept until Take. Beyond them the hint is that anything may have changed.
const (
	maxFolders = 1 << 16
	maxFiles   = 1 << 12
	maxArrived = 64
)

// unwatched is how long a folder that appeared or was renamed may have gone unwatched on a busy machine.
const unwatched = time.Minute

// Hints collects hints until Take. Several goroutines may use it.
type Hints struct {
	slow, fast time.Duration
	below      func(path string) bool
	system     *fsnotify.Watcher // nil: everything is polled
	wake       chan struct{}
	ended      sync.WaitGroup
	stop       func() // ends the hints of Options.Source; may be nil

	mu      sync.Mutex
	folders map[string]bool // in which something changed
	files   map[string]bool
	cut     bool // files are missing
	all     bool
	why     error // why folders are polled
	closed  bool
}

// Options configures Hints.
type Options struct {
	Poll error // not nil: the reason to poll everything
	// Source tells of every change in place of the system: it calls mark with the path of what changed, until stop has
	// returned.
	Source func(mark func(path string)) (stop func())
	Every  time.Duration // polling interval; 0: 200 ms
	// Below reports whether a new entry of a watched folder is a folder to watch as well. Nil watches none.
	Below func(path string) bool
}

// Default intervals.
const (
	pollEvery = 200 * time.Millisecond
	// sweepEvery is the interval at which followers look at everything: a superfluous hint costs little, a missing one
	// an event.
	sweepEvery = 5 * time.Second
)

// New returns Hints that watch no folder yet. Close releases them.
func New(o Options) *Hints {
	h := &Hints{
		slow:    sweepEvery,
		fast:    pollEvery,
		below:   o.Below,
		why:     o.Poll,
		wake:    make(chan struct{}, 1),
		folders: map[string]bool{},
		files:   map[string]bool{},
	}
	if o.Every > 0 {
		h.fast, h.slow = o.Every, max(o.Every, sweepEvery)
	}
	if o.Poll != nil {
		return h
	}
	if o.Source != nil {
		h.stop = o.Source(h.mark)
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

// collect takes the system's events as they come, so that the system's queue stays short however slow the reader is.
func (h *Hints) collect() {
	defer h.ended.Done()
	var arrived []string // folders that came since the last rename
	for {
		select {
		case e, ok := <-h.system.Events:
			if !ok {
				return
			}
			if e.Has(fsnotify.Create) && h.below != nil && h.below(e.Name) {
				h.Watch(e.Name)
				h.markNew(e.Name)
				arrived = append(arrived[max(0, len(arrived)-maxArrived+1):], e.Name)
			}
			if e.Has(fsnotify.Rename) && h.below != nil && h.below(e.Name) {
				h.watchAgain(filepath.Dir(e.Name))
				for _, dir := range arrived {
					h.markNew(dir)
				}
				arrived = arrived[:0]
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

// watchAgain watches the folders in a folder after one of them was renamed. The system's watch moves with the folder:
// the library reports the new name first, and then drops that watch with the old name.
func (h *Hints) watchAgain(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // it is gone
	}
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); e.IsDir() && h.below(path) {
			h.Watch(path)
		}
	}
}

// markNew records the files of a folder that changed shortly before it was watched: nothing told of these changes.
func (h *Hints) markNew(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // it is gone
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) < unwatched {
			h.mark(filepath.Join(dir, e.Name()))
		}
	}
}

// mark records a change of a path.
func (h *Hints) mark(path string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.folders[filepath.Dir(path)] = true; len(h.folders) > maxFolders {
		h.all = true
		clear(h.folders)
	}
	if len(h.files) < maxFiles {
		h.files[path] = true
	} else {
		h.cut = true
	}
	h.wakeUp()
}

// fail records that hints were lost, usually by an overflow of the system's queue.
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
	default: // a wake-up is already pending
	}
}

// Watch starts watching a folder, without the content of its subfolders. No change after its return goes unnoticed. A
// folder that cannot be watched, for example at the system's limit, is polled; see [Hints.Polling].
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

// errTooMany replaces ENOSPC, with which inotify reports its limit.
var errTooMany = errors.New("too many watched folders; on Linux, fs.inotify.max_user_watches sets the limit")

// Forget stops watching a folder.
func (h *Hints) Forget(dir string) {
	if h.system != nil {
		_ = h.system.Remove(dir) // the folder may be gone
	}
}

// Polling returns why folders are polled, nil while all of them are watched.
func (h *Hints) Polling() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.why
}

// Every returns the interval at which to look at every watched folder, with or without hints.
func (h *Hints) Every() time.Duration {
	if h.Polling() != nil {
		return h.fast
	}
	return h.slow
}

// Changed returns a channel that receives when Take has hints.
func (h *Hints) Changed() <-chan struct{} { return h.wake }

// Batch is a set of hints.
type Batch struct {
	All     bool            // anything may have changed
	Folders map[string]bool // these folders may have changed
	Files   map[string]bool // these files in them may have changed
	Cut     bool            // other files in them may have changed
}

// Take returns the hints since its last call.
func (h *Hints) Take() Batch {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := Batch{h.all, h.folders, h.files, h.cut}
	h.all, h.cut, h.folders, h.files = false, false, map[string]bool{}, map[string]bool{}
	return t
}

// Close stops watching. No goroutine runs after it returns.
func (h *Hints) Close() error {
	h.mu.Lock()
	closed := h.closed
	h.closed = true
	h.mu.Unlock()
	if !closed && h.stop != nil {
		h.stop()
	}
	if h.system == nil || closed {
		return nil
	}
	err := h.system.Close()
	h.ended.Wait()
	return err
}
