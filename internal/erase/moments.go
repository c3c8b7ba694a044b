package erase

import (
	"context"
	"encoding/json"
	"fmt"

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

// MadeFrom erases the moments of a context that were made from some of its messages, before a purge removes these. If it
// cannot read a moment, which may be one of them, it fails with [engine.ErrUnexamined] and changes nothing. The caller
// holds [engine.CollectionLock].
//
// It finishes an erase that was interrupted in the context: what is erased already no longer says that it is a moment.
//
// Crash order: as for [Messages]. The moments go before their sources, so no crash leaves one without its source.
func MadeFrom(ctx context.Context, s *engine.Store, id uuid.UUID, messages []uuid.UUID) error {
	c, err := s.Open(ctx, id)
	if err != nil {
		return err
	}
	from := map[uuid.UUID]bool{}
	for _, m := range messages {
		from[m] = true
	}
	made, err := (&target{c: c}).moments(ctx, from)
	if note, nerr := ctxfolder.ReadErasing(c.Dir.FS); err == nil && nerr == nil {
		made = append(made, note.Messages...)
	}
	if cerr := c.Close(); err == nil {
		err = cerr
	}
	if err != nil || len(made) == 0 {
		return err
	}
	for _, err := range Messages(ctx, s, id, made, Options{Shared: true, locked: true}) {
		if err != nil {
			return err
		}
	}
	return nil
}

// moments returns the moments that were made from some messages and are not among them.
func (x *target) moments(ctx context.Context, from map[uuid.UUID]bool) (made []uuid.UUID, err error) {
	in, err := x.momentPlaces()
	if err != nil {
		return nil, err
	}
	var unexamined error
	err = x.examine(ctx, in, func(id uuid.UUID, l *links, why error) {
		switch {
		case from[id]:
		case why != nil:
			unexamined = engine.Wrap(engine.Error{Op: "erase from", Context: x.c.Dir.ID, ID: id}, fmt.Errorf("%w: %w", engine.ErrUnexamined, why))
		case l.madeFrom(from) != uuid.Nil:
			made = append(made, id)
		}
	})
	if err == nil {
		err = unexamined
	}
	return made, err
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
