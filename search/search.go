// Package search finds messages by their words, in every context of a store: on all branches, in archives and payloads.
//
// [Open] opens the index of a store, the file derived/search.db. [Index.Update] brings it up to date with the commits of
// all processes, and [Index.Search] finds messages. [Grep] finds exact text without an index.
//
//	x, err := search.Open(ctx, store)
//	_, err = x.Update(ctx, search.UpdateOptions{})
//	for hit, err := range x.Search(ctx, search.Query{Text: `"lock test" -windows`, Limit: 20}) { … }
//
// The index is a cache: it is built anew when it is missing, damaged or of another version. Nothing in the store depends
// on it, and it never makes an operation of the store fail.
package search

import (
	"context"
	"sync"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/bridge"
	"github.com/ctxdir/ctxdir/internal/engine"
)

// Index is the open search index of a store. Several goroutines may use it, and several processes may open it.
type Index struct {
	e     *engine.Store
	mu    sync.Mutex // held by an update, and to open the file
	db    *database
	names *directory
}

// Open opens the index of a store. The first [Index.Update] fills an empty one. If the store is open for reading, or its
// folder cannot be written, the index is in memory. Close the index before the store.
func Open(ctx context.Context, s *ctxdir.Store) (*Index, error) {
	Attach(s)
	x := &Index{e: bridge.Engine(s)}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.reopen(ctx); err != nil {
		return nil, err
	}
	return x, nil
}

// Close releases the index.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.db == nil {
		return nil
	}
	db := x.db
	x.db = nil
	return db.Close()
}
