package ctxdir

import (
	"context"

	"github.com/ctxdir/ctxdir/internal/backup"
	"github.com/google/uuid"
)

// BackupResult describes the copy of a context.
type BackupResult struct {
	Context  uuid.UUID
	Path     string // of the copy, relative to its store
	Messages int64
	Bytes    int64 // of the messages
	Missing  int64 // messages and payloads that could not be read
	Problem  error // why the first of these could not be read
	Current  bool  // nothing was copied, since the other store has a copy that shows the same
}

// Backup copies a context to another store: its metadata and messages as of one moment, with their payloads. Appends
// continue meanwhile. The file of a message that was edited by hand is copied as it is. A message that cannot be read
// keeps its position, marked unavailable. An earlier
// backup of the context moves to the trash of that store, unless it shows the same: then Backup copies nothing. Backup
// fails with [ErrInvalid] when both are the same store, or when the other one is inside this one.
func (s *Store) Backup(ctx context.Context, id uuid.UUID, to *Store) (BackupResult, error) {
	r, err := backup.Copy(ctx, s.e, id, to.e)
	return BackupResult{r.Context, r.Path, r.Messages, r.Bytes, r.Missing, r.Problem, r.Current}, err
}

// Copy makes a new context in the same store from the first n messages of this branch, with the metadata m as in
// [Store.Create]. If m has no branch, the copy has the system prompt and the state of this one; without m.ParentID, the
// context of this branch is its parent. The messages keep ids, times, origin and bodies, and are on the branch "main";
// an unavailable message stays unavailable. Copy reads one message at a time. Payloads in blobs are
// shared. The copy appears as a whole or not at all. Later changes to either context, even an erase, do not affect the
// other. Copy fails with [ErrPosition] beyond the end, and with [ErrExist] when the id is taken.
func (b *Branch) Copy(ctx context.Context, n int64, m Metadata) (*Context, error) {
	e, err := m.engine()
	if err != nil {
		return nil, &Error{Op: "copy", Context: b.e.Context().ID(), Branch: b.Name(), Err: err}
	}
	return newContext(backup.Prefix(ctx, b.e, n, *e))
}
