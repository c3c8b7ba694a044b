package erase

import (
	"context"
	"encoding/json"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// docs/APPLICATIONS.md, "Moments": a message of the role "moment" repeats the text of the messages that its member
// "from" names, and is erased with them. The branch that has these messages has a kind.
const (
	momentsKind = "moments"
	momentRole  = "moment"
)

// places are where messages can be that repeat others.
type places struct {
	spans []loader.Span
	// ends has lines, and up to where the conversation shows them: no moment is there.
	ends map[uuid.UUID]int64
}

// madeFrom returns one of some messages from which a moment was made.
func (l *links) madeFrom(messages map[uuid.UUID]bool) uuid.UUID {
	if l != nil {
		for _, id := range l.from {
			if messages[id] {
				return id
			}
		}
	}
	return uuid.Nil
}

// sourcesOf returns the ids in the member "from" of a moment. Another program may have moved them to blobs.
func (x *target) sourcesOf(ctx context.Context, m *loader.Message) (from []uuid.UUID, err error) {
	err = message.Members(m.Stored, func(name string, v jsontext.Value) error {
		if name != "from" {
			return nil
		}
		resolved, err := x.c.Loader.Resolve(ctx, json.RawMessage(v.Clone()))
		if err != nil {
			return err
		}
		var all []any
		_ = json.Unmarshal(resolved, &all)
		for _, v := range all {
			text, _ := v.(string)
			if id, err := uuid.Parse(text); err == nil { // one that is none hides no other
				from = append(from, id)
			}
		}
		return nil
	})
	return from, err
}

// momentPlaces returns where moments can be: the lines of branches with their kind, of removed ones too, and lines whose
// branch is not known.
func (x *target) momentPlaces() (in places, err error) {
	m := x.c.Current()
	in.ends = map[uuid.UUID]int64{}
	seen := map[branch.Segment]bool{}
	add := func(line uuid.UUID) error {
		return x.eachSegment(m, line, func(seg branch.Segment) {
			if l, ok := m.Line(seg.Line); ok && !seen[seg] {
				seen[seg] = true
				in.spans = append(in.spans, loader.Span{Line: seg.Line, Folder: l.Folder, From: seg.From, To: seg.To})
			}
		})
	}
	for i := range m.Branches {
		if m.Branches[i].Extra.Get(ctxfolder.BranchKind) == nil {
			err := x.eachSegment(m, m.Branches[i].Line, func(seg branch.Segment) {
				in.ends[seg.Line] = max(in.ends[seg.Line], seg.To)
			})
			if err != nil {
				return in, err
			}
		}
	}
	for i := range m.Branches {
		if m.Branches[i].Extra.Text(ctxfolder.BranchKind) == momentsKind {
			if err := add(m.Branches[i].Line); err != nil {
				return in, err
			}
		}
	}
	for seg := range seen { // a branch of the conversation may be a fork of such a one
		delete(in.ends, seg.Line)
	}
	for i := range m.Removed {
		r := &m.Removed[i]
		if r.Why != branch.WhyUnnamed && r.Extra.Text(ctxfolder.BranchKind) != momentsKind {
			continue
		}
		if err := add(r.Line); err != nil {
			return in, err
		}
	}
	return in, nil
}

// eachSegment calls f for each segment of the history of a line, none for a line that is not in the table.
func (x *target) eachSegment(m *engine.Metadata, line uuid.UUID, f func(seg branch.Segment)) error {
	if _, ok := m.Line(line); !ok {
		return nil
	}
	end, err := x.c.End(m, line)
	if err != nil {
		return err
	}
	all, err := branch.Lines(m, line, end)
	for _, seg := range all {
		f(seg)
	}
	return err
}
