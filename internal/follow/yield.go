package follow

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
)

// turnEvents is the number of events that one context may yield before others get their turn.
const turnEvents = 256

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

// next returns the next event. ok is false if there is none yet. It fails with [engine.ErrGone] when the context is
// gone, or another one is in its place.
func (f *follower) next(ctx context.Context) (e Event, ok bool, err error) {
	var byHand *engine.Metadata // what metadata.json has; if no record explains it, it was edited by hand
	for len(f.queue) == 0 {
		rec, ok, err := f.tail.Next()
		switch {
		case isGap(err):
			if err = f.c.Dir.Check(); err == nil {
				err = f.resync(ctx)
			}
		case err != nil:
		case ok:
			byHand = nil
			f.take(ctx, &rec)
		case byHand != nil:
			f.change(byHand, 0)
			byHand = nil
		default:
			if err = f.c.Dir.Check(); err == nil && f.lookAtFiles(ctx) {
				break
			}
			if byHand = f.lookAtMetadata(); err == nil && byHand == nil {
				return e, false, nil
			}
		}
		if err != nil {
			return e, false, err
		}
	}
	e, f.queue = f.queue[0], f.queue[1:]
	e.Context, e.More = f.id, len(f.queue) > 0 && f.queue[0].Seq == e.Seq
	return e, true, nil
}
