package ctxdir

import (
	"context"
	"time"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/google/uuid"
)

// ArchiveOptions says which messages to archive, of Contexts or of All: without OlderThan, KeepLast and Branch, all of
// them.
type ArchiveOptions struct {
	Contexts  []uuid.UUID             // these contexts
	All       bool                    // every context of the store
	OlderThan time.Duration           // only messages of at least this age; a message without a time has that of its file
	KeepLast  int64                   // not the newest messages of each branch, this many
	Branch    string                  // only messages that this branch shows
	DryRun    bool                    // only count: Before is then the size of the chosen messages, and After is 0
	Progress  func(done, total int64) // receives the number of messages done and in all, in the current context; may be nil
	Report    func(ArchiveResult)     // receives the result of each context when it is done; may be nil
	Failed    func(error)             // receives the error of each context that failed; if set, the returned error omits these failures
}

// ArchiveResult says how an operation changed the files of messages.
type ArchiveResult struct {
	Context  uuid.UUID
	Messages int64 // that had files, or have them now
	Stayed   int64 // files left alone, although chosen: edited by hand, or damaged
	Before   int64 // bytes of the files of these messages, and of segments
	After    int64 // bytes of them now
}

func archived(a archiving.Result) ArchiveResult {
	return ArchiveResult{a.Context, a.Messages, a.Stayed, a.Before, a.After}
}

// Archive removes the files of messages, and compresses the segments that have them. Archived messages can be read,
// replaced, forked and erased as before, even while Archive runs. The file of a message that was edited by hand stays
// until a repair commits the edit. The error includes each context that could not be archived; the others are still
// processed. With All and Branch, Archive skips contexts that have no such branch. It fails with [ErrInvalid] unless o
// says which contexts.
func (s *Store) Archive(ctx context.Context, o ArchiveOptions) ([]ArchiveResult, error) {
	ids, err := chosen("archive", o.Contexts, o.All)
	if err != nil {
		return nil, err
	}
	seq := archiving.Archive(ctx, s.e, ids, archiving.Options{
		OlderThan: o.OlderThan, KeepLast: o.KeepLast, Branch: o.Branch, Progress: o.Progress, DryRun: o.DryRun,
	})
	return collect(seq, o.Report, o.Failed, archived)
}
