package record

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/ctxdir/ctxdir"
)

// Commit says which commit an event belongs to.
type Commit struct {
	Event   string `json:"event,omitempty"` // what happened: "appended", "renamed", …
	Context string `json:"context"`
	Seq     uint64 `json:"seq,omitempty"`  // of the commit: a follower continues after it
	More    bool   `json:"more,omitempty"` // another event of the same commit follows
}

// OfCommit says which commit an event belongs to.
func OfCommit(e *ctxdir.Event) Commit { return Commit{string(e.Op), e.Context.String(), e.Seq, e.More} }

// MessageEvent is an event of a message.
type MessageEvent struct {
	Message
	Branches []string `json:"branches,omitempty"` // all that show the message
	Commit
}

// BranchEvent is an event of a branch.
type BranchEvent struct {
	Branch
	Was string `json:"was,omitempty"` // the former name
	Commit
}

// ContextEvent is an event of a whole context.
type ContextEvent struct {
	Record       string    `json:"record"`
	ID           string    `json:"id"`
	Title        string    `json:"title,omitempty"`
	Branches     int       `json:"branches,omitempty"`
	ActiveBranch string    `json:"active_branch,omitempty"`
	CreatedAt    time.Time `json:"created_at,omitzero"`
	UpdatedAt    time.Time `json:"updated_at,omitzero"`
	Commit
}

// Resync says that the events since a commit cannot be listed any more.
type Resync struct {
	Record   string   `json:"record"`
	Branches []Branch `json:"branches"`
	Commit
}

// OfEvent is an event as a line of JSON, without a line break. A message above inline bytes is left out: the line has
// its size instead.
func OfEvent(ctx context.Context, e *ctxdir.Event, inline int64) []byte {
	var m *Loaded
	if e.Message != nil {
		content := Full
		if e.Message.Unavailable == nil && FullSize(e.Message) > inline {
			content = None
		}
		var err error
		if m, err = Load(ctx, e.Message, content); err != nil {
			m = &Loaded{Message: e.Message, Missing: err}
		}
	}
	var b bytes.Buffer
	if err := WriteEvent(ctx, &b, e, m); err != nil {
		m = &Loaded{Message: e.Message, Missing: err}
		b.Reset()
		_ = WriteEvent(ctx, &b, e, m) // into memory
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// WriteEvent writes an event as a line of JSON; m is the message of an event of a message.
func WriteEvent(ctx context.Context, w io.Writer, e *ctxdir.Event, m *Loaded) error {
	switch e.Kind {
	case ctxdir.EventMessage:
		r := MessageEvent{m.Head(e.Branch), nil, OfCommit(e)}
		for _, b := range e.Branches {
			r.Branches = append(r.Branches, b.Name)
		}
		return m.Write(ctx, w, r)
	case ctxdir.EventBranch:
		info := ctxdir.BranchInfo{Name: e.Branch}
		if len(e.Branches) > 0 {
			info = e.Branches[0]
		}
		return write(w, BranchEvent{namedBranch(info), e.Was, OfCommit(e)})
	case ctxdir.EventMetadata:
		line, fields := MetadataLine(e.Metadata), Encode(OfCommit(e))
		line = append(append(line[:len(line)-1], ','), fields[1:]...)
		_, err := w.Write(append(line, '\n'))
		return err
	case ctxdir.EventResync:
		r := Resync{Record: "resync", Branches: []Branch{}, Commit: OfCommit(e)}
		for _, b := range e.Branches {
			r.Branches = append(r.Branches, namedBranch(b))
		}
		return write(w, r)
	}
	r := ContextEvent{Record: "context", ID: e.Context.String(), Commit: OfCommit(e)}
	if m := e.Metadata; m != nil {
		r.Title, r.Branches, r.ActiveBranch, r.CreatedAt, r.UpdatedAt = m.Title, len(m.Branches), m.ActiveBranch, m.CreatedAt, m.UpdatedAt
	}
	return write(w, r)
}

func namedBranch(b ctxdir.BranchInfo) Branch {
	r := OfBranch(b)
	r.Record = "branch"
	return r
}

func write(w io.Writer, v any) error {
	_, err := w.Write(append(Encode(v), '\n'))
	return err
}

// MetadataLine is metadata.json as a line of JSON, without a line break.
func MetadataLine(m *ctxdir.Metadata) []byte {
	return append([]byte(`{"record":"metadata",`), m.Raw[1:]...)
}
