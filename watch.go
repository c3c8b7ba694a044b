package ctxdir

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/internal/follow"
	"github.com/google/uuid"
)

// The kind of an event names its subject.
const (
	EventContext  = "context"
	EventBranch   = "branch"
	EventMessage  = "message"
	EventMetadata = "metadata"
	EventResync   = "resync" // commits are missing or damaged; the event describes the current state; later events continue from it
)

// Event is a change in a store.
type Event struct {
	Kind string // [EventContext], [EventBranch], [EventMessage], [EventMetadata] or [EventResync]
	// Op says what happened. A context is "created" (by a restore too), "migrated" or "removed". A branch is "created",
	// "renamed", "moved" or "removed"; "moved" means that it shows other messages after a rewind. A message is
	// "appended", "replaced" or "edited" (by hand; best effort). Metadata is "changed".
	Op      string
	Context uuid.UUID
	// Seq is the number of the commit in its context: pass it to [Context.Watch] to continue after it. It is 0 for events
	// without a commit: contexts that are created or removed, and edits by hand.
	Seq uint64
	// More says that another event of the same commit follows. Pass Seq to [Context.Watch] only after you have received
	// the last event of the commit.
	More bool
	At   time.Time // of the commit, as far as known

	Branch   string    // for an [EventBranch], its branch; for an [EventMessage], a branch that shows it, or empty if none does
	Was      string    // the former name of a renamed branch
	Message  *Message  // for an [EventMessage]
	Metadata *Metadata // after the event; nil for a removed context
	Before   *Metadata // before a change of the metadata or of a branch
	// Branches are all branches that show the message of an [EventMessage], the branch of an [EventBranch], or all
	// branches of a created context and for an [EventResync].
	Branches []BranchInfo
}

// Watcher yields every commit of any process exactly once, the commits of a context in order. It reads the history; hints
// of the file system only say when to read, and without them it reads every 0.2 seconds. It keeps no queue: a slow
// follower costs no memory. Where commits are missing or damaged, it yields an [EventResync]. A commit may be yielded
// shortly before it is durable. A message of an older commit that was replaced since then is the current version.
type Watcher struct {
	// Polling says why the watcher polls: the system does not watch folders, or its limits are reached. It is nil while
	// the system watches. A polling watcher yields no edits by hand.
	Polling error

	e *follow.Watcher
}

// Watch follows a context after the commit with the number from: it yields the commits since then, and then new commits
// as they happen. [Summary].Sequence is the number of the newest commit that a handle shows. ctx bounds only the call
// of Watch; Close releases the watcher.
func (c *Context) Watch(ctx context.Context, from uint64) (*Watcher, error) {
	return newWatcher(follow.WatchContext(ctx, c.e, from))
}

// Watch follows every context of the store from now on, and the creation and removal of contexts.
func (s *Store) Watch(ctx context.Context) (*Watcher, error) {
	return newWatcher(follow.Watch(ctx, s.e))
}

func newWatcher(e *follow.Watcher, err error) (*Watcher, error) {
	if err != nil {
		return nil, wrap(err)
	}
	return &Watcher{e.Polling(), e}, nil
}

// Close ends the watcher and a running iteration.
func (w *Watcher) Close() error { return wrap(w.e.Close()) }

// Events yields events as they happen, until ctx is cancelled or the watcher is closed. An error concerns one context
// and does not end the iteration: it is yielded once, and the watcher tries that context again.
func (w *Watcher) Events(ctx context.Context) iter.Seq2[Event, error] {
	return each(w.e.Events(ctx), event)
}

// Pending yields the events so far, and ends.
func (w *Watcher) Pending(ctx context.Context) iter.Seq2[Event, error] {
	return each(w.e.Pending(ctx), event)
}

func event(e follow.Event) Event {
	kind, op, _ := strings.Cut(string(e.Kind), ".")
	return Event{
		Kind: kind, Op: op, Context: e.Context, Seq: e.Seq, More: e.More, At: e.At, Branch: e.Branch, Was: e.Was, Message: message(e.Message),
		Metadata: metadata(e.Metadata), Before: metadata(e.Before), Branches: branchInfos(e.Branches),
	}
}
