// Package moment keeps what is worth finding again in conversations: decisions, patterns, solutions and context.
//
// A moment is a message of its own, on the branch of its context that has the kind [Kind]. So it is durable, watched,
// searched and archived by what a store does with messages, and an erase of a message erases the moments that were made
// from it. docs/APPLICATIONS.md describes it.
//
//	found, err := moment.Extract(ctx, c, moment.Options{})
//	for m, err := range moment.All(ctx, c) { … }
//
// Its API may change with any minor version; CHANGELOG.md says how.
package moment

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// Kind is the kind of the branch that has the moments of a context, and Role the role of each.
const (
	Kind = "moments"
	Role = "moment"
)

// Type says what a moment is.
type Type string

// The types of moments.
const (
	Decision Type = "decision" // what was chosen, and why
	Pattern  Type = "pattern"  // how things are done here
	Solution Type = "solution" // what caused a fault, and what mends it
	Context  Type = "context"  // facts about the work, and what people want
)

// Types lists the types.
var Types = []Type{Decision, Pattern, Solution, Context}

// Moment is something that a conversation says and that is worth finding again.
type Moment struct {
	ID         uuid.UUID // ignored by [Add], which derives it
	Context    uuid.UUID // the context that has the moment
	At         time.Time // of the source, or when the moment was added
	Type       Type
	Content    string
	Background string // what the content refers to
	Tags       []string
	References []Reference
	Relevance  float64     // 0 to 1
	From       []uuid.UUID // the messages that it was made from; the first one is its source
}

// Reference is a place in a file.
type Reference struct {
	File  string `json:"file"`           // relative, with slashes
	Lines [2]int `json:"lines,omitzero"` // the first and the last one, from 1
}

// DefaultRelevance is the relevance of a moment that does not say its own.
const DefaultRelevance = 0.5

// maxContent bounds the content of a moment, in bytes.
const maxContent = 64 << 10

// body is the message of a moment.
type body struct {
	Type       Type        `json:"type"`
	Content    string      `json:"content,omitempty"`
	Background string      `json:"context,omitempty"`
	Tags       []string    `json:"tags,omitempty"`
	References []Reference `json:"references,omitempty"`
	Relevance  *float64    `json:"relevance,omitempty"`
	From       []uuid.UUID `json:"from,omitempty"`
	Removed    bool        `json:"removed,omitempty"`
}

func encode(v any) (json.RawMessage, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return json.RawMessage(strings.TrimSpace(b.String())), err
}

// check fails with [ctxdir.ErrInvalid] unless the moment can be stored.
func (m *Moment) check() error {
	switch {
	case !slices.Contains(Types, m.Type):
		return fmt.Errorf("%w: unknown type %q of a moment; use decision, pattern, solution or context", ctxdir.ErrInvalid, m.Type)
	case strings.TrimSpace(m.Content) == "":
		return fmt.Errorf("%w: the text of the moment is empty", ctxdir.ErrInvalid)
	case len(m.Content)+len(m.Background) > maxContent:
		return fmt.Errorf("%w: a moment of %d bytes exceeds the limit of %d", ctxdir.ErrInvalid, len(m.Content)+len(m.Background), maxContent)
	case !(m.Relevance >= 0 && m.Relevance <= 1):
		return fmt.Errorf("%w: relevance %v is not between 0 and 1", ctxdir.ErrInvalid, m.Relevance)
	}
	for _, r := range m.References {
		if r.File == "" || path.IsAbs(r.File) || strings.Contains(r.File, `\`) || strings.Contains(r.File, ":") {
			return fmt.Errorf("%w: the file of a reference must be a relative path with slashes, got %q", ctxdir.ErrInvalid, r.File)
		}
	}
	return nil
}

// draft returns the message of a moment.
func (m *Moment) draft(id uuid.UUID) (ctxdir.Draft, error) {
	raw, err := encode(body{m.Type, m.Content, m.Background, m.Tags, m.References, &m.Relevance, m.From, false})
	return ctxdir.Draft{ID: id, Role: Role, Type: string(m.Type), CreatedAt: m.At, Body: raw}, err
}

// identify returns the id of a moment of a context: the same content of the same source has the same one.
func (m *Moment) identify(c uuid.UUID) uuid.UUID {
	space := c
	if len(m.From) > 0 {
		space = m.From[0]
	}
	return uuid.NewSHA1(space, []byte(m.Content))
}

// parse reads a moment. ok is false for a message that is none, or that is removed: a person may have edited it.
func parse(ctx context.Context, c uuid.UUID, stored *ctxdir.Message) (m Moment, ok bool) {
	raw, err := stored.Body(ctx)
	var b body
	if err != nil || json.Unmarshal(raw, &b) != nil || b.Removed {
		return m, false
	}
	m = Moment{stored.ID, c, stored.CreatedAt, b.Type, b.Content, b.Background, b.Tags, b.References, DefaultRelevance, b.From}
	if b.Relevance != nil {
		m.Relevance = *b.Relevance
	}
	if m.At.IsZero() {
		m.At = stored.StoredAt
	}
	return m, m.check() == nil
}

// branchOf returns the branch with the moments of a context.
func branchOf(m *ctxdir.Metadata) (name string, ok bool) {
	for _, b := range m.Branches {
		if BranchKind(b.Extra) == Kind {
			return b.Name, true
		}
	}
	return "", false
}

// BranchKind returns the kind of a branch, given its unknown members; a branch of the conversation has none.
func BranchKind(extra json.RawMessage) string {
	var o struct {
		Kind string `json:"kind"`
	}
	_ = json.Unmarshal(extra, &o)
	return o.Kind
}

// All yields the moments of a context in the order in which they were added.
func All(ctx context.Context, c *ctxdir.Context) iter.Seq2[Moment, error] {
	return func(yield func(Moment, error) bool) {
		name, ok := branchOf(c.Metadata())
		if !ok {
			return
		}
		b, err := c.Branch(name)
		if err != nil {
			yield(Moment{}, err)
			return
		}
		for stored, err := range b.Messages(ctx, 0, ctxdir.End) {
			if err != nil {
				yield(Moment{}, err)
				return
			}
			if m, ok := parse(ctx, c.ID(), stored); ok && !yield(m, nil) {
				return
			}
		}
	}
}
