package ctxdir

import (
	"context"
	"encoding/json"

	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/internal/importing"
	"github.com/google/uuid"
)

// Importer returns the store in the form that package importer requires: importer.Import(ctx, s.Importer(), path, …)
// stores the histories of another tool.
func (s *Store) Importer() importer.Store { return importStore{s.imports} }

// Imported is the cache of the histories that the store holds completely: pass it as importer.Options.Known, and an
// import passes over files that did not change since. Save keeps it for later imports, in derived/ of the store. It has
// no text of messages, and may be lost: then an import reads each file once more. If something was committed to a
// context since the import, such as an append or a rewind, its files are read again.
type Imported struct{ i *importing.Cache }

// Imported reads the cache. A missing or damaged one is empty.
func (s *Store) Imported() *Imported { return &Imported{s.imports.Cache()} }

// Has implements [importer.Known].
func (i *Imported) Has(ctx context.Context, h importer.History) bool { return i.i.Has(ctx, h) }

// Note implements [importer.Known].
func (i *Imported) Note(h importer.History, contexts []uuid.UUID) { i.i.Note(h, contexts) }

// Save writes what the imports have noted. Imports of several processes may save.
func (i *Imported) Save() error { return wrap(i.i.Save()) }

// importStore converts the errors of the engine to those of this package.
type importStore struct{ importer.Store }

func (i importStore) Open(ctx context.Context, info importer.Info) (importer.Conversation, error) {
	c, err := i.Store.Open(ctx, info)
	if err != nil {
		return nil, wrap(err)
	}
	return conversation{c}, nil
}

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
