package search

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"sync"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// names are what a search needs of a context's metadata.
type names struct {
	Title    string            `json:"title,omitempty"`
	Kind     string            `json:"kind,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Branches []branchName      `json:"branches"`
	Lines    []lineage         `json:"lines"`
}

type branchName struct {
	Name string    `json:"name"`
	Line uuid.UUID `json:"line"`
	Kind string    `json:"kind,omitempty"` // such as "moments"; a branch of a conversation has none
}

type lineage struct {
	ID     uuid.UUID `json:"id"`
	Parent uuid.UUID `json:"parent,omitzero"`
	Base   int64     `json:"base,omitempty"`
}

// metadataLine is a line in metadata.json: see docs/FORMAT.md.
type metadataLine struct {
	lineage
	Folder   string `json:"folder"`
	Archived int64  `json:"archived"` // messages before this position have no files
}

func namesOf(m *ctxdir.Metadata) (*names, []metadataLine) {
	n := &names{Title: m.Title, Kind: m.Kind, Labels: m.Labels}
	var is struct {
		Branches []struct {
			Name string    `json:"name"`
			Line uuid.UUID `json:"line"`
			Kind any       `json:"kind"` // text, if it is a kind
		} `json:"branches"`
		Lines []metadataLine `json:"lines"`
	}
	_ = json.Unmarshal(m.Raw, &is) // the metadata was read, so it is valid
	for _, b := range is.Branches {
		kind, _ := b.Kind.(string)
		n.Branches = append(n.Branches, branchName{b.Name, b.Line, kind})
	}
	for i := range is.Lines {
		n.Lines = append(n.Lines, is.Lines[i].lineage)
	}
	return n, is.Lines
}

// kindOf returns the kind that branches have in common, empty for none.
func (n *names) kindOf(branches []string) (kind string) {
	for i, name := range branches {
		at := slices.IndexFunc(n.Branches, func(b branchName) bool { return b.Name == name })
		if at < 0 || i > 0 && n.Branches[at].Kind != kind {
			return ""
		}
		kind = n.Branches[at].Kind
	}
	return kind
}

// showing returns the branches that show a message.
func (n *names) showing(line uuid.UUID, position int64) (branches []string) {
	for _, b := range n.Branches {
		at := b.Line
		for at != line && at != uuid.Nil {
			l := n.line(at)
			if l == nil || position >= l.Base {
				at = uuid.Nil
			} else {
				at = l.Parent
			}
		}
		if at == line {
			if l := n.line(line); l != nil && position >= l.Base {
				branches = append(branches, b.Name)
			}
		}
	}
	return branches
}

func (n *names) line(id uuid.UUID) *lineage {
	for i := range n.Lines {
		if n.Lines[i].ID == id {
			return &n.Lines[i]
		}
	}
	return nil
}

// place is the context of a line.
type place struct {
	n       int64 // of the context
	context uuid.UUID
	line    uuid.UUID
	names   *names
}

// directory keeps the contexts of lines that searches met.
type directory struct {
	changes  int64 // of about, when it was read
	mu       sync.Mutex
	places   map[int64]*place
	contexts map[int64]*names
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// place returns the context of a line.
func (d *directory) place(ctx context.Context, q querier, line int64) (*place, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.places[line]; p != nil {
		return p, nil
	}
	p := &place{}
	var id, of []byte
	var text string
	err := q.QueryRowContext(ctx, "SELECT c.n, c.id, l.id, c.names FROM lines l JOIN contexts c ON c.n = l.context WHERE l.n = ?", line).
		Scan(&p.n, &of, &id, &text)
	if err != nil {
		return nil, err
	}
	p.context, p.line, p.names = uuid.UUID(of), uuid.UUID(id), d.contexts[p.n]
	if p.names == nil {
		p.names = &names{}
		if err := json.Unmarshal([]byte(text), p.names); err != nil {
			return nil, err
		}
		d.contexts[p.n] = p.names
	}
	d.places[line] = p
	return p, nil
}
