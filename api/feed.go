package api

import (
	"context"
	"sync"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/google/uuid"
)

const (
	// maxBehind is how far a follower may fall behind, in bytes of events.
	maxBehind = 8 << 20
	// maxInline is the size of the largest message that an event has, in bytes. Of a larger one it has the size.
	maxInline = 256 << 10
)

// feeds are the feeds that somebody follows.
type feeds struct {
	store *ctxdir.Store
	ended context.Context

	mu  sync.Mutex
	all map[uuid.UUID]*feed // uuid.Nil is the feed of the whole store
}

// feed reads the events of a context, or of the store, once for all its followers. The events are a list of which each
// follower has a place: what all have passed is garbage.
type feed struct {
	store     bool // of all contexts: each has its own numbers, and the feed none
	followers int
	started   chan struct{} // closed when the fields below are set
	err       error         // why the feed could not begin
	stop      context.CancelFunc

	mu   sync.Mutex
	tail *event // the newest one
}

// event is an event as it is sent.
type event struct {
	line     []byte // of JSON; nil at the beginning and the end of a feed
	sequence uint64 // of the newest commit up to here
	own      uint64 // of this event; 0 for one without a commit, and in the feed of the store
	total    int64  // bytes of all lines up to here
	removed  bool   // the context: there is no next one in its feed
	context  uuid.UUID

	more chan struct{} // closed when there is a next one, or will be none
	next *event
}

// follow returns a feed, which starts with its first follower, its newest event, and a function that leaves it.
func (f *feeds) follow(ctx context.Context, id uuid.UUID) (*feed, *event, func(), error) {
	f.mu.Lock()
	x := f.all[id]
	if x == nil {
		x = &feed{store: id == uuid.Nil, started: make(chan struct{})}
		f.all[id] = x
		go f.run(id, x)
	}
	x.followers++
	f.mu.Unlock()
	leave := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if x.followers--; x.followers == 0 {
			if f.all[id] == x {
				delete(f.all, id)
			}
			go func() { <-x.started; x.stop() }()
		}
	}
	select {
	case <-x.started:
	case <-ctx.Done():
		leave()
		return nil, nil, nil, ctx.Err()
	}
	if x.err != nil {
		leave()
		return nil, nil, nil, x.err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x, x.tail, leave, nil
}

// run reads the events of a feed while it has followers.
func (f *feeds) run(id uuid.UUID, x *feed) {
	ctx, stop := context.WithCancel(f.ended)
	defer stop()
	x.stop = stop
	w, sequence, release, err := f.watch(ctx, id)
	if err != nil {
		x.err = err
		f.forget(id, x)
		close(x.started)
		return
	}
	defer release()
	x.tail = &event{sequence: sequence, more: make(chan struct{})}
	close(x.started)
	for e := range w.Events(ctx) {
		if e.Kind == ctxdir.EventProblem {
			break // a follower connects again, and begins where it stopped
		}
		x.add(ctx, &e)
		if id != uuid.Nil && x.tail.removed {
			break
		}
	}
	f.forget(id, x)
	x.mu.Lock()
	defer x.mu.Unlock()
	close(x.tail.more)
}

// forget lets the next follower begin another feed.
func (f *feeds) forget(id uuid.UUID, x *feed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all[id] == x {
		delete(f.all, id)
	}
}

// watch begins to follow a context after its newest commit, or the store.
func (f *feeds) watch(ctx context.Context, id uuid.UUID) (w *ctxdir.Watcher, sequence uint64, release func(), err error) {
	if id == uuid.Nil {
		w, err = f.store.Watch(ctx)
		return w, 0, func() { _ = w.Close() }, err
	}
	c, err := f.store.Open(ctx, id)
	if err != nil {
		return nil, 0, nil, err
	}
	sequence = c.Summary().Sequence
	if w, err = c.Watch(ctx, sequence); err != nil {
		_ = c.Close()
		return nil, 0, nil, err
	}
	return w, sequence, func() { _, _ = w.Close(), c.Close() }, nil
}

func (x *feed) add(ctx context.Context, e *ctxdir.Event) {
	line := record.OfEvent(ctx, e, maxInline)
	x.mu.Lock()
	defer x.mu.Unlock()
	n := &event{
		line: line, sequence: x.tail.sequence, total: x.tail.total + int64(len(line)), more: make(chan struct{}),
		removed: e.Kind == ctxdir.EventContext && e.Op == "removed", context: e.Context,
	}
	if !x.store {
		n.own = e.Seq
		if !e.More {
			n.sequence = max(n.sequence, e.Seq)
		}
	}
	x.tail.next = n
	close(x.tail.more)
	x.tail = n
}

// newest is the number of bytes of all lines of a feed.
func (x *feed) newest() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.tail.total
}
