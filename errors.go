package ctxdir

import (
	"errors"
	"iter"

	"github.com/ctxdir/ctxdir/internal/engine"
)

// Errors that callers distinguish with errors.Is. Each is wrapped in an [*Error], which says where it occurred.
var (
	// ErrNoStore: the folder is not a store.
	ErrNoStore = engine.ErrNoStore
	// ErrFormat: a file has an unknown format version, or the store has an unknown feature.
	ErrFormat = engine.ErrFormat
	// ErrNotExist: there is no such context, branch, message or trash item, or the folder of an open context was moved
	// or removed.
	ErrNotExist = engine.ErrNotExist
	// ErrAmbiguous: a part of an id matches several ids; [Error].Matches lists them.
	ErrAmbiguous = engine.ErrAmbiguous
	// ErrExist: the name or id is taken.
	ErrExist = engine.ErrExist
	// ErrInvalid: the name, id or message cannot be stored, or the operation does not apply, such as the removal of the
	// active branch.
	ErrInvalid = engine.ErrInvalid
	// ErrConflict: a message with that id exists and has other content, or a migrated context differs from its original.
	ErrConflict = engine.ErrConflict
	// ErrPosition: the position is out of range, or is not the expected one.
	ErrPosition = engine.ErrPosition
	// ErrShared: other branches show the message too.
	ErrShared = engine.ErrShared
	// ErrLocked: waiting for a lock timed out.
	ErrLocked = engine.ErrLocked
	// ErrReadOnly: the store is open for reading only.
	ErrReadOnly = engine.ErrReadOnly
	// ErrClosed: this program closed the context. The operation did nothing.
	ErrClosed = engine.ErrClosed
	// ErrDamaged: the stored data is not what was committed; a repair restores what it can.
	ErrDamaged = engine.ErrDamaged
	// ErrErased: the message was erased.
	ErrErased = engine.ErrErased
	// ErrUnexamined: a message could not be read, and may repeat the text of those that were to be removed for good.
	ErrUnexamined = engine.ErrUnexamined
	// ErrDurability: a sync failed. After a crash, the data that was being written may or may not be there.
	ErrDurability = engine.ErrDurability
	// ErrTooLarge: the message is above the limit of [Options].MaxMessage or MemoryLimit, or its payloads are above 1
	// GiB.
	ErrTooLarge = engine.ErrTooLarge
)

// Error says what failed, and where. Fields that do not apply are zero:
//
//	Op      string // the operation: "append", "fork", …
//	Context uuid.UUID
//	Branch  string
//	ID      uuid.UUID   // of the message
//	Path    string      // of a file, or the pointer to a payload in its message
//	Matches []uuid.UUID // candidates, with [ErrAmbiguous]
//	Differs []string    // how a migrated context differs from its original, at most 1,000 lines
//	Err     error       // the cause
type Error = engine.Error

// each converts what a sequence of the engine yields.
func each[E, T any](seq iter.Seq2[E, error], convert func(E) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for e, err := range seq {
			if !yield(convert(e), err) {
				return
			}
		}
	}
}

// collect runs an operation of the engine to its end. An error that comes with a value of E concerns one item, and the
// operation continues: failed gets the error, or the returned error includes it.
func collect[E comparable, T any](seq iter.Seq2[E, error], report func(T), failed func(error), convert func(E) T) (all []T, err error) {
	var none E
	for e, fault := range seq {
		switch {
		case fault != nil && failed != nil && e != none:
			failed(fault)
		case fault != nil:
			err = errors.Join(err, fault)
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
