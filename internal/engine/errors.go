package engine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/storefile"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// Errors to test with errors.Is. They come wrapped in an [*Error], which says where.
var (
	// ErrNoStore: the folder is not a store.
	ErrNoStore = storefile.ErrNoStore
	// ErrStoreFile: ctxdir.json is damaged, or missing from a folder with contexts: see [RepairStore].
	ErrStoreFile = storefile.ErrUnusable
	// ErrFormat: a file has an unknown format version, or the store has an unknown feature.
	ErrFormat = ctxfolder.ErrVersion
	// ErrNotExist: there is no such context, branch or message.
	ErrNotExist = errors.New("not found")
	// ErrExist: the name or id is taken.
	ErrExist = errors.New("already exists")
	// ErrInvalid: the name, id or message cannot be stored.
	ErrInvalid = errors.New("invalid")
	// ErrAmbiguous: a part of an id matches several ids; [Error].Matches lists them.
	ErrAmbiguous = errors.New("ambiguous")
	// ErrConflict: a message with that id exists and has other content, or a migrated context differs from its original.
	ErrConflict = errors.New("a message with this id exists with other content")
	// ErrPosition: the position is out of range, or is not the expected one.
	ErrPosition = errors.New("invalid position")
	// ErrShared: other branches show the message too.
	ErrShared = errors.New("other branches also show the message")
	// ErrActive: the branch is the active one.
	ErrActive = branch.ErrActive
	// ErrKind: the branch has a kind.
	ErrKind = branch.ErrKind
	// ErrLocked: waiting for a lock timed out.
	ErrLocked = errors.New("timed out waiting for a lock")
	// ErrReadOnly: the store is open for reading only.
	ErrReadOnly = errors.New("store is read-only")
	// ErrGone: the context's folder was moved or removed.
	ErrGone = ctxfolder.ErrGone
	// ErrClosed: this program closed the context. The operation did nothing.
	ErrClosed = loader.ErrClosed
	// ErrMetadata: metadata.json is unusable.
	ErrMetadata = ctxfolder.ErrMetadata
	// ErrDamaged: the stored data differs from what was committed.
	ErrDamaged = index.ErrDamaged
	// ErrErased: the message was erased.
	ErrErased = index.ErrErased
	// ErrUnexamined: a message could not be read, and may repeat the text of those that were to be removed for good.
	ErrUnexamined = errors.New("not every message could be examined")
	// ErrDurability: a sync failed. After a crash, what was being written may be there or not.
	ErrDurability = journal.ErrDurability
	// ErrNotLegacy: there is no legacy context to migrate, or the context did not come from one.
	ErrNotLegacy = legacy.ErrNotLegacy
	// ErrTooLarge: the message exceeds the store's limit, or its payloads exceed [MaxAttachmentBytes].
	ErrTooLarge = loader.ErrTooLarge
	// ErrMemoryLimit: the call would exceed [WithMemoryLimit]. It is an ErrTooLarge too. Streaming still works.
	ErrMemoryLimit = loader.ErrMemoryLimit
)

// Error says what failed, and where. Fields that do not apply are empty.
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

// sentinels maps errors of the packages below to those that callers distinguish.
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
	{journal.ErrVersion, ErrFormat},
	{archive.ErrVersion, ErrFormat},
	{message.ErrVersion, ErrFormat},
	{ErrStoreFile, ErrDamaged},
	{ErrMetadata, ErrDamaged},
	{ErrGone, ErrNotExist},
	{ErrActive, ErrInvalid},
	{ErrKind, ErrInvalid},
	{ErrNotLegacy, ErrInvalid},
}

// Wrap turns an error of a package below into an [*Error].
func Wrap(e Error, err error) error {
	if err == nil {
		return nil
	}
	var already *Error
	if errors.As(err, &already) {
		return err
	}
	at := e // not the parameter, which would cost an allocation where there is no error
	at.Err = Classify(err)
	return &at
}

// Classify marks an error of a package below with those that callers distinguish. [Wrap] does so.
func Classify(err error) error {
	for _, s := range sentinels {
		if errors.Is(err, s.below) && !errors.Is(err, s.here) {
			err = Mark(err, s.here)
		}
	}
	return err
}

// Mark returns an error that reads like err and matches mark too.
func Mark(err, mark error) error { return markedError{err, mark} }

type markedError struct{ err, mark error }

func (m markedError) Error() string   { return m.err.Error() }
func (m markedError) Unwrap() []error { return []error{m.err, m.mark} }
