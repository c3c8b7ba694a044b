package ctxdir

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ctxdir/ctxdir/blob"
	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/legacy"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// Errors that callers tell apart with errors.Is. They come wrapped in an [*Error], which says where.
var (
	// ErrNoStore: the folder is no store.
	ErrNoStore = errors.New("no store there")
	// ErrFormat: a file is of a format version, or the store has a feature, that this program does not know.
	ErrFormat = ctxfolder.ErrVersion
	// ErrNotExist: there is no such context, branch or message.
	ErrNotExist = errors.New("not found")
	// ErrExist: the name or id is taken.
	ErrExist = errors.New("exists already")
	// ErrInvalid: a name, id or message that cannot be stored.
	ErrInvalid = errors.New("invalid")
	// ErrConflict: a message of that id is there, with other content.
	ErrConflict = errors.New("a message of that id is there with other content")
	// ErrPosition: the position is out of range, or not the one that was expected.
	ErrPosition = errors.New("position")
	// ErrShared: other branches show the message too.
	ErrShared = errors.New("other branches show the message too")
	// ErrActive: the branch is the active one.
	ErrActive = branch.ErrActive
	// ErrLocked: another process held the lock all the time that was given.
	ErrLocked = errors.New("locked by another process")
	// ErrReadOnly: the store was opened for reading only.
	ErrReadOnly = errors.New("store is open for reading only")
	// ErrGone: the context's folder was moved or removed.
	ErrGone = ctxfolder.ErrGone
	// ErrClosed: the context was closed by this program. The operation did nothing.
	ErrClosed = loader.ErrClosed
	// ErrMetadata: metadata.json cannot be used.
	ErrMetadata = ctxfolder.ErrMetadata
	// ErrDamaged: what is stored is not what was committed.
	ErrDamaged = index.ErrDamaged
	// ErrErased: the message was erased.
	ErrErased = index.ErrErased
	// ErrDurability: a sync failed. What was being written may be there after a crash or not.
	ErrDurability = index.ErrDurability
	// ErrNotLegacy: there is no legacy context to be migrated, or no context that came from one.
	ErrNotLegacy = legacy.ErrNotLegacy
	// ErrTooLarge: the message is above the store's limit, or its payloads are larger than [MaxAttached].
	ErrTooLarge = index.ErrTooLarge
	// ErrMemoryLimit: the call would take more memory than [WithMemoryLimit] allows. It is an ErrTooLarge too. Streaming reads the data all the same.
	ErrMemoryLimit = loader.ErrMemoryLimit
)

// Error says what was being done, and where. Fields that do not apply are empty.
type Error struct {
	Op      string // what was being done: "append", "fork", …
	Context uuid.UUID
	Branch  string
	ID      uuid.UUID // of the message
	Path    string
	Err     error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Path != "" {
		fmt.Fprintf(&b, " %s", e.Path)
	}
	if e.Context != uuid.Nil {
		fmt.Fprintf(&b, " context %s", e.Context)
	}
	if e.Branch != "" {
		fmt.Fprintf(&b, " branch %q", e.Branch)
	}
	if e.ID != uuid.Nil {
		fmt.Fprintf(&b, " message %s", e.ID)
	}
	return b.String() + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// sentinels maps what the packages below say to what this one promises.
var sentinels = []struct{ below, here error }{
	{ctxfolder.ErrNotExist, ErrNotExist},
	{ctxfolder.ErrExist, ErrExist},
	{branch.ErrNotExist, ErrNotExist},
	{branch.ErrExist, ErrExist},
	{branch.ErrName, ErrInvalid},
	{branch.ErrPosition, ErrPosition},
	{message.ErrMalformed, ErrInvalid},
	{blob.ErrPlace, ErrInvalid},
	{legacy.ErrDamaged, ErrDamaged},
	{legacy.ErrTooLarge, ErrTooLarge},
}

// public makes an error of a package below one of this package's.
func public(e Error, err error) error {
	if err == nil {
		return nil
	}
	var already *Error
	if errors.As(err, &already) {
		return err
	}
	for _, s := range sentinels {
		if errors.Is(err, s.below) && !errors.Is(err, s.here) {
			err = both{err, s.here}
			break
		}
	}
	e.Err = err
	return &e
}

// both reads like the first error and is the second one too.
type both struct{ text, also error }

func (b both) Error() string   { return b.text.Error() }
func (b both) Unwrap() []error { return []error{b.text, b.also} }
