package ctxdir

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"time"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/freshness"
	"github.com/google/uuid"
)

// Derived returns the folder for files that a program derives from messages, such as a search index. The folder is a cache:
// anyone may remove it at any time, so make it when you need it. Name your files and folders there view, or view with an
// extension, such as search.db and search.db-wal for the view "search".
//
// When contexts have lost messages for good, by an erase, a purge or the removal of a context, the store calls forget, which
// removes the text of what is lost from the files of the view. The operation returns after that. If forget is nil or
// fails, and in a program that does not call Derived, the operation removes the files. If it was interrupted, Derived
// removes the folder. A later call of Derived for the same view replaces forget.
//
// Derived fails with [ErrReadOnly] if the store is open for reading, and with [errors.ErrUnsupported] if it is not in a
// folder, like those of package ctxdirtest.
func (s *Store) Derived(view string, forget func(ctx context.Context, contexts []uuid.UUID) error) (string, error) {
	if s.e.ReadOnly {
		return "", &Error{Op: "derive", Path: s.e.Path(), Err: ErrReadOnly}
	}
	if s.e.Options.FS != nil {
		return "", &Error{Op: "derive", Path: s.e.Path(), Err: errors.ErrUnsupported}
	}
	s.e.OnForget(view, forget)
	return filepath.Join(s.e.Path(), engine.DerivedFolder), s.e.FinishErasure()
}

// Row is all about a version of a message but its content.
type Row struct {
	ID       uuid.UUID
	Line     uuid.UUID // the line that owns the message; [Context.Branch] takes its id, too
	Position int64
	StoredAt time.Time // when the version was committed: a later version has a later time
	Size     int64     // of the envelope, in bytes; the file has a line break more
	Gone     bool      // the message was erased, or no intact copy of it exists
	Erased   bool      // it was erased
}

// Changes refreshes the context, and returns its state with the messages that were appended or replaced since an earlier
// state, in order of commits. An empty since means all messages, including those of removed branches in their grace period:
// one line after the other, in order of positions. Store the state with what you derive from the messages, and pass it to
// the next call and to [Store.Changed]. In place of a state, since can be a [Summary].Commit. What the sequence yields may be
// newer than the state, and then comes again.
//
// The sequence fails with [ErrNotExist] if the history does not tell what changed since then: compare what you have with all
// messages then. If messages were erased or removed for good since then, it yields all changes, with the rows of erased
// messages, and then fails with an error that wraps [ErrErased] too. An edit of a message file by hand is not a commit;
// [Message].Edited reports it.
func (c *Context) Changes(ctx context.Context, since string) (state string, rows iter.Seq2[Row, error]) {
	state, entries := freshness.Changes(ctx, c.e, since)
	return state, each(entries, row)
}

func row(e *index.Entry) Row {
	if e == nil {
		return Row{}
	}
	return Row{
		ID: e.ID, Line: e.Line, Position: e.Position, StoredAt: e.StoredAt(), Size: e.Size, Gone: e.Gone != archive.Here, Erased: e.IsErased(),
	}
}

// Changed says of contexts whether something may have been committed to them since [Context.Changes] returned a state, or
// whether they were removed. Without ids it returns all contexts of the store but legacy ones. It opens no context.
func (s *Store) Changed(ctx context.Context, since map[uuid.UUID]string, ids ...uuid.UUID) (map[uuid.UUID]bool, error) {
	return freshness.Changed(ctx, s.e, since, ids...)
}

// Rows yields the rows of the messages that the branch shows at the positions [from, to), in order. It reads the index, and
// no message. An error ends the sequence.
func (b *Branch) Rows(ctx context.Context, from, to int64) iter.Seq2[Row, error] {
	return each(freshness.Rows(ctx, b.e, from, to), row)
}
