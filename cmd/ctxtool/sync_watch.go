package main

import (
	"context"
	"errors"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/replica"
	"github.com/google/uuid"
)

// pollPeer is how often sync --watch looks at a store that cannot tell of its changes.
const pollPeer = 2 * time.Second

// watchedPeer is a store that sync --watch brings this one together with.
type watchedPeer struct {
	remote ctxdir.Remote
	c      *connection // nil while it cannot be reached
	stop   func()      // ends the notices of its changes
	failed string      // what was said last
}

// syncWatch brings stores together, and again whenever something changes, until ctx ends. One that cannot be reached is tried
// again; with must, the first try has to succeed.
func (a *app) syncWatch(ctx context.Context, s *ctxdir.Store, remotes []ctxdir.Remote, o replica.Options, must bool) error {
	changed := make(chan struct{}, 1)
	stop, err := notify(ctx, s, changed)
	if err != nil {
		return err
	}
	defer stop()
	all := make([]watchedPeer, len(remotes))
	for i := range all {
		all[i].remote = remotes[i]
		defer all[i].close()
	}
	ticks := time.NewTicker(pollPeer)
	defer ticks.Stop()
	for first := true; ; first = false {
		for i := range all {
			err := a.syncWatched(ctx, s, &all[i], o, !first, changed)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil && first && must {
				return err
			}
			all[i].report(ctx, a, s, err)
		}
		if err := a.out.Flush(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		case <-changed:
		}
	}
}

// notify sends to changed whenever something is committed in a store, until stop is called.
func notify(ctx context.Context, s *ctxdir.Store, changed chan<- struct{}) (stop func(), err error) {
	w, err := s.Watch(ctx)
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range w.Events(ctx) {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}()
	return func() {
		_ = w.Close()
		<-done
	}, nil
}

func (a *app) syncWatched(
	ctx context.Context, s *ctxdir.Store, w *watchedPeer, o replica.Options, quiet bool, changed chan<- struct{},
) error {
	if w.c == nil {
		c, err := a.connect(ctx, w.remote, &o)
		if err != nil {
			return err
		}
		w.c = c
		if c.store != nil {
			if w.stop, err = notify(ctx, c.store, changed); err != nil {
				return err
			}
		}
	}
	err := a.sync(ctx, s, w.c, o, quiet)
	if w.remote.Store = w.c.Store; errors.Is(err, replica.ErrOtherStore) {
		w.remote.Store = uuid.Nil
	}
	return err
}

// report says once why a store cannot be brought together with this one. The next try connects anew.
func (w *watchedPeer) report(ctx context.Context, a *app, s *ctxdir.Store, err error) {
	if err == nil {
		w.failed = ""
		return
	}
	w.close()
	if now := err.Error(); now != w.failed {
		w.failed = now
		a.unreached(ctx, s, &w.remote, err)
	}
}

func (w *watchedPeer) close() {
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
	if w.c != nil {
		_ = w.c.end()
		w.c = nil
	}
}
