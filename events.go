package ctxdir

import (
	"bytes"
	"encoding/json"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// EventKind says what happened.
type EventKind string

// Kinds of events.
const (
	ContextCreated  EventKind = "context.created"  // also one that was restored, or copied here, with what was in it already
	ContextMigrated EventKind = "context.migrated" // a legacy context became one
	ContextRemoved  EventKind = "context.removed"
	MessageAppended EventKind = "message.appended"
	MessageReplaced EventKind = "message.replaced" // by a new version
	MessageEdited   EventKind = "message.edited"   // its file was changed by hand; best effort
	BranchCreated   EventKind = "branch.created"
	BranchRenamed   EventKind = "branch.renamed"
	BranchMoved     EventKind = "branch.moved" // it shows other messages: it was rewound
	BranchRemoved   EventKind = "branch.removed"
	MetadataChanged EventKind = "metadata.changed" // title, config, state, active branch, prompts, …
	// Resync: what happened before cannot be told, since the journals do not have it any more. The event says how things are now; what
	// comes behind it goes on from there.
	Resync EventKind = "resync"
)

// Event is something that happened in a store.
type Event struct {
	Kind    EventKind
	Context uuid.UUID
	// Seq is the commit's number in its context: to be given to [Context.Watch] later, to go on behind it. It is 0 for what is no commit: contexts that
	// come and go, and edits by hand.
	Seq uint64
	// More says that another event of the same commit follows: to go on behind Seq would skip it.
	More bool
	At   time.Time // when it was committed, as far as that is known

	// Branch is that of events about branches; of a message the one that shows it, or the first of several that do. It is empty where none
	// does yet, as while a line comes back from the trash, or any more.
	Branch  string
	Was     string   // the name that a renamed branch had
	Message *Message // of events about messages
	// Metadata is that behind the event; nil for ContextRemoved. It must not be changed: other events share it.
	Metadata *Metadata
	// Before is the metadata that a change of it, or of a branch, took the place of.
	Before *Metadata
	// Branches describes the branch that an event of a branch is about, unless it was removed, and of Resync and ContextCreated all of them: as they
	// are behind the commit. How much of them is archived is not told.
	Branches []BranchInfo
}

// changes are the events that a new version of the metadata makes: what happened to branches, in the order of the new version, then
// to the rest.
func changes(was, now *Metadata) (events []Event) {
	tell := func(kind EventKind, branch, old string) {
		events = append(events, Event{Kind: kind, Branch: branch, Was: old, Metadata: now, Before: was, At: now.UpdatedAt})
	}
	active, prompts := was.ActiveBranch, false
	kept := map[string]bool{} // names of branches that were, and are still, by whatever name
	for i := range now.Branches {
		b := &now.Branches[i]
		old := branchOfLine(was, b.Line)
		if old == nil {
			if before, ok := was.Branch(b.Name); ok && branchOfLine(now, before.Line) == nil {
				old = before
			}
		}
		switch {
		case old == nil:
			tell(BranchCreated, b.Name, "")
			continue
		case old.Line != b.Line:
			tell(BranchMoved, b.Name, "")
		case old.Name != b.Name:
			tell(BranchRenamed, b.Name, old.Name)
			if active == old.Name {
				active = b.Name
			}
		}
		kept[old.Name] = true
		prompts = prompts || !alikeText(old.SystemPrompt, b.SystemPrompt) || !alike(&old.Extra, &b.Extra)
	}
	for i := range was.Branches {
		if b := &was.Branches[i]; !kept[b.Name] {
			tell(BranchRemoved, b.Name, "")
		}
	}
	if prompts || active != now.ActiveBranch || was.Title != now.Title || was.ParentID != now.ParentID || !alikeText(was.State, now.State) ||
		!alike(&was.Config, &now.Config) || !alike(&was.Extra, &now.Extra) {
		tell(MetadataChanged, "", "")
	}
	return events
}

func branchOfLine(m *Metadata, line uuid.UUID) *ctxfolder.Branch {
	for i := range m.Branches {
		if m.Branches[i].Line == line {
			return &m.Branches[i]
		}
	}
	return nil
}

// alike reports whether two are the same JSON, however they are laid out.
func alike(a, b json.Marshaler) bool {
	x, err := a.MarshalJSON()
	y, yerr := b.MarshalJSON()
	return err == nil && yerr == nil && alikeText(x, y)
}

func alikeText(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return len(a) > 0 && len(b) > 0 && json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
