package trash

import (
	"math/rand/v2"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/collected"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// CollectOptions configures a collection.
type CollectOptions struct {
	Contexts []uuid.UUID   // only these and their trash; empty: all contexts, the store's trash and blobs
	Grace    time.Duration // how long something stays in the trash; negative for the store's setting, or else [DefaultGrace]
	DryRun   bool          // report what would be done, and change nothing
	// Archived receives what was archived in each context, as the settings of the store say; may be nil.
	Archived func(archiving.Result)
	Report   func(CollectResult) // receives what [CollectIfDue] did; may be nil

	limit int64 // of [engine.Context.ArchiveOld]
}

// contexts returns the contexts to collect in. A collection of all contexts that runs out of time begins with other ones
// the next time.
func (o *CollectOptions) contexts(s *engine.Store) ([]uuid.UUID, error) {
	if len(o.Contexts) > 0 {
		return o.Contexts, nil
	}
	var all []uuid.UUID
	for id, err := range s.IDs() {
		if err != nil {
			return nil, err
		}
		all = append(all, id)
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all, nil
}

// CollectResult is something that a collection moved to the trash, or purged from it.
type CollectResult struct {
	engine.TrashItem
	Purged bool // it was in the trash, and is gone for good
}

// logOf returns the line of collected.jsonl about a result.
func logOf(x CollectResult) collected.Line {
	record := "trashed"
	if x.Purged {
		record = "purged"
	}
	line := collected.Line{Record: record, Context: x.Context, Path: x.Path, Bytes: x.Bytes, Reason: x.Reason}
	if x.Kind == ctxfolder.TrashLine { // a purge leaves no name of a branch
		line.Path, line.Reason = x.Context.String()+"/"+ctxfolder.Messages, "messages that no branch shows"
	}
	return line
}

// logOfArchived returns the line about what was archived.
func logOfArchived(r archiving.Result) collected.Line {
	return collected.Line{
		Record: "archived", Context: r.Context, Bytes: r.After, Messages: r.Messages, Reason: "old, as the settings of the store say",
	}
}
