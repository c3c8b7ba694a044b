// Package index is a part of the engine and promises nothing to other modules. It has what the records of a context
// say: its segments, and the logs that are not sealed yet, in one order. All else in the folder of a context can be
// made of it: message files and metadata.json are views, index.json is a summary for people.
//
// An [Index] reads on as other processes commit, and finds messages by position and by id. The holder of the lock of
// the context appends; [Index.Seal] makes segments of logs, and larger segments of small ones.
//
// Records have contiguous numbers. A log says in its last record which log continues it, and segments have in their
// names from which record to which they go. So nothing counts that does not continue what was there before, whatever was
// copied into the folder.
package index

import (
	"errors"
	"fmt"

	"github.com/ctxdir/ctxdir/internal/journal"
)

// Errors that callers distinguish.
var (
	// ErrDamaged is wrapped by errors about records that are not as they were committed.
	ErrDamaged = journal.ErrDamaged
	// ErrErased is wrapped by errors about a message that was erased on purpose.
	ErrErased = errors.New("erased")
	// ErrGap means that records between two parts of the history are missing.
	ErrGap = errors.New("records are missing")
)

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
}
