// Package ctxdir stores the conversations of language-model agents as plain files: Maildir for agent contexts.
//
// A store is a folder. Each context, a conversation with its branches, is a folder in it. Each message is a file.
// [Init] makes a store, [Open] opens one, [Store.Create] and [Store.Open] return a [Context], and its branches
// append, read and fork:
//
//	s, err := ctxdir.Open(dir)
//	c, err := s.Open(ctx, id)
//	b := c.Active()
//	at, err := b.Append(ctx, ctxdir.Draft{Body: body})
//	for m, err := range b.Messages(ctx, 0, ctxdir.End) { … }
//
// A line is an append-only sequence of messages. A branch is a name that points at a line. A fork begins a new line at
// a position of another line and copies nothing. No operation on one branch changes what another branch shows, and none
// destroys a message: messages that no branch shows stay for a grace period, in which the trash lists them.
//
// When an append returns, the message is durable: one fdatasync of the context's log has covered it. Several
// processes may append to one context at the same time. Readers take no lock. A reader may see a message shortly before
// it is durable.
//
// docs/FORMAT.md describes the format on disk, and docs/DESIGN.md the promises and how the engine keeps them.
//
// The API of this package is stable from 0.1 on: a later version may add names and fields, and changes or removes none. Each
// other package says in its comment what it promises; docs/LIBRARY.md lists them all.
package ctxdir

import (
	"context"
	"iter"
	"time"

	"github.com/ctxdir/ctxdir/internal/collected"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/ctxdir/ctxdir/internal/importing"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/google/uuid"
)

// Store is an open store. Several goroutines may use it, and several processes may open the folder.
type Store struct {
	e       *engine.Store
	lists   *listing.Lister
	imports *importing.Store
}

// Init opens the store in dir. If there is none, it creates the store, and missing parent folders.
func Init(dir string, opts ...Options) (*Store, error) {
	e, err := engine.Init(dir, engineOptions(opts)...)
	return newStore(e, err)
}

// Open opens the store in dir. It fails with [ErrNoStore] when there is none, and with [ErrFormat] when the store is of
// another version. A store with features that this program can only read is opened for reading. It fails with
// [ErrDamaged] when the store's own file, ctxdir.json, is damaged: [RepairStore] repairs that. With [Options].ReadOnly
// such a store opens, and [StoreInfo].Problem says what is wrong.
func Open(dir string, opts ...Options) (*Store, error) {
	e, err := engine.Open(dir, engineOptions(opts)...)
	return newStore(e, err)
}

func newStore(e *engine.Store, err error) (*Store, error) {
	if err != nil {
		return nil, err
	}
	e.OnCut(func(ctx context.Context, c uuid.UUID, messages []uuid.UUID) error {
		return erase.MadeFrom(ctx, e, c, messages)
	})
	return &Store{e, listing.New(e), importing.New(e)}, nil
}

// Use calls f with an open context that shows the newest commits of every process. The store keeps up to 64 contexts
// open for later calls, and calls at the same time share them: so a program that works on many contexts by their ids
// opens each only once. c is valid until f returns, and Close does nothing to it. A context that was removed or
// replaced meanwhile is opened again. Use fails with [ErrNotExist], and returns the error of f.
func (s *Store) Use(ctx context.Context, id uuid.UUID, f func(c *Context) error) error {
	var failed error
	err := s.e.Use(ctx, id, func(e *engine.Context) error {
		failed = f(&Context{e: e, shared: true})
		return nil
	})
	if err != nil {
		return err
	}
	return failed
}

// Close releases the store, and the contexts that [Store.Use] keeps open; it waits for running calls of Use. Close
// other contexts first.
func (s *Store) Close() error {
	s.lists.Close()
	return s.e.Close()
}

// StoreInfo describes a store.
type StoreInfo struct {
	ID            uuid.UUID
	Path          string    // the folder that the store was opened with
	TextThreshold int64     // texts of at least this length, in bytes, move to blobs
	LastCollected time.Time // zero if it is unknown
	Problem       error     // why ctxdir.json cannot be used; see [RepairStore]
}

// Info describes the store.
func (s *Store) Info() StoreInfo {
	return StoreInfo{s.e.ID(), s.e.Path(), s.e.TextThreshold(), collected.Last(s.e), s.e.Problem()}
}

// Create creates a context. Every field of m may be zero: the context then has a new id (UUIDv7) and a branch "main",
// which takes the system prompt and the further members of m.Branches[0], if there is one. With m.ExternalID, the id is
// derived from it and from m.Kind; another m.ID is [ErrInvalid]. A CreatedAt and an UpdatedAt in the past are
// kept. Create fails with [ErrExist] when the id is taken. If Create fails, the next Open removes whatever it left.
func (s *Store) Create(ctx context.Context, m Metadata) (*Context, error) {
	e, err := m.engine()
	if err != nil {
		return nil, &Error{Op: "create", Context: m.ID, Err: err}
	}
	return newContext(s.e.Create(ctx, *e))
}

// Open opens a context. It reads metadata.json and the logs that are not sealed, so its cost does not depend on the
// length of the conversation. It fails with [ErrNotExist]. A damaged metadata.json does no harm: a log or segment has the
// metadata.
//
// If the store has a legacy context with that id, Open migrates it first, as [Store.Migrate] does. In a store that is open
// for reading, the legacy context is shown as it is; [Summary].Legacy names its format.
func (s *Store) Open(ctx context.Context, id uuid.UUID) (*Context, error) {
	return newContext(s.e.Context(ctx, id))
}

// IDs yields the ids of the contexts in the store in ascending order, without legacy ones.
func (s *Store) IDs() iter.Seq2[uuid.UUID, error] {
	return each(s.e.IDs(), func(id uuid.UUID) uuid.UUID { return id })
}

// OpenOrCreate opens the context with m.Kind and m.ExternalID, or creates it with m: several processes that call it at
// once get the same context. An external id is any text of up to 4 KiB, such as the session id of a framework, and
// unique per store and kind. It is found without a search, since the context's id is derived from it. While a removed
// context is in the trash, its external id is free; if another context has taken it, [Store.Restore] fails with
// [ErrExist]. OpenOrCreate fails with [ErrInvalid] without an external id.
func (s *Store) OpenOrCreate(ctx context.Context, m Metadata) (*Context, error) {
	e, err := m.engine()
	if err != nil {
		return nil, &Error{Op: "open", Context: m.ID, Err: err}
	}
	return newContext(s.e.OpenOrCreate(ctx, *e))
}

// Resolve returns the context that ref names: a full id, an external id, a kind and an external id with a slash between
// them, or a unique part of an id. A part is the beginning of the id, its end, or the beginning of its last group of
// digits, which is the random part that lists show. An external id alone names a context of any kind, if only one
// context has it. Legacy contexts in the store count too. Resolve fails with [ErrNotExist], with [ErrInvalid] for an
// empty ref, or with [ErrAmbiguous]; [Error].Matches then lists the candidates.
func (s *Store) Resolve(ref string) (uuid.UUID, error) {
	return s.lists.Resolve(ref)
}
