package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// mostWatched bounds the branches that clients follow at a time: each is an open context.
const mostWatched = 32

// watching tells clients that a branch to which they subscribed has changed.
type watching struct {
	library *library
	server  *sdk.Server

	mu       sync.Mutex
	watched  map[string]*watched // by address
	finished sync.WaitGroup
}

// watched is a branch that clients follow.
type watched struct {
	sessions map[*sdk.ServerSession]bool
	stop     context.CancelFunc
}

// subscribe begins to watch a branch. The next change after the answer is told.
func (w *watching) subscribe(ctx context.Context, r *sdk.SubscribeRequest) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if of := w.watched[r.Params.URI]; of != nil {
		of.sessions[r.Session] = true
		return nil
	}
	if len(w.watched) >= mostWatched {
		return fmt.Errorf("more than %d branches are watched: unsubscribe from others", mostWatched)
	}
	id, name, ok := w.library.parse(r.Params.URI)
	if !ok {
		return sdk.ResourceNotFoundError(r.Params.URI)
	}
	c, events, err := w.library.watch(ctx, id, name)
	if err != nil {
		return errors.Join(sdk.ResourceNotFoundError(r.Params.URI), ctx.Err())
	}
	follow, stop := context.WithCancel(context.WithoutCancel(ctx)) // the request ends before
	w.watched[r.Params.URI] = &watched{map[*sdk.ServerSession]bool{r.Session: true}, stop}
	uri := r.Params.URI
	w.finished.Go(func() {
		defer c.Close()
		defer events.Close() //nolint:errcheck // it was only read
		for e := range events.Events(follow) {
			if e.More || e.Kind == ctxdir.EventProblem {
				continue
			}
			if w.library.context(follow, id.String(), func(*ctxdir.Context) error { return nil }) != nil {
				continue // it is gone, or private now
			}
			_ = w.server.ResourceUpdated(follow, &sdk.ResourceUpdatedNotificationParams{URI: uri}) // a client that is gone subscribes again
		}
	})
	return nil
}

// watch opens a context, unless it is private, and follows a branch of it.
func (l *library) watch(ctx context.Context, id uuid.UUID, name string) (*ctxdir.Context, *ctxdir.Watcher, error) {
	if err := l.context(ctx, id.String(), func(*ctxdir.Context) error { return nil }); err != nil {
		return nil, nil, err
	}
	c, err := l.store.Open(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	b, err := c.Branch(name)
	if err == nil {
		var events *ctxdir.Watcher
		if events, err = b.Watch(ctx, c.Summary().Sequence); err == nil {
			return c, events, nil
		}
	}
	return nil, nil, errors.Join(err, c.Close())
}

// unsubscribe ends the watch of a branch that no client follows any more.
func (w *watching) unsubscribe(_ context.Context, r *sdk.UnsubscribeRequest) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.watched[r.Params.URI]
	if of == nil {
		return nil
	}
	if delete(of.sessions, r.Session); len(of.sessions) == 0 {
		of.stop()
		delete(w.watched, r.Params.URI)
	}
	return nil
}

func (w *watching) close() {
	w.mu.Lock()
	for uri, of := range w.watched {
		of.stop()
		delete(w.watched, uri)
	}
	w.mu.Unlock()
	w.finished.Wait()
}
