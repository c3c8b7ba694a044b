package record

import (
	"time"

	"github.com/ctxdir/ctxdir/assemble"
	"github.com/ctxdir/ctxdir/moment"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
)

// List is a list that JSON does not write as null.
func List[T any](all []T) []T { return append([]T{}, all...) }

// ID is an id, empty for none.
func ID(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}

// Hit is a message that a search found.
type Hit struct {
	Record    string    `json:"record,omitempty"`
	Context   string    `json:"context"`
	Title     string    `json:"title"`
	Branches  []string  `json:"branches"`
	Position  int64     `json:"position"`
	ID        string    `json:"id"`
	Role      string    `json:"role"`
	Type      string    `json:"type"`
	Kind      string    `json:"kind,omitempty"` // of the branches
	CreatedAt time.Time `json:"created_at"`
	Pointer   string    `json:"pointer"`
	Snippet   string    `json:"snippet"`
	Marks     [][2]int  `json:"marks"` // of the snippet, in bytes
	Paths     []string  `json:"paths,omitempty"`
	Score     float64   `json:"score"`
	Partial   bool      `json:"partial,omitempty"` // some words of the query are missing
}

// OfHit describes a hit.
func OfHit(h *search.Hit) Hit {
	return Hit{
		"", h.Context.String(), h.Title, List(h.Branches), h.Position, h.ID.String(), h.Role, h.Type, h.Kind, h.At,
		h.Pointer, h.Snippet, List(h.Marks), h.Paths, h.Score, h.Partial,
	}
}

// Match is a line that a regular expression matches.
type Match struct {
	Record   string   `json:"record"`
	Context  string   `json:"context"`
	Branches []string `json:"branches"`
	Position int64    `json:"position"`
	ID       string   `json:"id"`
	Pointer  string   `json:"pointer"`
	Line     string   `json:"line"`
}

// OfMatch describes a match.
func OfMatch(m *search.Match) Match {
	return Match{"match", m.Context.String(), List(m.Branches), m.Position, m.ID.String(), m.Pointer, m.Line}
}

// Moment is a moment.
type Moment struct {
	Record     string             `json:"record,omitempty"`
	Context    string             `json:"context"`
	ID         string             `json:"id"`
	Type       string             `json:"type"`
	Content    string             `json:"content"`
	Background string             `json:"background,omitempty"`
	Tags       []string           `json:"tags"`
	References []moment.Reference `json:"references"`
	Relevance  float64            `json:"relevance"`
	From       []uuid.UUID        `json:"from"`
	CreatedAt  time.Time          `json:"created_at"`
}

// OfMoment describes a moment.
func OfMoment(m *moment.Moment) Moment {
	return Moment{
		"", m.Context.String(), m.ID.String(), string(m.Type), m.Content, m.Background, List(m.Tags), List(m.References), m.Relevance,
		List(m.From), m.At.UTC(),
	}
}

// Source is a message from which a summary was made.
type Source struct {
	Context  string `json:"context"`
	Branch   string `json:"branch"`
	Position int64  `json:"position"`
	ID       string `json:"id"`
}

// Item is a piece of an assembled context.
type Item struct {
	Record    string    `json:"record,omitempty"`
	Kind      string    `json:"kind"`
	Strategy  string    `json:"strategy"`
	Context   string    `json:"context,omitempty"` // of the workspace's instructions there is none
	Branch    string    `json:"branch"`
	Position  *int64    `json:"position,omitempty"`
	ID        string    `json:"id,omitempty"`
	Role      string    `json:"role,omitempty"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	Tokens    int       `json:"tokens"`
	Score     float64   `json:"score,omitempty"`
	Text      string    `json:"text"`
	Why       string    `json:"why,omitempty"`
	From      []Source  `json:"from,omitempty"` // of a summary
}

// OfItem describes an item.
func OfItem(it *assemble.Item) Item {
	r := Item{
		Kind: string(it.Kind), Strategy: it.Strategy, Context: ID(it.Context), Branch: it.Branch, Role: it.Role, CreatedAt: it.At,
		Tokens: it.Tokens, Score: it.Score, Text: it.Text, Why: it.Why,
	}
	if it.Position >= 0 {
		r.Position, r.ID = &it.Position, it.ID.String()
	}
	for _, s := range it.From {
		r.From = append(r.From, Source{s.Context.String(), s.Branch, s.Position, s.ID.String()})
	}
	return r
}

// LeftOut says what did not come into an assembled context.
type LeftOut struct {
	Record  string  `json:"record,omitempty"`
	Kind    string  `json:"kind"`
	Items   int     `json:"items"`
	Reason  string  `json:"reason"`
	Best    float64 `json:"best_score"`
	Context string  `json:"context,omitempty"`
	Branch  string  `json:"branch"`
	ID      string  `json:"id,omitempty"`
}

// OfLeftOut describes what was left out, with its best example.
func OfLeftOut(l *assemble.LeftOut) LeftOut {
	r := LeftOut{Kind: string(l.Kind), Items: l.Items, Reason: l.Reason, Best: l.Best}
	if e := l.Example; e != nil {
		if r.Context, r.Branch = ID(e.Context), e.Branch; e.Position >= 0 {
			r.ID = e.ID.String()
		}
	}
	return r
}
