package erase

import (
	"context"
	"fmt"
	"slices"

	"github.com/ctxdir/ctxdir/branch"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// begin checks that the messages may be erased, writes the note, and removes them from the context: what one look under the
// lock found serves all of it. The caller holds the locks of the context.
func (e *eraser) begin(ctx context.Context, ids []uuid.UUID) error {
	err := e.look(ctx, ids)
	if err == nil {
		err = e.readTexts(ctx)
	}
	if err == nil {
		err = e.main.prepare(ctx)
	}
	if err != nil {
		return err
	}
	var traces []trace
	for _, x := range e.all { // main is the last one
		if traces, err = e.findTraces(x); err != nil { // it notes payloads
			return err
		}
	}
	if err := e.writeNote(); err != nil {
		return err
	}
	if err := e.s.BeginErasure(e.id); err != nil {
		return err
	}
	e.main.gone = true
	return e.removeFrom(e.main, traces)
}

// look finds the messages and what repeats them.
func (e *eraser) look(ctx context.Context, ids []uuid.UUID) error {
	if err := e.readNote(); err != nil {
		return err
	}
	err := e.findAll(ctx, ids)
	for _, x := range e.all {
		if x != e.main || x.of != len(e.ids) {
			if ferr := x.find(e.ids); ferr != nil {
				return ferr
			}
		}
		if verr := x.verify(); verr != nil {
			return verr // it may be why a message was not found
		}
	}
	return err
}

// plan does the dry run.
func (e *eraser) plan(ctx context.Context, ids []uuid.UUID) error {
	for _, x := range e.all {
		if err := x.c.Refresh(ctx); err != nil {
			return err
		}
	}
	if err := e.look(ctx, ids); err != nil {
		return err
	}
	for _, x := range e.all {
		e.reportPlaces(x)
		e.reportTitle(x)
		traces, err := e.findTraces(x)
		if err != nil {
			return err
		}
		for _, t := range traces {
			e.report(t.id, x.path(t.path), t.bytes, t.kind)
			e.paths[t.path] = e.paths[t.path] || t.whole
		}
	}
	err := e.eraseLooseTrash()
	if err == nil {
		err = e.removePayloads(ctx)
	}
	if err == nil {
		err = e.readTexts(ctx)
	}
	if err == nil {
		err = e.findCopies(ctx)
	}
	return err
}

// find looks up the ids in the context, and fails if one must not be erased.
func (e *eraser) find(ids []uuid.UUID) error {
	x := e.main
	if err := x.c.Problem(); err != nil {
		return err
	}
	if err := x.find(e.ids); err != nil {
		return err
	}
	for _, at := range x.places {
		e.referred = e.referred || at.Entry.Payloads > 0
	}
	// Of the messages in the note, erase unasked only those whose erasure had begun, and those that go along with one: a
	// note is only a file.
	begun := slices.ContainsFunc(x.places, func(at engine.Place) bool {
		return e.noted[at.Entry.ID] && e.isNamed(at.Entry.ID) && at.Entry.IsErased()
	})
	for _, at := range x.places {
		id := at.Entry.ID
		_, along := e.along[id]
		if e.noted[id] && !at.Entry.IsErased() && !slices.Contains(ids, id) && (!along || !begun) {
			delete(e.ids, id)
			delete(e.along, id)
		}
	}
	x.places, x.of = slices.DeleteFunc(x.places, func(at engine.Place) bool { return !e.ids[at.Entry.ID] }), len(e.ids)
	m := x.c.Current()
	strange := map[uuid.UUID]bool{} // messages in files of another history, and in the trash
	for _, id := range ids {
		there, shown := false, 0
		for _, at := range x.places {
			there = there || at.Entry.ID == id
		}
		for _, b := range m.Branches {
			shows, err := x.shows(m, b.Line, id)
			if err != nil {
				return err
			}
			if shows {
				shown++
			}
		}
		if !there && len(strange) == 0 {
			traces, err := e.findTraces(x)
			if err != nil {
				return err
			}
			for _, t := range traces {
				strange[t.id] = true
			}
		}
		switch {
		case !there && !strange[id] && !e.noted[id]:
			return engine.Wrap(engine.Error{Op: "erase from", Context: e.id, ID: id}, fmt.Errorf("%w: message %s", engine.ErrNotExist, id))
		case shown > 1 && !e.o.Shared:
			return engine.Wrap(engine.Error{Op: "erase from", Context: e.id, ID: id}, engine.ErrShared)
		}
	}
	return nil
}

// findAll is find, and adds what repeats the messages.
func (e *eraser) findAll(ctx context.Context, ids []uuid.UUID) error {
	for _, id := range ids {
		delete(e.along, id)
	}
	for {
		if err := e.find(ids); err != nil {
			return err
		}
		known := len(ids)
		for _, x := range e.all {
			added, err := e.addAlong(ctx, x)
			if err != nil {
				return err
			}
			if x == e.main {
				ids = slices.Concat(ids, added)
			}
		}
		if len(ids) == known {
			return nil
		}
	}
}

// shows reports whether a line's history has one of the places of a message, not erased there.
func (x *target) shows(m *engine.Metadata, line, id uuid.UUID) (bool, error) {
	end, err := x.c.End(m, line)
	if err != nil {
		return false, err
	}
	lines, err := branch.Lines(m, line, end)
	if err != nil {
		return false, err
	}
	for _, seg := range lines {
		for _, at := range x.places {
			shown := at.Span.Line == seg.Line && seg.From <= at.Entry.Position && at.Entry.Position < seg.To
			if shown && at.Entry.ID == id && !at.Entry.IsErased() {
				return true, nil
			}
		}
	}
	return false, nil
}
