package record

import (
	"bytes"
	"context"
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
func OfCommit(e *ctxdir.Event) Commit { return Commit{e.Op, e.Context.String(), e.Seq, e.More} }

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
	switch e.Kind {
	case ctxdir.EventMessage:
		return messageEvent(ctx, e, inline)
	case ctxdir.EventBranch:
		info := ctxdir.BranchInfo{Name: e.Branch}
		if len(e.Branches) > 0 {
			info = e.Branches[0]
		}
		b := OfBranch(info)
		b.Record = "branch"
		return Encode(BranchEvent{b, e.Was, OfCommit(e)})
	case ctxdir.EventMetadata:
		fields := Encode(OfCommit(e))
		line := append([]byte(`{"record":"metadata",`), fields[1:len(fields)-1]...)
		return append(append(line, ','), e.Metadata.Raw[1:]...)
	case ctxdir.EventResync:
		r := Resync{Record: "resync", Branches: []Branch{}, Commit: OfCommit(e)}
		for _, b := range e.Branches {
			r.Branches = append(r.Branches, OfBranch(b))
		}
		return Encode(r)
	}
	r := ContextEvent{Record: "context", ID: e.Context.String(), Commit: OfCommit(e)}
	if m := e.Metadata; m != nil {
		r.Title, r.Branches, r.ActiveBranch, r.CreatedAt, r.UpdatedAt = m.Title, len(m.Branches), m.ActiveBranch, m.CreatedAt, m.UpdatedAt
	}
	return Encode(r)
}

func messageEvent(ctx context.Context, e *ctxdir.Event, inline int64) []byte {
	r := MessageEvent{OfMessage(e.Message, e.Branch), nil, OfCommit(e)}
	for _, b := range e.Branches {
		r.Branches = append(r.Branches, b.Name)
	}
	if size := FullSize(e.Message); e.Message.Unavailable == nil && size > inline {
		r.Bytes = &size
		return Encode(r)
	}
	var b bytes.Buffer
	if err := WriteMessage(ctx, &b, e.Message, r, Full); err != nil {
		r.Unavailable = Problem(err)
		return Encode(r)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
