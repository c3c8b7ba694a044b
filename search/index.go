package search

import (
	"sync"

	"github.com/ctxdir/ctxdir"
)

// Index is the open search index of a store. Several goroutines may use it, and several processes may open it.
type Index struct {
	store *ctxdir.Store
	dir   string     // of the store
	mu    sync.Mutex // held by an update, and to open the file
	db    *database

	naming sync.Mutex // of names
	names  *directory
}
