package replica

import "github.com/google/uuid"

// Options configure Sync.
type Options struct {
	Contexts []uuid.UUID // only these; nil for all
	Push     bool        // only change the peer
	Pull     bool        // only change the store
	DryRun   bool        // change nothing
	// Heal takes from the peer the messages that are damaged or lost in the store, and changes nothing else. It reads every
	// message of the store.
	Heal   bool
	Host   string       // names the branches of a divergence; empty for the name of this machine
	Report func(Synced) // receives each context that changed, or that failed; may be nil
	// Progress is called with the number of contexts that were compared, of those that may have changed; it may be nil.
	Progress func(done, of int)

	asked bool // for these contexts, whatever the storage mode says, and also for those that were cleaned up here
}

// Synced is what Sync did with a context.
type Synced struct {
	ID       uuid.UUID
	Pushed   int64    // messages
	Pulled   int64    // messages
	Branches int      // that were created, renamed, moved or removed, on either side; without diverged ones
	Diverged []string // the branches that keep local messages where both sides went on
	Healed   int64    // messages that one side had lost
	Erased   int64    // messages, on either side
	Removed  bool     // moved to the trash of the side that still had it
	meta     bool
	Err      error // why the context is not, or not completely, the same on both sides
}

// Total is what Sync did in all.
type Total struct {
	Contexts int   // that changed
	Messages int64 // that travelled
	Failed   int   // contexts
	// Unconfirmed are messages that are erased in the store, while the peer did not confirm that it erased them.
	Unconfirmed int64
	// Kept are contexts that would have been pushed, but stay on this machine: see [ctxdir.StorageLocal].
	Kept int
}
