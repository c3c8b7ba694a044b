// Package swap has the methods that replace the maps in eino's test stores.
package swap

import (
	"context"
	"os"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/eino"
)

// Map is a store instead of a map of checkpoints.
type Map struct {
	*eino.Store
	store *ctxdir.Store
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// New returns a store in a new folder.
func New() Map {
	dir, err := os.MkdirTemp("", "swap")
	must(err)
	store, err := ctxdir.Init(filepath.Join(dir, "store"))
	must(err)
	return Map{eino.NewStore(store), store}
}

// Put sets an entry.
func (m Map) Put(id string, data []byte) { must(m.Set(context.Background(), id, data)) }

// Find returns an entry.
func (m Map) Find(id string) ([]byte, bool) {
	data, ok, err := m.Get(context.Background(), id)
	must(err)
	return data, ok
}

// At returns an entry, or nil.
func (m Map) At(id string) []byte {
	data, _ := m.Find(id)
	return data
}

// Remove removes an entry.
func (m Map) Remove(id string) { must(m.Delete(context.Background(), id)) }

// IDs returns the ids of all entries.
func (m Map) IDs() (ids []string) {
	// eino has an old version of Go, without loops over functions.
	m.store.List(context.Background(), ctxdir.ListOptions{Kind: eino.Kind})(func(sum ctxdir.Summary, err error) bool {
		must(err)
		ids = append(ids, sum.ExternalID)
		return true
	})
	return ids
}
