package follow

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// FromNow makes [WatchContext] report only future commits.
const FromNow = math.MaxUint64

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
