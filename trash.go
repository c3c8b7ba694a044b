package ctxdir

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/ctxdir/ctxdir/internal/trash"
	"github.com/google/uuid"
)

// Item is a thing in a trash, or one that was moved there, purged or erased.
type Item struct {
	ID        uuid.UUID // for [Store.Restore] and [Store.PurgeItems]; uuid.Nil for what was erased
	Context   uuid.UUID
	Message   uuid.UUID // the erased message; uuid.Nil for a payload
	Kind      string    // "context", "line", "version", "blobs", "tail" or "damaged"; empty when the item does not say
	Name      string    // of the thing: the name of a branch or a file
	Path      string    // relative to the store
	Bytes     int64     // size of the files
	Reason    string
	RemovedAt time.Time
	Purged    bool  // it is gone for good
	Messages  int64 // of a restored line: how many messages are back, or were there already
	Missing   int64 // of a restored line: positions without a message in the trash; they are marked unavailable
	Problem   error // why the item cannot be read or restored
}

func item(e engine.TrashItem) Item {
	return Item{
		ID: e.Item, Context: e.Context, Kind: e.Kind, Name: e.Name, Path: e.Path, Bytes: e.Bytes, Reason: e.Reason, RemovedAt: e.RemovedAt,
		Problem: wrap(e.Problem),
	}
}

// collect runs an operation of the engine to its end. An error that comes with a value of E concerns one thing, and the
// others follow: failed gets it, or it becomes part of the error.
func collect[E comparable, T any](seq iter.Seq2[E, error], report func(T), failed func(error), convert func(E) T) (all []T, err error) {
	var none E
	for e, fault := range seq {
		switch {
		case fault != nil && failed != nil && e != none:
			failed(wrap(fault))
		case fault != nil:
			err = errors.Join(err, wrap(fault))
		default:
			x := convert(e)
			all = append(all, x)
			if report != nil {
				report(x)
			}
		}
	}
	return all, err
}

// Remove moves a context, a legacy one too, to the trash of the store. It waits for writers, and fails with [ErrNotExist].
func (s *Store) Remove(ctx context.Context, id uuid.UUID) (Item, error) {
	t, err := s.e.Delete(ctx, id)
	return item(t), wrap(err)
}

// CollectOptions say what to collect.
type CollectOptions struct {
	Contexts []uuid.UUID   // these contexts and their trash
	All      bool          // every context, the trash of the store, and its blobs
	Grace    time.Duration // how long things stay in the trash: 0 means a week, a negative time not at all
	// IfDue collects only when the last collection was a day ago and no other process collects, and for two seconds at
	// most; the next collection continues.
	IfDue  bool
	DryRun bool        // only report what would be done
	Report func(Item)  // is called for each thing when it is done; nil for no calls
	Failed func(error) // is called for each thing that failed, which then is no part of the error; nil for no calls
}

// Collect moves messages that no branch shows to the trash of their context, purges what has been in a trash for longer
// than the grace period, and moves blobs that nothing refers to to the trash. It runs beside writers. What it cannot do
// for one context is part of the error, and the others follow. It fails with [ErrLocked] while another process
// collects.
func (s *Store) Collect(ctx context.Context, o CollectOptions) ([]Item, error) {
	switch {
	case o.Grace == 0:
		o.Grace = trash.DefaultGrace
	case o.Grace < 0:
		o.Grace = 0
	}
	if o.IfDue {
		return nil, wrap(trash.CollectIfDue(ctx, s.e, o.Grace))
	}
	if !o.All && len(o.Contexts) == 0 {
		return nil, nil
	}
	collected := trash.Collect(ctx, s.e, trash.CollectOptions{Contexts: o.Contexts, Grace: o.Grace, DryRun: o.DryRun})
	return collect(collected, o.Report, o.Failed, func(c trash.CollectResult) Item {
		i := item(c.TrashItem)
		i.Purged = c.Purged
		return i
	})
}

// RemoveOptions change an erase or a purge of the trash.
type RemoveOptions struct {
	Shared bool        // of an erase: also erase messages that several branches show
	DryRun bool        // only report what would be done
	Report func(Item)  // is called for each thing when it is gone; nil for no calls
	Failed func(error) // of a purge: is called for each item that failed, which then is no part of the error; nil for no calls
}

// Erase removes messages of a context for good: their files, what journals, packs and trash hold of any version, copies
// of the context in the store's trash, and payloads that nothing else refers to. The positions stay; readers find the
// messages unavailable, with [ErrErased]. docs/DESIGN.md lists what an erase cannot reach.
//
// Erase fails with [ErrNotExist] when the context has no message of one of the ids, and with [ErrShared] when several
// branches show one: before anything is changed. Repeated, it finishes what an interrupted erase left.
func (s *Store) Erase(ctx context.Context, id uuid.UUID, messages []uuid.UUID, o RemoveOptions) ([]Item, error) {
	erased := erase.Messages(ctx, s.e, id, messages, erase.Options{Shared: o.Shared, DryRun: o.DryRun})
	return collect(erased, o.Report, nil, func(e erase.Removal) Item {
		return Item{Context: e.Context, Message: e.ID, Path: e.Path, Bytes: e.Bytes, Reason: e.Reason, Purged: !o.DryRun}
	})
}

// Trash yields what is in the trash of the store and in those of its contexts, oldest first in each; with ids, only
// what belongs to these contexts. A trash that cannot be read comes with an error, and the others follow.
func (s *Store) Trash(ctx context.Context, contexts ...uuid.UUID) iter.Seq2[Item, error] {
	return each(trash.List(ctx, s.e, contexts...), item)
}

// ResolveItem returns the item of the trash that ref names: a full id, or a unique part of one, as in [Store.Resolve].
// It fails with [ErrNotExist], or with [ErrAmbiguous]; [Error].Matches then lists the candidates.
func (s *Store) ResolveItem(ctx context.Context, ref string) (uuid.UUID, error) {
	id, err := trash.ResolveItem(ctx, s.e, ref)
	return id, wrap(err)
}

// PurgeItems removes items from the trash for good. An item that cannot be removed is part of the error, and the others follow.
func (s *Store) PurgeItems(ctx context.Context, items []uuid.UUID, o RemoveOptions) ([]Item, error) {
	if len(items) == 0 {
		return nil, nil
	}
	return s.purge(ctx, items, 0, o)
}

// PurgeOlder removes every item from the trash for good that was removed at least so long ago: with 0, all. Errors are
// those of [Store.PurgeItems].
func (s *Store) PurgeOlder(ctx context.Context, age time.Duration, o RemoveOptions) ([]Item, error) {
	return s.purge(ctx, nil, age, o)
}

func (s *Store) purge(ctx context.Context, items []uuid.UUID, age time.Duration, o RemoveOptions) ([]Item, error) {
	return collect(trash.Purge(ctx, s.e, items, age, o.DryRun), o.Report, o.Failed, func(t engine.TrashItem) Item {
		i := item(t)
		i.Purged = !o.DryRun
		return i
	})
}

// Restore brings an item back and takes it out of the trash. A context returns to its folder. The end of a line returns
// to its positions, under the name of its branch or a similar one. An old version of a message replaces the present
// one, which goes to the trash. Blobs return to their places.
//
// Name of the result is the name of the branch that a line has now. Restore fails with [ErrNotExist] when there is no
// such item, with [ErrExist] when the context is there, with [ErrPosition] when another item, which the error names,
// has to be restored first, with [ErrConflict] when other messages have the positions, and with [ErrInvalid] for an
// item that can only be looked at. Repeated after an interruption, it finishes.
func (s *Store) Restore(ctx context.Context, id uuid.UUID) (Item, error) {
	r, err := trash.Restore(ctx, s.e, id)
	return Item{
		ID: r.Item, Context: r.Context, Kind: r.Kind, Name: r.Branch, Path: r.Path, Bytes: r.Bytes, Messages: r.Messages, Missing: r.Missing,
	}, wrap(err)
}
