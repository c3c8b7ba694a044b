package erase

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// docs/FORMAT.md, "Moments": a message of the role "moment" repeats the text of the messages that its member "from"
// names, and is erased with them. The branch that has these messages has a kind.
const (
	momentsKind = "moments"
	momentRole  = "moment"
)

// MadeFrom erases the moments of a context that were made from some of its messages, before a purge removes these. The
// caller holds [engine.CollectionLock].
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
	made, err := (&target{c: c}).moments(from)
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

// findWithMoments is find, and adds the moments that were made from the messages.
func (e *eraser) findWithMoments(ids []uuid.UUID) error {
	for {
		if err := e.find(ids); err != nil {
			return err
		}
		known := len(ids)
		for _, x := range e.all {
			made, err := e.addMoments(x)
			if err != nil {
				return err
			}
			if x == e.main {
				ids = slices.Concat(ids, made)
			}
		}
		if len(ids) == known {
			return nil
		}
	}
}

// addMoments adds the moments in a target that were made from the messages to erase, and returns those that are new.
func (e *eraser) addMoments(x *target) ([]uuid.UUID, error) {
	made, err := x.moments(e.ids)
	for _, id := range made {
		e.ids[id] = true
	}
	return made, err
}

// moments returns the moments that were made from some messages and are not among them.
func (x *target) moments(from map[uuid.UUID]bool) (made []uuid.UUID, err error) {
	spans, err := x.momentSpans()
	if err != nil {
		return nil, err
	}
	for _, span := range spans {
		for entry, err := range x.c.Log.All(context.Background(), span.Line, span.From, span.To) {
			if err != nil {
				return nil, err
			}
			if entry.Lost != "" || from[entry.ID] || slices.Contains(made, entry.ID) {
				continue
			}
			m, err := x.c.Loader.Load(context.Background(), span, entry)
			if err != nil {
				return nil, err
			}
			if madeFrom(m, from) {
				made = append(made, entry.ID)
			}
		}
	}
	return made, nil
}

func madeFrom(m *loader.Message, from map[uuid.UUID]bool) bool {
	if m.Unavailable != nil || m.Role != momentRole {
		return false
	}
	var body struct {
		From []any `json:"from"`
	}
	return json.Unmarshal(m.Stored, &body) == nil && slices.ContainsFunc(body.From, func(v any) bool {
		text, _ := v.(string)
		id, err := uuid.Parse(text) // one that is none hides no other
		return err == nil && from[id]
	})
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
