// Package follow reports what any process commits to a store, as it happens.
//
// [Watch] follows all contexts of a store, and [WatchContext] one context from a given commit on. The [Watcher] yields
// each commit once, as an [Event]. A follower for each context reads the context's history; hints of the file system,
// or else a timer, say when to look.
//
// The package uses package engine for contexts and their metadata, package index for the history, and package watch for
// the hints.
package follow

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/watch"
	"github.com/google/uuid"
)

// FromNow makes [WatchContext] report only future commits.
const FromNow = math.MaxUint64

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

// turnEvents is the number of events that one context may yield before others get their turn.
const turnEvents = 256

// WatchContext follows the context after the commit with the number from. It misses and repeats nothing: first come the
// commits since then, then new ones. [FromNow] begins with new commits. A change of the metadata in progress at from is
// reported when it is committed. If the history has no commit from, or not all after it, one [Resync] comes first. Close
// releases the watcher; ctx applies only to the start.
func WatchContext(ctx context.Context, c *engine.Context, from uint64) (*Watcher, error) {
	w, err := engine.Use(c, func() (*Watcher, error) { return follow(ctx, c, from) })
	return w, engine.Wrap(engine.Error{Op: "watch", Context: c.Dir.ID}, err)
}

func follow(ctx context.Context, c *engine.Context, from uint64) (*Watcher, error) {
	if c.Legacy() != "" {
		return nil, fmt.Errorf("%w: cannot watch a legacy context; migrate it first", engine.ErrReadOnly)
	}
	w, err := newWatcher(c.Store, c.Dir.ID)
	if err != nil {
		return nil, err
	}
	w.hints.Watch(w.root)
	f := w.add(c.Dir.ID)
	if from == FromNow {
		err = f.open(ctx, (*index.Index).TailEnd)
	} else if err = f.open(ctx, behind(from)); isGap(err) {
		err = f.resync(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	w.touch(f)
	w.look(f)
	return w, nil
}

// Sequence returns the number of the last commit that the handle knows. What the handle shows now and what
// [WatchContext] reports behind that number fit together without a gap.
func Sequence(c *engine.Context) (uint64, error) {
	at, err := engine.Use(c, c.Index.At)
	return at.Seq, engine.Wrap(engine.Error{Op: "read", Context: c.Dir.ID}, err)
}

// Watch follows all contexts of the store from now on: their commits, their creation and their removal.
func Watch(ctx context.Context, s *engine.Store) (*Watcher, error) {
	w, err := followAll(ctx, s)
	return w, engine.Wrap(engine.Error{Op: "watch", Path: s.Path()}, err)
}

func followAll(ctx context.Context, s *engine.Store) (*Watcher, error) {
	w, err := newWatcher(s, uuid.Nil)
	if err != nil {
		return nil, err
	}
	w.hints.Watch(w.root)
	for id, err := range s.IDs() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
		f := w.add(id)
		if err := f.open(ctx, (*index.Index).TailEnd); err != nil {
			f.unopened = true
			w.look(f) // the next look reports the error
		}
		f.rest()
	}
	return w, nil
}

func newWatcher(s *engine.Store, only uuid.UUID) (*Watcher, error) {
	root, err := filepath.Abs(s.Path())
	if err != nil {
		return nil, err
	}
	o := s.Options.Watching
	o.Below = func(path string) bool { return holdsMessages(root, path) }
	if s.Options.FS != nil && o.Poll == nil {
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

// Events yields events until ctx ends or the watcher is closed. An error concerns one context and does not end the
// events: the watcher reports it once and looks at that context again.
func (w *Watcher) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if !w.begin() {
			return
		}
		defer w.end()
		swept, pause := time.Now(), time.Duration(0)
		timer := time.NewTimer(w.hints.Every())
		defer timer.Stop()
		for {
			for e, err := range w.ready(ctx) {
				if !yield(e, err) {
					return
				}
			}
			timer.Reset(time.Until(swept.Add(max(w.hints.Every(), pause))))
			select {
			case <-w.hints.Changed():
				w.takeHints()
			case <-timer.C:
				began := time.Now()
				w.sweep()
				swept = time.Now()
				pause = swept.Sub(began) * sweepPause
			case <-ctx.Done():
				return
			case <-w.done:
				return
			}
		}
	}
}

// Pending yields the events until now, and ends: [Watcher.Events] for a caller that polls.
func (w *Watcher) Pending(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if !w.begin() {
			return
		}
		defer w.end()
		w.takeHints()
		w.sweep()
		for e, err := range w.ready(ctx) {
			if !yield(e, err) {
				return
			}
		}
	}
}

// sweepPause is the pause between sweeps, in durations of a sweep: the more contexts, the rarer the sweeps.
const sweepPause = 20

func (w *Watcher) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.running {
		return false
	}
	w.running = true
	return true
}

func (w *Watcher) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running = false; w.closed {
		w.release()
	}
}

// ready yields the available events.
func (w *Watcher) ready(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			e, ok, err := w.next(ctx)
			if !ok && err == nil || !yield(e, err) {
				return
			}
		}
	}
}

// next returns the next event, or the error of a context. ok is false without an event.
func (w *Watcher) next(ctx context.Context) (e Event, ok bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.closed && ctx.Err() == nil {
		if len(w.queue) > 0 {
			e, w.queue = w.queue[0], w.queue[1:]
			return e, true, nil
		}
		if len(w.due) == 0 {
			return e, false, nil
		}
		f := w.due[0]
		if e, ok, err = w.nextOf(ctx, f); ok {
			if f.turn++; f.turn%turnEvents == 0 {
				w.due = append(w.due[1:], f)
				w.touch(f)
			}
			return e, true, nil
		}
		w.due = slices.DeleteFunc(w.due, func(o *follower) bool { return o == f })
		if err != nil && ctx.Err() == nil {
			return e, false, err
		}
	}
	return e, false, nil
}

// nextOf returns the next event of a context.
func (w *Watcher) nextOf(ctx context.Context, f *follower) (e Event, ok bool, err error) {
	resting := f.c == nil
	if err = f.wake(ctx); err == nil {
		if resting {
			w.watchFolder(f)
		}
		e, ok, err = f.next(ctx)
	}
	switch {
	case err == nil:
		if f.problem = ""; !ok {
			w.touch(f)
		}
	case errors.Is(err, engine.ErrGone), errors.Is(err, ctxfolder.ErrNotExist), w.s.WasRemoved(f.id):
		w.drop(f)
		w.queue = append(w.queue, Event{Kind: ContextRemoved, Context: f.id})
		w.lookFor(f.id)
		err = nil
	default:
		f.rest()
		if why := err.Error(); why == f.problem {
			err = nil
		} else {
			f.problem, err = why, engine.Wrap(engine.Error{Op: "watch", Context: f.id}, err)
		}
	}
	return e, ok, err
}
