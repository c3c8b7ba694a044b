// Package follow reports what any process commits to a store, as it happens.
//
// [Watch] follows all contexts of a store, and [WatchContext] one context from a given commit on. The [Watcher] yields
// each commit once, as an [Event]. A follower for each context reads the context's history. Notifications of the file
// system, or a timer where there are none, tell it when to look.
//
// The package uses package engine for contexts and their metadata, package index for the history, and package watch for
// the hints.
package follow

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/watch"
	"github.com/google/uuid"
)

// Watcher reports the commits of every process: each commit once, those of a context in order. It reads them from the
// context's history. Hints of the file system only say when to look; without hints it polls. It remembers its position
// and none of the reported events, so a slow follower costs no memory. Where records are missing or damaged, a follower
// gets a [Resync].
//
// A Watcher may report a commit shortly before the commit is durable.
type Watcher struct {
	s     *engine.Store
	only  uuid.UUID // the one context to follow; uuid.Nil for all
	root  string    // the store's folder, absolute
	hints *watch.Hints
	done  chan struct{}

	mu      sync.Mutex // held while the watcher looks for events, not while it yields them
	closed  bool
	running bool

	followers map[uuid.UUID]*follower
	removed   map[uuid.UUID]*follower // of removed contexts, which may come back
	awake     []*follower             // with open files, the least recently used first
	due       []*follower             // to be looked at, in this order
	queue     []Event                 // of removed contexts
}

// maxAwake bounds the contexts that are open at once.
const maxAwake = 32

func newWatcher(s *engine.Store, only uuid.UUID) (*Watcher, error) {
	root, err := filepath.Abs(s.Path())
	if err != nil {
		return nil, err
	}
	o := s.Options.Watching
	o.Below = func(path string) bool { return holdsMessages(root, path) }
	switch n, tells := s.Options.FS.(vfs.Notifier); {
	case o.Poll != nil:
	case tells:
		o.Source = func(mark func(path string)) (stop func()) {
			return n.Notify(func(name string) { mark(filepath.Join(root, filepath.FromSlash(name))) })
		}
	case s.Options.FS != nil:
		o.Poll = errors.New("the store is not on the operating system's file system")
	}
	return &Watcher{
		s:         s,
		only:      only,
		root:      root,
		hints:     watch.New(o),
		done:      make(chan struct{}),
		followers: map[uuid.UUID]*follower{},
		removed:   map[uuid.UUID]*follower{},
	}, nil
}

// Polling returns why contexts are polled, because the system does not watch folders or its limits are reached; nil
// while they are watched. While it polls, the watcher does not report edits by hand.
func (w *Watcher) Polling() error { return w.hints.Polling() }

// Close ends the watcher and a running iteration, which releases its files when it ends.
func (w *Watcher) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	close(w.done)
	err := w.hints.Close()
	if !w.running {
		w.release()
	}
	return err
}

func (w *Watcher) release() {
	for _, f := range w.followers {
		f.rest()
	}
	w.followers, w.awake, w.due = nil, nil, nil
}

// add starts following a context. It watches the folders before anything reads them.
func (w *Watcher) add(id uuid.UUID) *follower {
	f := &follower{s: w.s, id: id, files: map[string]bool{}, reported: map[string]fileState{}}
	w.followers[id] = f
	w.watchFolder(f)
	return f
}

// drop stops following a context.
func (w *Watcher) drop(f *follower) {
	f.rest()
	w.removed[f.id] = &follower{at: f.at, queue: f.queue}
	delete(w.followers, f.id)
	other := func(o *follower) bool { return o == f }
	w.awake, w.due = slices.DeleteFunc(w.awake, other), slices.DeleteFunc(w.due, other)
	w.hints.Forget(w.folderPath(f.id))
	w.hints.Forget(w.folderPath(f.id, ctxfolder.Messages))
}

// look marks a context as due.
func (w *Watcher) look(f *follower) {
	if !slices.Contains(w.due, f) {
		w.due = append(w.due, f)
	}
}

// touch records a look at a context, and closes the least recently used context beyond the bound.
func (w *Watcher) touch(f *follower) {
	w.awake = append(slices.DeleteFunc(w.awake, func(o *follower) bool { return o == f }), f)
	if len(w.awake) > maxAwake {
		w.awake[0].rest()
		w.awake = w.awake[1:]
	}
}

// watchFolder watches a context's folder, unless it is watched already.
func (w *Watcher) watchFolder(f *follower) {
	info, err := w.s.FS.Lstat(f.id.String())
	if err != nil || vfs.Number(info) == f.folder && f.folder != 0 {
		return
	}
	f.folder = vfs.Number(info)
	for _, dir := range []string{w.folderPath(f.id), w.folderPath(f.id, ctxfolder.Messages)} {
		w.hints.Forget(dir) // another folder may have that name now
		w.hints.Watch(dir)
	}
	w.watchBranches(f.id)
}

// watchBranches watches the folders of a context's messages.
func (w *Watcher) watchBranches(id uuid.UUID) {
	for e, err := range w.s.FS.ReadDir(id.String() + "/" + ctxfolder.Messages) {
		if err == nil && e.IsDir() && ctxfolder.ValidFolder(e.Name()) {
			w.hints.Watch(w.folderPath(id, ctxfolder.Messages, e.Name()))
		}
	}
}

func (w *Watcher) folderPath(id uuid.UUID, below ...string) string {
	return filepath.Join(append([]string{w.root, id.String()}, below...)...)
}

// holdsMessages reports whether path is a folder of messages of a context in a store.
func holdsMessages(root, path string) bool {
	rel, ok := strings.CutPrefix(path, root+string(filepath.Separator))
	parts := strings.Split(rel, string(filepath.Separator))
	if !ok || len(parts) != 3 || parts[1] != ctxfolder.Messages {
		return false
	}
	_, ok = ctxfolder.ParseID(parts[0])
	return ok && ctxfolder.ValidFolder(parts[2])
}
