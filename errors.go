package ctxdir

import (
	"errors"
	"iter"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/ctxdir/ctxdir/internal/migrate"
	"github.com/google/uuid"
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
	ErrAmbiguous = errors.New("ambiguous")
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

// Error says what failed, and where. Fields that do not apply are zero.
type Error struct {
	Op      string // the operation: "append", "fork", …
	Context uuid.UUID
	Branch  string
	ID      uuid.UUID   // of the message
	Path    string      // of a file, or the pointer to a payload in its message
	Matches []uuid.UUID // candidates, with [ErrAmbiguous]
	Differs []string    // how a migrated context differs from its original, at most 1,000 lines
	Err     error
}

func (e *Error) Error() string {
	return (&engine.Error{Op: e.Op, Context: e.Context, Branch: e.Branch, ID: e.ID, Path: e.Path, Err: e.Err}).Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// sentinels maps errors that only the engine distinguishes.
var sentinels = []struct{ below, here error }{
	{engine.ErrStoreFile, ErrDamaged},
	{engine.ErrGone, ErrNotExist},
	{engine.ErrActive, ErrInvalid},
	{engine.ErrKind, ErrInvalid},
	{engine.ErrMetadata, ErrDamaged},
	{engine.ErrNotLegacy, ErrInvalid},
}

// wrap makes an error of the engine one of this package. It is the only place where that happens.
func wrap(err error) error {
	if err == nil {
		return nil
	}
	var at *engine.Error
	switch {
	case !errors.As(err, &at):
		return mark(err)
	case err != error(at): //nolint:errorlint // an error around that of the engine keeps its text
		return engine.Mark(err, wrap(at))
	}
	e := &Error{Op: at.Op, Context: at.Context, Branch: at.Branch, ID: at.ID, Path: at.Path, Err: mark(at.Err)}
	var ambiguous *listing.AmbiguousError
	if errors.As(err, &ambiguous) {
		e.Matches, e.Err = ambiguous.Matches, engine.Mark(e.Err, ErrAmbiguous)
	}
	var differs *migrate.ValidationError
	if errors.As(err, &differs) {
		for _, d := range differs.Discrepancies {
			e.Differs = append(e.Differs, d.String())
		}
		e.Err = engine.Mark(e.Err, ErrConflict)
	}
	return e
}

// mark adds the errors of this package that an error of the engine stands for.
func mark(err error) error {
	for _, s := range sentinels {
		if errors.Is(err, s.below) && !errors.Is(err, s.here) {
			err = engine.Mark(err, s.here)
		}
	}
	return err
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

// collect runs an operation of the engine to its end. An error that comes with a value of E concerns one item, and the
// operation continues: failed gets the error, or the returned error includes it.
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
