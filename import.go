package ctxdir

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/internal/importing"
	"github.com/google/uuid"
)

// Importer returns the store in the form that package importer takes:
//
//	into := s.Importer()
//	for r, err := range importer.Import(ctx, into, path, importer.Options{Known: into}) { … }
//	err := into.Save()
//
// As [importer.Known], it is the cache of the histories that the store holds completely: an import passes over files that
// did not change since. Save keeps it for later imports, in derived/ of the store. It has no text of messages, and may be
// lost: then an import reads each file once more. If something was committed to a context since the import, such as an
// append or a rewind, its files are read again. Imports of several goroutines and processes may save. Save changes nothing
// in a store that is open for reading.
func (s *Store) Importer() importer.Destination {
	return destination{s.imports, sync.OnceValue(s.imports.Cache)}
}

type destination struct {
	into  *importing.Store
	known func() *importing.Cache
}

func (d destination) Open(ctx context.Context, info importer.Info) (importer.Conversation, error) {
	c, err := d.into.Open(ctx, info)
	if err != nil {
		return nil, wrap(err)
	}
	return conversation{c}, nil
}

func (d destination) Has(ctx context.Context, h importer.History) bool { return d.known().Has(ctx, h) }

func (d destination) Note(h importer.History, contexts []uuid.UUID) { d.known().Note(h, contexts) }

func (d destination) Save() error { return wrap(d.known().Save()) }

// conversation converts the errors of the engine to those of this package.
type conversation struct{ importer.Conversation }

func (c conversation) Branches(ctx context.Context) ([]importer.Branch, error) {
	branches, err := c.Conversation.Branches(ctx)
	return branches, wrap(err)
}

func (c conversation) Messages(ctx context.Context, branch string, from, to int64) ([]importer.Record, error) {
	records, err := c.Conversation.Messages(ctx, branch, from, to)
	return records, wrap(err)
}

func (c conversation) Fork(ctx context.Context, name, from string, at int64, attrs map[string]json.RawMessage) error {
	return wrap(c.Conversation.Fork(ctx, name, from, at, attrs))
}

func (c conversation) Append(ctx context.Context, branch string, at int64, recs []importer.Record) error {
	return wrap(c.Conversation.Append(ctx, branch, at, recs))
}

func (c conversation) Replace(ctx context.Context, branch string, recs []importer.Record) error {
	return wrap(c.Conversation.Replace(ctx, branch, recs))
}

func (c conversation) Find(ctx context.Context, id uuid.UUID) (branch string, at int64, ok bool, err error) {
	branch, at, ok, err = c.Conversation.Find(ctx, id)
	return branch, at, ok, wrap(err)
}

func (c conversation) Describe(ctx context.Context, info importer.Info, changed bool) error {
	return wrap(c.Conversation.Describe(ctx, info, changed))
}

func (c conversation) SetActive(ctx context.Context, branch string) error {
	return wrap(c.Conversation.SetActive(ctx, branch))
}

func (c conversation) Close() error { return wrap(c.Conversation.Close()) }
