package erase

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/origin"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// An erase also erases what repeats its messages: docs/APPLICATIONS.md, "Repeated messages" and "Moments".

// examine calls f for each message of some places that is not erased, with its links, nil for none, or with the reason why
// these cannot be read. It reads each version once.
func (x *target) examine(ctx context.Context, in places, f func(id uuid.UUID, l *links, why error)) error {
	if x.known == nil {
		x.known = map[version]*links{}
	}
	for _, span := range in.spans {
		for entry, err := range x.c.Index.All(ctx, span.Line, span.From, span.To) {
			if err != nil {
				return err
			}
			if entry.IsErased() || entry.ID == uuid.Nil { // no file can be a message without a known id
				continue
			}
			key := version{span.Line, entry.Position, entry.Sum, entry.At}
			l, ok := x.known[key]
			var why error
			if !ok {
				if l, why, err = x.linksOf(ctx, span, entry); err != nil {
					return err
				}
				if why == nil {
					x.known[key] = l
				}
			}
			if why != nil && entry.Position < in.ends[span.Line] {
				continue
			}
			f(entry.ID, l, why)
		}
	}
	return nil
}

// linksOf reads the links of a message. why is the reason why it cannot.
func (x *target) linksOf(ctx context.Context, span loader.Span, entry *index.Entry) (l *links, why, err error) {
	m, err := x.c.Loader.Load(ctx, span, entry)
	if err != nil {
		return nil, nil, err
	}
	if m.Unavailable != nil {
		return nil, m.Unavailable, nil
	}
	var from []uuid.UUID
	if m.Role == momentRole {
		if from, why = x.sourcesOf(ctx, m); why != nil {
			return nil, why, ctx.Err()
		}
	}
	if len(m.CopyOf)+len(m.Repeats)+len(from) == 0 {
		return nil, nil, nil
	}
	return &links{copyOf: m.CopyOf, repeats: slices.Concat(m.Repeats, m.CopyOf), from: from}, nil, nil
}

// linked returns where messages can be that repeat others: moments, and in a context that was imported every message.
func (x *target) linked() (in places, imported bool, err error) {
	m := x.c.Current()
	if m.Extra.Get(origin.Key) == nil {
		in, err = x.momentPlaces()
		return in, false, err
	}
	for _, l := range m.Lines {
		in.spans = append(in.spans, loader.Span{Line: l.ID, Folder: l.Folder, From: 0, To: math.MaxInt64})
	}
	return in, true, nil
}

// addAlong adds the messages of a target that go along with those to erase, and returns them. It notes in unexamined the
// messages that it cannot read.
func (e *eraser) addAlong(ctx context.Context, x *target) (added []uuid.UUID, err error) {
	in, imported, err := x.linked()
	if err != nil {
		return nil, err
	}
	for more := true; more; {
		more = false
		there := map[uuid.UUID]bool{}
		wanted := map[uuid.UUID]uuid.UUID{} // messages, and with which one each goes
		e.unexamined[x] = nil
		err := x.examine(ctx, in, func(id uuid.UUID, l *links, why error) {
			there[id] = true
			switch {
			case why != nil && e.ids[id] && !imported: // nothing else repeats a moment
			case why != nil:
				e.unexamined[x] = append(e.unexamined[x], unexamined{id, why})
			case l != nil:
				e.follow(id, l, wanted)
			}
		})
		if err != nil {
			return added, err
		}
		for id, with := range wanted {
			if there[id] && !e.ids[id] {
				e.ids[id], e.along[id], more = true, with, true
				added = append(added, id)
			}
		}
	}
	return added, nil
}

// follow adds to wanted the messages that belong to those to erase by the links of a message. What is found takes
// along only moments: it may repeat other messages too.
func (e *eraser) follow(id uuid.UUID, l *links, wanted map[uuid.UUID]uuid.UUID) {
	if e.isNamed(id) {
		for _, other := range l.copyOf {
			wanted[other] = id
		}
	}
	if e.ids[id] {
		return
	}
	for _, other := range l.repeats {
		if e.isNamed(other) {
			wanted[id] = other
		}
	}
	if source := l.madeFrom(e.ids); source != uuid.Nil {
		if with, ok := e.along[source]; ok && with != uuid.Nil {
			source = with
		}
		wanted[id] = source
	}
}

// isNamed reports whether a message is to be erased for itself.
func (e *eraser) isNamed(id uuid.UUID) bool {
	_, along := e.along[id]
	return e.ids[id] && !along
}

// missed returns the messages that could not be examined, each once, and whether another erase can examine one: those
// that are erased themselves can only have been the copy of another message.
func (e *eraser) missed() (all []unexamined, left bool) {
	for _, x := range e.all {
		for _, u := range e.unexamined[x] {
			if !slices.ContainsFunc(all, func(o unexamined) bool { return o.id == u.id }) {
				all = append(all, u)
				left = left || !e.ids[u.id]
			}
		}
	}
	return all, left
}

// incomplete yields the messages that could not be examined, and returns an error if there are any.
func (e *eraser) incomplete(yield func(Removal, error) bool) error {
	all, _ := e.missed()
	for _, u := range all {
		if !yield(Removal{Context: e.id, ID: u.id, Path: e.id.String(), Reason: "not examined", Problem: u.why}, nil) {
			return nil
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d may repeat erased text", engine.ErrUnexamined, len(all))
}
