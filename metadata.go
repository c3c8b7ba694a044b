package ctxdir

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// Metadata is all data of a context except its messages: the content of metadata.json.
type Metadata struct {
	ID           uuid.UUID
	ParentID     uuid.UUID // the context that this one came from, or uuid.Nil
	Title        string
	Labels       map[string]string // your own names for the context, by which lists find it; see [ListOptions]
	Kind         string            // empty for a conversation; lists leave out contexts of a kind. Fixed by Create
	ExternalID   string            // the id of the context in another system; see [Store.OpenOrCreate]. Fixed by Create
	Config       json.RawMessage   // an object: model_id, mode, agent_role, parameters, and any other members
	State        json.RawMessage
	ActiveBranch string
	Branches     []BranchMetadata // in order of creation
	Revision     int64            // counts the changes
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Extra        json.RawMessage // an object: members that this program does not know
	Raw          json.RawMessage // the object in metadata.json, for display; ignored by Create and Update
	Problem      error           // why the metadata may be stale; nil if it was committed. Ignored by Create and Update

	from *ctxfolder.Metadata // the engine's object, which also has the lines
}

// BranchMetadata is the entry of a branch in metadata.json.
type BranchMetadata struct {
	Name         string
	SystemPrompt json.RawMessage // a text, or the reference to one; [Branch.SystemPrompt] returns the text
	State        json.RawMessage // your state on this branch; a fork begins with that of its parent
	Extra        json.RawMessage // an object: members that this program does not know
}

// Branch returns the entry of a branch in m.Branches, or nil if there is none:
//
//	state := c.Metadata().Branch("main").State
//	err := c.Update(ctx, func(m *ctxdir.Metadata) error { m.Branch("main").State = next; return nil })
func (m *Metadata) Branch(name string) *BranchMetadata {
	i := slices.IndexFunc(m.Branches, func(b BranchMetadata) bool { return b.Name == name })
	if i < 0 {
		return nil
	}
	return &m.Branches[i]
}

func metadata(e *ctxfolder.Metadata) *Metadata {
	if e == nil {
		return nil
	}
	m := &Metadata{
		ID: e.ID, ParentID: e.ParentID, Title: e.Title, Labels: e.Labels.Texts(), Kind: e.Kind, ExternalID: e.ExternalID,
		Config: raw(e.Config), State: e.State, ActiveBranch: e.ActiveBranch, Revision: e.Revision,
		CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt, Extra: raw(e.Extra), Raw: ctxfolder.RawMetadata(e), from: e,
	}
	for _, b := range e.Branches {
		state := b.Extra.Get(ctxfolder.BranchState)
		b.Extra.Set(ctxfolder.BranchState, nil)
		m.Branches = append(m.Branches, BranchMetadata{b.Name, b.SystemPrompt, state, raw(b.Extra)})
	}
	return m
}

// raw returns an object of the engine, nil for an empty one.
func raw(o ctxfolder.Object) json.RawMessage {
	if len(o.Members()) == 0 {
		return nil
	}
	var compact bytes.Buffer
	b, err := o.MarshalJSON()
	if err != nil || json.Compact(&compact, b) != nil {
		return nil // cannot be: the members were JSON when they were read
	}
	return compact.Bytes()
}

// parse is the reverse of raw.
func parse(what string, b json.RawMessage) (o ctxfolder.Object, err error) {
	if len(b) == 0 {
		return o, nil
	}
	if err := o.UnmarshalJSON(b); err != nil {
		return o, fmt.Errorf("%w: %s is not a JSON object: %w", ErrInvalid, what, err)
	}
	return o, nil
}

// engine returns the metadata as the engine has it. Lines, and other data that callers cannot change, stay as they are.
func (m *Metadata) engine() (*ctxfolder.Metadata, error) {
	e := &ctxfolder.Metadata{}
	if m.from != nil {
		e = m.from.Clone()
	}
	var err error
	if e.Config, err = parse("config", m.Config); err != nil {
		return nil, err
	}
	if e.Extra, err = parse("extra", m.Extra); err != nil {
		return nil, err
	}
	if err = e.Labels.SetTexts(m.Labels); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	e.ID, e.ParentID, e.Title, e.Kind, e.ExternalID, e.State = m.ID, m.ParentID, m.Title, m.Kind, m.ExternalID, m.State
	e.CreatedAt, e.UpdatedAt = m.CreatedAt, m.UpdatedAt
	branches := make([]ctxfolder.Branch, 0, len(m.Branches))
	for _, b := range m.Branches {
		branch := ctxfolder.Branch{Name: b.Name}
		if known, ok := e.Branch(b.Name); ok {
			branch = *known
		}
		branch.SystemPrompt = b.SystemPrompt
		if branch.Extra, err = parse("extra of a branch", b.Extra); err != nil {
			return nil, err
		}
		var state bytes.Buffer
		if err := json.Compact(&state, b.State); err != nil && len(b.State) > 0 {
			return nil, fmt.Errorf("%w: the state of branch %q is not valid JSON: %w", ErrInvalid, b.Name, err)
		}
		branch.Extra.Set(ctxfolder.BranchState, state.Bytes())
		branches = append(branches, branch)
	}
	e.Branches = branches
	return e, nil
}

// updateOf converts a function that updates metadata.
func updateOf(f func(m *Metadata) error) func(*ctxfolder.Metadata) error {
	return func(e *ctxfolder.Metadata) error {
		m := metadata(e)
		if err := f(m); err != nil {
			return err
		}
		changed, err := m.engine()
		if err == nil {
			*e = *changed
		}
		return err
	}
}
