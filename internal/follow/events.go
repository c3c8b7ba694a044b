package follow

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// EventKind is the kind of an event.
type EventKind string

// Kinds of events.
const (
	ContextCreated  EventKind = "context.created"  // also a restored or copied context, with all its content
	ContextMigrated EventKind = "context.migrated" // a legacy context was migrated
	ContextRemoved  EventKind = "context.removed"
	MessageAppended EventKind = "message.appended"
	MessageReplaced EventKind = "message.replaced" // by a new version
	MessageEdited   EventKind = "message.edited"   // its file was edited by hand; best effort
	BranchCreated   EventKind = "branch.created"
	BranchRenamed   EventKind = "branch.renamed"
	BranchMoved     EventKind = "branch.moved" // it shows other messages, after a rewind
	BranchRemoved   EventKind = "branch.removed"
	MetadataChanged EventKind = "metadata.changed" // title, config, state, active branch, prompts, …
	// Resync: earlier events are unavailable, since records are missing or damaged, or belong to another history. The event
	// describes the current state, and later events continue from there.
	Resync EventKind = "resync"
)

// Event is something that happened in a store.
type Event struct {
	Kind    EventKind
	Context uuid.UUID
	// Seq is the commit's number in its context. Pass it to [WatchContext] to resume behind it. It is 0 for events
	// without a commit: contexts that come and go, and edits by hand.
	Seq uint64
	// More says that another event of the same commit follows: to resume behind Seq would skip it.
	More bool
	At   time.Time // time of the commit, if known

	// Branch is the branch of a branch event; of a message event a branch that shows it: that of its line, if there is
	// one, or else the first. It is empty if none shows it yet, as while a line comes back from the trash, or any more.
	Branch  string
	Was     string          // the old name of a renamed branch
	Message *engine.Message // of events about messages
	// Metadata is the metadata after the event; nil for ContextRemoved. Do not change it: other events share it.
	Metadata *engine.Metadata
	// Before is the metadata that a change of it, or of a branch, replaced.
	Before *engine.Metadata
	// Branches describes, as of the commit, the branch of a branch event, unless it was removed; of a message event, all
	// branches that show the message; of Resync and ContextCreated, all branches. How much of them is archived is left
	// out.
	Branches []engine.BranchInfo
}

// changes returns the events of a new version of the metadata: first those of branches, in the order of the new
// version, then those of the rest.
func changes(was, now *engine.Metadata) (events []Event) {
	add := func(kind EventKind, branch, old string) {
		events = append(events, Event{Kind: kind, Branch: branch, Was: old, Metadata: now, Before: was, At: now.UpdatedAt})
	}
	active, prompts := was.ActiveBranch, false
	kept := map[string]bool{} // old names of branches that still exist, under any name
	for i := range now.Branches {
		b := &now.Branches[i]
		old := engine.BranchOfLine(was, b.Line)
		if old == nil {
			if before, ok := was.Branch(b.Name); ok && engine.BranchOfLine(now, before.Line) == nil {
				old = before
			}
		}
		switch {
		case old == nil:
			add(BranchCreated, b.Name, "")
			continue
		case old.Line != b.Line:
			add(BranchMoved, b.Name, "")
		case old.Name != b.Name:
			add(BranchRenamed, b.Name, old.Name)
			if active == old.Name {
				active = b.Name
			}
		}
		kept[old.Name] = true
		prompts = prompts || !sameText(old.SystemPrompt, b.SystemPrompt) || !sameJSON(&old.Extra, &b.Extra)
	}
	for i := range was.Branches {
		if b := &was.Branches[i]; !kept[b.Name] {
			add(BranchRemoved, b.Name, "")
		}
	}
	if prompts || active != now.ActiveBranch || was.Title != now.Title || was.ParentID != now.ParentID || !sameText(was.State, now.State) ||
		!sameJSON(&was.Config, &now.Config) || !sameJSON(&was.Labels, &now.Labels) || !sameJSON(&was.Extra, &now.Extra) {
		add(MetadataChanged, "", "")
	}
	return events
}

// sameJSON reports whether a and b are the same JSON but for white space.
func sameJSON(a, b json.Marshaler) bool {
	x, err := a.MarshalJSON()
	y, yerr := b.MarshalJSON()
	return err == nil && yerr == nil && sameText(x, y)
}

func sameText(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return len(a) > 0 && len(b) > 0 && json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
