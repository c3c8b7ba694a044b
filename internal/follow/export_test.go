package follow

import "github.com/ctxdir/ctxdir/internal/watch"

// Bounds of a watcher.
const (
	MaxAwake   = maxAwake
	TurnEvents = turnEvents
)

// Awake returns the number of contexts that a watcher may hold open.
func (w *Watcher) Awake() int { return len(w.awake) }

// Open returns the number of contexts that a watcher holds open now: those, and the one that it reads.
func (w *Watcher) Open() (n int) {
	for _, f := range w.followers {
		if f.c != nil {
			n++
		}
	}
	return n
}

// TakeHints gives a watcher hints.
func (w *Watcher) TakeHints(b watch.Batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.takeBatch(b)
}
