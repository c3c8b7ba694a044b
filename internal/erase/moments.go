package erase

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/ctxdir/ctxdir/message"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// docs/FORMAT.md, "Moments": a message of the role "moment" repeats the text of the messages that its member "from"
// names, and is erased with them. The branch that has these messages has a kind.
const (
	momentsKind = "moments"
	momentRole  = "moment"
)

// MadeFrom erases the moments of a context that were made from some of its messages, before a purge removes these. If it
// cannot read a moment, which may be one of them, it fails with [engine.ErrUnexamined] and changes nothing. The caller
// holds [engine.CollectionLock].
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
	spans, err := x.momentSpans()
	if err != nil {
		return nil, err
	}
	var unexamined error
	err = x.examine(ctx, spans, func(id uuid.UUID, l *links, why error) {
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

// momentSpans returns where moments can be: the lines of branches with their kind, and removed lines.
func (x *target) momentSpans() (spans []loader.Span, err error) {
	m := x.c.Current()
	var lines []uuid.UUID
	for i := range m.Branches {
		if m.Branches[i].Extra.Text(ctxfolder.BranchKind) == momentsKind {
			lines = append(lines, m.Branches[i].Line)
		}
	}
	for i := range m.Removed {
		lines = append(lines, m.Removed[i].Line)
	}
	seen := map[branch.Segment]bool{}
	for _, line := range lines {
		if _, ok := m.Line(line); !ok {
			continue
		}
		end, err := x.c.End(m, line)
		if err != nil {
			return nil, err
		}
		all, err := branch.Lines(m, line, end)
		if err != nil {
			return nil, err
		}
		for _, seg := range all {
			if l, ok := m.Line(seg.Line); ok && !seen[seg] {
				seen[seg] = true
				spans = append(spans, loader.Span{Line: seg.Line, Folder: l.Folder, From: seg.From, To: seg.To})
			}
		}
	}
	return spans, nil
}
