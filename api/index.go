package api

import (
	"context"
	"sync"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
)

// indexing is how long a search waits for the index to have new commits.
const indexing = 2 * time.Second

// sharedIndex is the search index of the server, which opens with the first search.
type sharedIndex struct {
	store *ctxdir.Store

	mu    sync.Mutex
	index *search.Index
}

// open returns the index.
func (x *sharedIndex) open(ctx context.Context) (*search.Index, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.index != nil {
		return x.index, nil
	}
	// The index stays open after the request.
	index, err := search.Open(context.WithoutCancel(ctx), x.store)
	if err != nil {
		return nil, err
	}
	x.index = index
	return index, nil
}

// current returns the index after it read the new commits of some contexts, or of all, and the number of those that it
// does not have yet.
func (x *sharedIndex) current(ctx context.Context, ids ...uuid.UUID) (*search.Index, int64, error) {
	index, err := x.open(ctx)
	if err != nil {
		return nil, 0, err
	}
	done, err := index.Update(ctx, search.UpdateOptions{Contexts: ids, MaxWait: indexing})
	return index, done.Behind, err
}

func (x *sharedIndex) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.index != nil {
		_ = x.index.Close() // a cache
		x.index = nil
	}
}
