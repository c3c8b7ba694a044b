// Package record has the JSON forms of what a store has, as the command prints and the API sends them.
package record

import (
	"bytes"
	"encoding/json"
	"io"
	"time"

	"github.com/ctxdir/ctxdir"
)

// Context is a context in a list.
type Context struct {
	Record       string            `json:"record,omitempty"`
	ID           string            `json:"id"`
	Title        string            `json:"title"`
	Labels       map[string]string `json:"labels,omitempty"`
	Kind         string            `json:"kind,omitempty"`
	ExternalID   string            `json:"external_id,omitempty"`
	Model        string            `json:"model,omitempty"`
	Tool         string            `json:"tool,omitempty"`
	Branches     int               `json:"branches"`
	ActiveBranch string            `json:"active_branch"`
	Messages     int64             `json:"messages"`
	Bytes        int64             `json:"bytes"`
	CreatedAt    time.Time         `json:"created_at,omitzero"`
	UpdatedAt    time.Time         `json:"updated_at,omitzero"`
	Format       string            `json:"format,omitempty"` // of a legacy context
	Problem      string            `json:"problem,omitempty"`
}

// OfContext describes a context.
func OfContext(s ctxdir.Summary) Context {
	return Context{
		"", s.ID.String(), s.Title, s.Labels, s.Kind, s.ExternalID, s.Model, s.Labels["tool"],
		s.Branches, s.ActiveBranch, s.Messages, s.Bytes, s.CreatedAt, s.UpdatedAt, s.Legacy, Problem(s.Problem),
	}
}

// Branch is a branch of a context.
type Branch struct {
	Record   string `json:"record,omitempty"`
	Name     string `json:"name"`
	Parent   string `json:"parent,omitempty"` // the branch, or the id of the line, that it was forked from
	Base     *int64 `json:"base,omitempty"`   // number of inherited messages
	Line     string `json:"line"`             // its item in the trash after a rewind or a removal
	From     string `json:"from,omitempty"`   // the earlier branch that shares the most messages with it; events do not say it
	Shared   int64  `json:"shared,omitempty"` // number of these
	Messages int64  `json:"messages"`
	Bytes    int64  `json:"bytes"` // of its own line
	Active   bool   `json:"active"`
	Side     bool   `json:"side,omitempty"` // beside the conversation: that of a sub-agent, forked behind the call that began it
}

// OfBranch describes a branch.
func OfBranch(b ctxdir.BranchInfo) Branch {
	r := Branch{"", b.Name, b.Parent, nil, b.Line.String(), b.From, b.Shared, b.Messages, b.Bytes, b.Active, isSide(b.Extra)}
	if b.Parent != "" {
		r.Base = &b.Base
	}
	return r
}

// isSide reports whether an import marked a branch as a sidechain.
func isSide(extra json.RawMessage) bool {
	var marked struct {
		Sidechain bool `json:"sidechain"`
	}
	return len(extra) > 0 && json.Unmarshal(extra, &marked) == nil && marked.Sidechain
}

// Encode is a value as one line of JSON, without a line break, and without escaping for HTML.
func Encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("record: " + err.Error()) // records are plain structs
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// writeWith writes a value as a line of JSON with one more member, whose value it does not check: encoding/json would
// parse every byte of it again.
func writeWith(w io.Writer, v any, key string, value []byte) error {
	b := Encode(v)
	if _, err := w.Write(append(b[:len(b)-1], `,"`+key+`":`...)); err != nil {
		return err
	}
	if _, err := w.Write(value); err != nil {
		return err
	}
	_, err := io.WriteString(w, "}\n")
	return err
}
