package ctxdir

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/internal/follow"
	"github.com/google/uuid"
)

// EventKind names the subject of an event.
type EventKind string

// The kinds of events.
const (
	EventContext  EventKind = "context"
	EventBranch   EventKind = "branch"
	EventMessage  EventKind = "message"
	EventMetadata EventKind = "metadata"
	EventResync   EventKind = "resync"  // commits are missing or damaged; the event describes the present state; later events continue from it
	EventProblem  EventKind = "problem" // a context cannot be read now; the watcher tries it again
)

// EventOp says what happened.
type EventOp string

// What can happen: a context is created (by a restore too), migrated or removed. A branch is created, renamed, moved or
// removed; moved means that it shows other messages after a rewind. A message is appended, replaced or edited (by hand;
// best effort). Metadata is changed.
const (
	OpCreated  EventOp = "created"
	OpMigrated EventOp = "migrated"
	OpRemoved  EventOp = "removed"
	OpRenamed  EventOp = "renamed"
	OpMoved    EventOp = "moved"
	OpAppended EventOp = "appended"
	OpReplaced EventOp = "replaced"
	OpEdited   EventOp = "edited"
	OpChanged  EventOp = "changed"
)

// Event is a change in a store.
type Event struct {
	Kind    EventKind
	Op      EventOp
	Context uuid.UUID // uuid.Nil for a problem that is not about one context
	Problem error     // of an [EventProblem], which has Kind and Context besides
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

	e      *follow.Watcher
	branch string // the only one to follow; "" for all
}

// Watch follows a context after the commit with the number from: it yields the commits since then, and then new commits
// as they happen. [Summary].Sequence is the number of the newest commit that a handle shows. ctx bounds only the call
// of Watch; Close releases the watcher.
func (c *Context) Watch(ctx context.Context, from uint64) (*Watcher, error) {
	return newWatcher(follow.WatchContext(ctx, c.e, from))
}

// Watch follows the branch, as [Context.Watch] does: it yields the events of messages that the branch shows, of the branch
// itself, and those that are not about branches, such as changes of the metadata. After a rename, it follows whatever
// has the name.
func (b *Branch) Watch(ctx context.Context, from uint64) (*Watcher, error) {
	w, err := newWatcher(follow.WatchContext(ctx, b.e.Context(), from))
	if w != nil {
		w.branch = b.Name()
	}
	return w, err
}

// Watch follows every context of the store from now on, and the creation and removal of contexts.
func (s *Store) Watch(ctx context.Context) (*Watcher, error) {
	return newWatcher(follow.Watch(ctx, s.e))
}

func newWatcher(e *follow.Watcher, err error) (*Watcher, error) {
	if err != nil {
		return nil, err
	}
	return &Watcher{Polling: e.Polling(), e: e}, nil
}

// Close ends the watcher and a running iteration.
func (w *Watcher) Close() error { return w.e.Close() }

// Events yields events as they happen, until ctx is cancelled or the watcher is closed.
func (w *Watcher) Events(ctx context.Context) iter.Seq[Event] { return w.events(w.e.Events(ctx)) }

// Pending yields the events so far, and ends.
func (w *Watcher) Pending(ctx context.Context) iter.Seq[Event] { return w.events(w.e.Pending(ctx)) }

// events converts events, and the errors of contexts, and leaves out those of other branches.
func (w *Watcher) events(from iter.Seq2[follow.Event, error]) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		var last *Event // the newest of its commit that is not left out: whether more follow is not known yet
		pass := func(more bool) bool {
			if last == nil {
				return true
			}
			e := *last
			last, e.More = nil, more
			return yield(e)
		}
		for e, err := range from {
			if err != nil {
				if !pass(false) || !yield(problem(err)) {
					return
				}
				continue
			}
			x := event(e)
			if w.branch == "" {
				if !yield(x) {
					return
				}
				continue
			}
			if x.concerns(w.branch) {
				if !pass(true) {
					return
				}
				last = &x
			}
			if !x.More && !pass(false) {
				return
			}
		}
	}
}

func problem(err error) Event {
	e := Event{Kind: EventProblem, Problem: err}
	var of *Error
	if errors.As(e.Problem, &of) {
		e.Context = of.Context
	}
	return e
}

// concerns reports whether the event is about a branch.
func (e *Event) concerns(branch string) bool {
	switch e.Kind {
	case EventMessage:
		return slices.ContainsFunc(e.Branches, func(b BranchInfo) bool { return b.Name == branch })
	case EventBranch:
		return e.Branch == branch || e.Was == branch
	default:
		return true
	}
}

func event(e follow.Event) Event {
	kind, op, _ := strings.Cut(string(e.Kind), ".")
	return Event{
		Kind: EventKind(kind), Op: EventOp(op), Context: e.Context, Seq: e.Seq, More: e.More, At: e.At, Branch: e.Branch,
		Was: e.Was, Message: message(e.Message), Metadata: metadata(e.Metadata), Before: metadata(e.Before), Branches: branchInfos(e.Branches),
	}
}
