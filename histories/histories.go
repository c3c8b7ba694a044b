// Package histories stores other tools' histories: it is the store that package importer writes to.
//
//	into := histories.Into(s)
//	for r, err := range importer.Import(ctx, into, path, importer.Options{Known: into}) { … }
//	err := into.Save()
//
// Its API may change with any minor version; CHANGELOG.md says how.
package histories

import (
	"context"
	"sync"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/internal/bridge"
	"github.com/ctxdir/ctxdir/internal/importing"
	"github.com/google/uuid"
)

// Store is a store in the form that package importer takes, as [importer.Store] and as [importer.Known]. Several
// goroutines may use it.
//
// As Known, it is the cache of the histories that the store holds completely: an import passes over files that did not
// change since. Save keeps it for later imports, in derived/ of the store. It has no text of messages, and may be lost:
// then an import reads each file once more. If something was committed to a context since the import, such as an append
// or a rewind, its files are read again.
type Store struct {
	into  *importing.Store
	known func() *importing.Cache
}

// Into returns an open store for imports. Make one for each open store, so that its imports know of each other.
func Into(s *ctxdir.Store) *Store {
	into := importing.New(bridge.Engine(s))
	return &Store{into, sync.OnceValue(into.Cache)}
}

// Open implements [importer.Store]. It opens the context of a history, and creates it if it is missing.
func (s *Store) Open(ctx context.Context, info importer.Info) (importer.Conversation, error) {
	c, err := s.into.Open(ctx, info)
	if err != nil {
		return nil, bridge.Error(err)
	}
	return conversation{c}, nil
}

// Has implements [importer.Known].
func (s *Store) Has(ctx context.Context, h importer.History) bool { return s.known().Has(ctx, h) }

// Note implements [importer.Known].
func (s *Store) Note(h importer.History, contexts []uuid.UUID) { s.known().Note(h, contexts) }

// Save writes what the imports have noted. Imports of several processes may save. It changes nothing in a store that is
// open for reading.
func (s *Store) Save() error { return bridge.Error(s.known().Save()) }
