package ctxdir

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/ctxdir/ctxdir/internal/trash"
	"github.com/google/uuid"
)

// TrashKind is the kind of a trash item.
type TrashKind string

// The kinds of trash items.
const (
	TrashContext TrashKind = "context"
	TrashLine    TrashKind = "line"    // what a branch showed before it was rewound or removed
	TrashVersion TrashKind = "version" // of a message
	TrashBlobs   TrashKind = "blobs"
	TrashTail    TrashKind = "tail"    // the torn end of a log
	TrashDamaged TrashKind = "damaged" // a file that a repair replaced
)

// TrashItem is an item in a trash, or what an operation moved to a trash or purged from it.
type TrashItem struct {
	ID        uuid.UUID // for [Store.Restore] and [Store.Purge]; uuid.Nil for a trash that cannot be read
	Context   uuid.UUID // uuid.Nil for blobs
	Kind      TrashKind // empty if it is unknown
	Name      string    // of the removed data: the name of a branch or a file
	Path      string    // relative to the store
	Bytes     int64     // size of the files
	Reason    string
	RemovedAt time.Time
	Purged    bool  // the operation removed it for good
	Problem   error // why the item cannot be read or restored

	// Of a line:
	Why        string // the branch was "rewound" or "removed", or nothing says how the line lost its name: "unnamed"
	First, End int64  // no branch shows its messages at the positions [First, End)
	From       string // the branch that shares the most messages with the line; empty for none
	Shared     int64  // number of messages that both begin with
}

func trashItem(e engine.TrashItem) TrashItem {
	t := TrashItem{
		ID: e.Item, Context: e.Context, Kind: TrashKind(e.Kind), Name: e.Name, Path: e.Path, Bytes: e.Bytes,
		Reason: e.Reason, RemovedAt: e.RemovedAt,
		Problem: e.Problem,
	}
	if l := e.Line; l != nil {
		t.Why, t.First, t.End, t.From, t.Shared = l.Why, l.First, l.End, l.From, l.Shared
	}
	return t
}

// Remove moves a context, or a legacy context, to the trash of the store. It waits for writers. It fails with
// [ErrNotExist] if there is no such context.
func (s *Store) Remove(ctx context.Context, id uuid.UUID) (TrashItem, error) {
	t, err := s.e.Delete(ctx, id)
	return trashItem(t), err
}

// CollectOptions says what to collect: Contexts, or All.
type CollectOptions struct {
	Contexts []uuid.UUID     // these contexts and their trash
	All      bool            // every context, the trash of the store, and its blobs
	Grace    time.Duration   // how long items stay in the trash; 0 means [Settings].TrashGrace
	NoGrace  bool            // purge what was removed, however short ago
	DryRun   bool            // only report what would be done
	Report   func(TrashItem) // receives each item when it is done; may be nil
	Failed   func(error)     // receives the error of each item that failed; if set, the returned error omits these failures
	// IfDue, with All and no other choice, collects only if the last collection was at least a day ago and no other
	// process collects, and stops after two seconds; the next collection continues. Programs call it when they end.
	IfDue bool
	// Archived receives what was archived in each context, as [Settings] say; may be nil. A dry run leaves out the size
	// after that.
	Archived func(ArchiveResult)
}

// Collect purges what was removed longer ago than the grace period: branches and the ends of rewound branches, which
// stay in their context until then, and items of the trash. It moves unreferenced blobs to the trash. It archives old
// messages if [Settings] say so. It may run while writers run. The error includes each context that failed; the others
// are still processed. Collect fails with [ErrLocked] while another process collects, and with [ErrInvalid] unless o says
// what to collect.
func (s *Store) Collect(ctx context.Context, o CollectOptions) ([]TrashItem, error) {
	ids, err := chosen("collect", o.Contexts, o.All)
	if err == nil && o.IfDue && (!o.All || o.DryRun) {
		err = &Error{Op: "collect", Err: fmt.Errorf("%w: IfDue is for All, without DryRun", ErrInvalid)}
	}
	if err == nil && (o.Grace < 0 || o.NoGrace && o.Grace > 0) {
		err = &Error{Op: "collect", Err: fmt.Errorf("%w: grace period %v with NoGrace: %t", ErrInvalid, o.Grace, o.NoGrace)}
	}
	if err != nil {
		return nil, err
	}
	options := trash.CollectOptions{Contexts: ids, Grace: o.Grace, DryRun: o.DryRun}
	if o.Grace == 0 && !o.NoGrace {
		options.Grace = -1
	}
	if o.Archived != nil {
		options.Archived = func(r archiving.Result) { o.Archived(archived(r)) }
	}
	seq := trash.Collect(ctx, s.e, options)
	if o.IfDue {
		seq = func(yield func(trash.CollectResult, error) bool) {
			options.Report = func(r trash.CollectResult) { yield(r, nil) }
			if err := trash.CollectIfDue(ctx, s.e, options); err != nil {
				yield(trash.CollectResult{}, err)
			}
		}
	}
	return collect(seq, o.Report, o.Failed, func(c trash.CollectResult) TrashItem {
		i := trashItem(c.TrashItem)
		i.Purged = c.Purged
		return i
	})
}

// EraseOptions configures an erase.
type EraseOptions struct {
	Shared bool         // also erase messages that several branches show
	DryRun bool         // only report what would be done
	Report func(Erased) // receives each file when it is done; may be nil
}

// Erased is a file from which an erase removed a message or a payload, or one that it leaves to the caller.
type Erased struct {
	Context uuid.UUID
	Message uuid.UUID // uuid.Nil for a payload
	With    uuid.UUID // the message to erase that Message repeats; uuid.Nil if the caller named Message itself
	Path    string    // relative to the store
	Bytes   int64     // removed
	Reason  string
	Foreign bool  // nothing was removed: the file is none of the store's, and holds the message or could not be searched
	Problem error // why Message could not be examined; nothing was removed
}

// Erase removes messages of a context for good: their files, all versions in logs, segments and trash, copies of the
// context in the store's trash, and payloads that nothing else refers to. The positions stay; readers find the messages
// unavailable, with [ErrErased]. docs/DESIGN.md lists what an erase cannot reach.
//
// Erase also erases what repeats the messages: moments that were made from them, in an imported context the records that
// repeat them, and a title that was made from one of them. [Erased].With says so. If it cannot read a message that may be
// one of these, it erases the rest, reports one with a Problem for each such message, and returns an error that wraps
// [ErrUnexamined]. Another call, for any message of the context, looks at them again.
//
// Erase leaves files alone that are none of the store's, such as a copy of a message that a person made. It returns, as
// Foreign, each one that holds the id of an erased message or its longest line, and each one that it could not search.
// It searches the folder of the context, and the store's folder outside of other contexts: regular files, as they are,
// up to 64 MiB of each and 1 GiB in all.
//
// Before it changes anything, Erase fails with [ErrNotExist] if the context has no message with one of the ids, and
// with [ErrShared] if several branches show one. A second call finishes an interrupted erase.
func (s *Store) Erase(ctx context.Context, id uuid.UUID, messages []uuid.UUID, o EraseOptions) ([]Erased, error) {
	erased := erase.Messages(ctx, s.e, id, messages, erase.Options{Shared: o.Shared, DryRun: o.DryRun})
	return collect(erased, o.Report, nil, func(e erase.Removal) Erased {
		return Erased{e.Context, e.ID, e.With, e.Path, e.Bytes, e.Reason, e.Foreign, e.Problem}
	})
}

// Trash yields the items in the trash of the store and of its contexts, oldest first in each; with ids, only items of
// these contexts. A trash that cannot be read is an item without an id, with its Problem. An error ends the sequence.
func (s *Store) Trash(ctx context.Context, contexts ...uuid.UUID) iter.Seq2[TrashItem, error] {
	return each(trash.List(ctx, s.e, contexts...), trashItem)
}

// Purged returns the contexts that were removed for good, and when: see [Store.Purge] and [Store.Collect]. A context that was
// created again since then is among them.
func (s *Store) Purged() (map[uuid.UUID]time.Time, error) { return trash.Purged(s.e) }

// ResolveItem returns the trash item that ref names: what named the thing before its removal, the full id of the item,
// or a unique part of that id. For a context, the former name is all that [Store.Resolve] takes; for a branch, it is its
// name. A former name precedes a part of an item's id. ResolveItem fails with [ErrNotExist], with [ErrInvalid] for an
// empty ref, or with [ErrAmbiguous]; [Error].Matches then lists the candidates, which are items.
func (s *Store) ResolveItem(ctx context.Context, ref string) (uuid.UUID, error) {
	return trash.ResolveItem(ctx, s.e, ref)
}

// PurgeOptions says what to purge: Items, or all that was removed at least Age ago, or All.
type PurgeOptions struct {
	Items  []uuid.UUID     // these items
	Age    time.Duration   // every item that was moved to the trash at least so long ago
	All    bool            // every item
	DryRun bool            // only report what would be done
	Report func(TrashItem) // receives each item when it is removed; may be nil
	Failed func(error)     // receives the error of each item that failed; if set, the returned error omits these failures
}

// Purge removes items from the trash for good. The error includes each item that could not be removed; the others are
// still processed. Purge fails with [ErrInvalid] unless exactly one of Items, Age and All says what to purge.
func (s *Store) Purge(ctx context.Context, o PurgeOptions) ([]TrashItem, error) {
	ways := 0
	for _, given := range []bool{len(o.Items) > 0, o.Age > 0, o.All} {
		if given {
			ways++
		}
	}
	if ways != 1 || o.Age < 0 {
		err := fmt.Errorf("%w: set one of Items (%d given), Age (%v) and All (%t)", ErrInvalid, len(o.Items), o.Age, o.All)
		return nil, &Error{Op: "purge", Err: err}
	}
	return collect(trash.Purge(ctx, s.e, o.Items, o.Age, o.DryRun), o.Report, o.Failed, func(t engine.TrashItem) TrashItem {
		i := trashItem(t)
		i.Purged = !o.DryRun
		return i
	})
}

// Restore restores an item and removes it from the trash. A context returns to its folder. A removed branch, or the
// branch that was rewound, returns under its name or a similar one. An old version of a message replaces the current one,
// which moves to the trash. Blobs return to their paths. Restore returns the item as it is now: its Path is that of the
// restored data, and its Name, for a line, the branch that shows it.
//
// A second call finishes an interrupted restore. Restore fails with:
//
//   - [ErrNotExist] if there is no such item
//   - [ErrExist] if the context exists
//   - [ErrPosition] for an old version of a message that is gone
//   - [ErrConflict] if another message has its position
//   - [ErrInvalid] for an item that cannot be restored
func (s *Store) Restore(ctx context.Context, id uuid.UUID) (TrashItem, error) {
	r, err := trash.Restore(ctx, s.e, id)
	return TrashItem{
		ID: r.Item, Context: r.Context, Kind: TrashKind(r.Kind), Name: r.Branch, Path: r.Path, Bytes: r.Bytes,
		First: r.First, End: r.First + r.Messages,
	}, err
}
