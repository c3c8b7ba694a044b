package record

import (
	"time"

	"github.com/ctxdir/ctxdir"
)

// Change is a change in the history of a context. One commit can make several.
type Change struct {
	Record   string    `json:"record,omitempty"`
	Seq      uint64    `json:"seq"` // of the commit
	At       time.Time `json:"at,omitzero"`
	Op       string    `json:"op"` // as the command's verbs: append, replace, new, fork, rename, rewind, rm, meta; or created
	Branch   string    `json:"branch,omitempty"`
	Was      string    `json:"was,omitempty"` // the former name of a renamed branch
	Position *int64    `json:"position,omitempty"`
	ID       string    `json:"id,omitempty"` // of the message
}

// OfCreation describes the first commit of a context, which creates it and is not an event of a watcher.
func OfCreation(m *ctxdir.Metadata) Change { return Change{Seq: 1, At: m.CreatedAt, Op: "created"} }

// OfChange describes the change that an event reports.
func OfChange(e *ctxdir.Event) Change {
	c := Change{Seq: e.Seq, At: e.At, Op: Verb(e), Branch: e.Branch, Was: e.Was}
	if e.Message != nil {
		c.Position, c.ID = &e.Message.Position, e.Message.ID.String()
	}
	return c
}

// verbs are what happens to branches, as verbs of the command.
var verbs = map[ctxdir.EventOp]string{
	ctxdir.OpCreated: "new", ctxdir.OpRenamed: "rename", ctxdir.OpMoved: "rewind", ctxdir.OpRemoved: "rm",
}

// Verb names what an event reports, as the verbs of the command do.
func Verb(e *ctxdir.Event) string {
	switch {
	case e.Kind == ctxdir.EventMessage && e.Op == ctxdir.OpAppended:
		return "append"
	case e.Kind == ctxdir.EventMessage:
		return "replace"
	case e.Kind == ctxdir.EventMetadata:
		return "meta"
	case e.Kind != ctxdir.EventBranch:
		return string(e.Op)
	case e.Op == ctxdir.OpCreated && len(e.Branches) > 0 && e.Branches[0].Parent != "":
		return "fork"
	}
	if verb, ok := verbs[e.Op]; ok {
		return verb
	}
	return string(e.Op)
}
