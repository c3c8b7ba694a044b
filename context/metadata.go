package context

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/object"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

const (
	metadataVersion = "context/1"
	// MaxMetadata bounds metadata.json, in bytes.
	MaxMetadata = 64 << 20
)

// Object is a JSON object of the metadata.
type Object = object.Object

// Member is a member of one.
type Member = object.Member

// Metadata is the content of metadata.json: everything about a context except its messages.
type Metadata struct {
	ID           uuid.UUID
	ParentID     uuid.UUID // the parent context, or uuid.Nil
	Title        string
	Labels       Object // members with a text are labels
	Kind         string // fixed, like ExternalID
	ExternalID   string // the id in another system; the context's id is derived from it and from Kind
	Config       Object // model_id, mode, agent_role, parameters and other members
	ActiveBranch string
	Branches     []Branch // in order of creation
	Lines        []Line
	Removed      []Removed
	State        json.RawMessage // any JSON; nil without a state
	Revision     int64
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Extra        Object // unknown members

	check bool    // read from a metadata.json as the engine wrote it
	sums  *Object // those of the members as the engine wrote them in metadata.json; nil without any
}

// Branch is a name that points at a line.
type Branch struct {
	Name         string
	Line         uuid.UUID
	SystemPrompt json.RawMessage // a string or a reference; nil without a prompt
	Extra        Object
}

// BranchState is the member of [Branch].Extra that a fork takes over: the state of the framework on the branch.
const BranchState = "state"

// BranchKind is the member of [Branch].Extra that marks a branch which is not part of the conversation. A fork takes it over.
const BranchKind = "kind"

// Line is an append-only sequence of messages: Base messages of Parent, then its own.
type Line struct {
	ID     uuid.UUID `json:"id"`
	Parent uuid.UUID `json:"parent,omitzero"`
	Base   int64     `json:"base"`
	Folder string    `json:"folder"` // in messages/
	// Archived is the position before which the line's own messages have no files; 0 for none. ArchivedBytes is the length
	// of their envelopes, in bytes.
	Archived      int64 `json:"archived,omitempty"`
	ArchivedBytes int64 `json:"archived_bytes,omitempty"`
}

// Removed is a line that no branch names any more, with the name, prompt and other members of its former branch.
type Removed struct {
	Branch
	At  time.Time
	Why string // as in package branch
}

// Prompts returns the system prompts of the branches, removed ones too.
func (m *Metadata) Prompts() (all []json.RawMessage) {
	for i := range m.Branches {
		all = append(all, m.Branches[i].SystemPrompt)
	}
	for i := range m.Removed {
		all = append(all, m.Removed[i].SystemPrompt)
	}
	return slices.DeleteFunc(all, func(p json.RawMessage) bool { return p == nil })
}

// Clone returns a copy that shares no mutable data.
func (m *Metadata) Clone() *Metadata {
	c := *m
	c.Branches = withRoom(m.Branches)
	c.Lines = withRoom(m.Lines)
	c.Removed = withRoom(m.Removed)
	c.State = slices.Clone(m.State)
	return &c
}

// withRoom copies a table, with room for the row that a change is about to add.
func withRoom[T any](table []T) []T {
	if table == nil {
		return nil
	}
	return append(make([]T, 0, len(table)+1), table...)
}

// Branch returns the branch of that name.
func (m *Metadata) Branch(name string) (*Branch, bool) {
	for i := range m.Branches {
		if m.Branches[i].Name == name {
			return &m.Branches[i], true
		}
	}
	return nil, false
}

// Line returns the line of that id.
func (m *Metadata) Line(id uuid.UUID) (*Line, bool) {
	for i := range m.Lines {
		if m.Lines[i].ID == id {
			return &m.Lines[i], true
		}
	}
	return nil, false
}

// lines is a table of lines, decoded without a check of its encoding and of repeated names.
type lines []Line

func (l *lines) UnmarshalJSON(b []byte) error {
	return jsonv2.Unmarshal(b, (*[]Line)(l), message.Verbatim...)
}

// fields returns the known members other than tables.
func (m *Metadata) fields() []object.Field {
	return []object.Field{
		{Key: "id", Into: &m.ID}, {Key: "parent_id", Into: &m.ParentID}, {Key: "title", Into: &m.Title}, {Key: "config", Into: &m.Config},
		{Key: "labels", Into: &m.Labels}, {Key: "kind", Into: &m.Kind}, {Key: "external_id", Into: &m.ExternalID},
		{Key: "active_branch", Into: &m.ActiveBranch}, {Key: "state", Into: &m.State}, {Key: "revision", Into: &m.Revision},
		{Key: "created_at", Into: &m.CreatedAt}, {Key: "updated_at", Into: &m.UpdatedAt},
	}
}
