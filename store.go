// Package ctxdir stores the conversations of language-model agents as plain files: Maildir for agent contexts.
//
// A store is a folder. Each context, a conversation with its branches, is a folder in it. Each message is a file.
// [Init] makes a store, [Open] opens one, [Store.Create] and [Store.Context] return a [Context], and its branches
// append, read and fork:
//
//	s, err := ctxdir.Open(dir)
//	c, err := s.Context(ctx, id)
//	b := c.Active()
//	at, err := b.Append(ctx, ctxdir.Draft{Body: body})
//	for m, err := range b.Messages(ctx, 0, ctxdir.End) { … }
//
// A line is an append-only sequence of messages. A branch is a name that points at a line. A fork begins a new line at
// a position of another line and copies nothing. No operation on one branch changes what another branch shows, and none
// destroys a message: messages that no branch shows stay for a grace period, in which the trash lists them.
//
// When an append returns, the message is durable: one fdatasync of the context's journal has covered it. Several
// processes may append to one context at the same time. Readers take no lock. A reader may see a message shortly before
// it is durable.
//
// docs/FORMAT.md describes the format on disk, and docs/DESIGN.md the promises and how the engine keeps them. This
// package is the only one with a compatibility promise.
package ctxdir

import (
	"context"
	"iter"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/trash"
	"github.com/google/uuid"
)

// Store is an open store. Several goroutines may use it, and several processes may open the folder.
type Store struct {
	e *engine.Store
}

// Init opens the store in dir. If there is none, it creates the store, and missing parent folders.
func Init(dir string, opts ...Option) (*Store, error) {
	e, err := engine.Init(dir, engineOptions(opts)...)
	return newStore(e, err)
}

// Open opens the store in dir. It fails with [ErrNoStore] when there is none, and with [ErrFormat] when the store is of
// another version. A store with features that this program can only read is opened for reading. It fails with
// [ErrDamaged] when the store's own file, ctxdir.json, is damaged: [RepairStore] mends that. With [WithReadOnly] such a
// store opens, and [StoreInfo].Problem says what is wrong.
func Open(dir string, opts ...Option) (*Store, error) {
	e, err := engine.Open(dir, engineOptions(opts)...)
	return newStore(e, err)
}

func newStore(e *engine.Store, err error) (*Store, error) {
	if err != nil {
		return nil, wrap(err)
	}
	return &Store{e}, nil
}

// Close releases the store. Close its contexts first.
func (s *Store) Close() error { return wrap(s.e.Close()) }

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
	return StoreInfo{s.e.ID(), s.e.Path(), s.e.TextThreshold(), trash.LastCollection(s.e), wrap(s.e.Problem())}
}

// Create creates a context. Every field of m may be zero: the context then has a new id (UUIDv7) and a branch "main",
// which takes the system prompt and the further members of m.Branches[0], if there is one. Create fails with [ErrExist]
// when the id is taken. If Create fails, the next Open removes whatever it left.
func (s *Store) Create(ctx context.Context, m Metadata) (*Context, error) {
	e, err := m.engine()
	if err != nil {
		return nil, &Error{Op: "create", Context: m.ID, Err: err}
	}
	return newContext(s.e.Create(ctx, *e))
}

// Context opens a context. It reads metadata.json, index.json and the journal since the last fold, so its cost does not
// depend on the length of the conversation. It fails with [ErrNotExist]. A damaged metadata.json does no harm: the journal
// has the metadata.
//
// If the store has a legacy context with that id, Context migrates it first, like [Store.Migrate]. With
// [WithoutMigration], or in a store that is open for reading, the legacy context is shown as it is and cannot be
// written to; [Summary].Legacy names its format.
func (s *Store) Context(ctx context.Context, id uuid.UUID) (*Context, error) {
	return newContext(s.e.Context(ctx, id))
}

// IDs yields the ids of the contexts in the store in no particular order, without legacy ones.
func (s *Store) IDs() iter.Seq2[uuid.UUID, error] {
	return each(s.e.IDs(), func(id uuid.UUID) uuid.UUID { return id })
}

// Resolve returns the context that ref names: a full id, or a unique part of one. A part is the beginning of the id,
// its end, or the beginning of its last group of digits, which is the random part that lists show. Legacy contexts in
// the store count too. Resolve fails with [ErrNotExist], or with [ErrAmbiguous]; [Error].Matches then lists the
// candidates.
func (s *Store) Resolve(ref string) (uuid.UUID, error) {
	id, err := s.e.Resolve(ref)
	return id, wrap(err)
}

// Summary describes a context in a list.
type Summary struct {
	ID           uuid.UUID
	Title        string
	Branches     int
	ActiveBranch string
	Messages     int64 // shown by at least one branch, each counted once
	Bytes        int64 // of the messages and of metadata.json
	Archived     int64 // bytes of the messages that are in packs
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Legacy       string // the format of a legacy context, "legacy" or "legacy-split"; empty for a context of this format
	Sequence     uint64 // the newest commit that the summary shows, if [Context.Summary] knows it
	Problem      error  // why the context, or a part of it, cannot be used; the other fields hold what is known
}

// List yields every context in the store in no particular order, legacy contexts too. For a damaged context, List
// yields a Summary with a Problem. An error means that the store's own folder cannot be read. The file summaries.jsonl
// is a cache for lists.
func (s *Store) List(ctx context.Context) iter.Seq2[Summary, error] {
	return each(s.e.List(ctx), summary)
}

func summary(e engine.Summary) Summary {
	return Summary{
		ID: e.ID, Title: e.Title, Branches: e.Branches, ActiveBranch: e.ActiveBranch, Messages: e.Messages, Bytes: e.Bytes, Archived: e.Archived,
		CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt, Legacy: string(e.Format), Problem: wrap(e.Problem),
	}
}

// each converts what a sequence of the engine yields, and its errors.
func each[E, T any](seq iter.Seq2[E, error], convert func(E) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for e, err := range seq {
			if !yield(convert(e), wrap(err)) {
				return
			}
		}
	}
}
