package index

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/google/uuid"
)

// line is what is known of a line: its counts, and the messages that logs have.
type line struct {
	Counts
	recent     []Entry             // the last ones, without a gap
	ids        sync.Mutex          // guards byID
	byID       map[uuid.UUID]int64 // their positions; nil until it is asked for
	lossBudget *int64              // how many more messages may be lost, of all lines together
	changed    map[int64]Entry     // newer versions of earlier ones, and what is left of erased ones
}

// start returns the position of the first recent message.
func (ln *line) start() int64 { return ln.End() - int64(len(ln.recent)) }

// findIn returns the position of a recent message. Readers call it at the same time.
func (ln *line) findIn(id uuid.UUID) (position int64, ok bool) {
	ln.ids.Lock()
	defer ln.ids.Unlock()
	if ln.byID == nil {
		ln.byID = make(map[uuid.UUID]int64, len(ln.recent))
		for i := range ln.recent {
			ln.byID[ln.recent[i].ID] = ln.recent[i].Position
		}
	}
	position, ok = ln.byID[id]
	return position, ok
}

// put takes the next message, or with was ≥ 0 another version of one. With gaps, some may be missing before it.
func (ln *line) put(e *Entry, was int64, gaps bool) error {
	switch start := ln.start(); {
	case was < 0 && e.Position > ln.End() && gaps:
		if err := ln.lose(e.Position); err != nil {
			return err
		}
		return ln.put(e, was, false)
	case was < 0 && e.Position < ln.End() && e.Position >= ln.Base && gaps: // the record that cut the line is missing
		if err := ln.trim(&trim{Line: e.Line, End: e.Position, Bytes: ln.Bytes}); err != nil {
			return err
		}
		return ln.put(e, was, false)
	case was >= 0 && e.Position >= ln.End() && gaps: // the record of the version before is missing
		if err := ln.lose(e.Position); err != nil {
			return err
		}
		return ln.put(e, -1, false)
	case was < 0 && e.Position != ln.End():
		return fmt.Errorf("%w: line %s: a record has position %d, but the line ends at %d", ErrDamaged, e.Line, e.Position, ln.End())
	case was < 0:
		ln.recent = append(ln.recent, *e)
		if ln.byID != nil {
			ln.byID[e.ID] = e.Position
		}
	case e.Position < ln.Base || e.Position >= ln.End():
		return fmt.Errorf("%w: replace record: position %d of line %s not found", ErrDamaged, e.Position, e.Line)
	case e.Position >= start:
		if ln.recent[e.Position-start].ID != e.ID {
			ln.byID = nil
		}
		ln.recent = slices.Clone(ln.recent) // readers have it
		ln.recent[e.Position-start] = *e
	default:
		ln.change(e)
	}
	ln.add(e, was)
	return nil
}

func (ln *line) change(e *Entry) {
	all := maps.Clone(ln.changed) // readers have it
	if all == nil {
		all = map[int64]Entry{}
	}
	all[e.Position] = *e
	ln.changed = all
}

// maxLost bounds the messages that logs do not have, in all: a damaged file could claim any number.
const maxLost = 1 << 18

// lose fills a line up to a position: the records of its messages are missing.
func (ln *line) lose(to int64) error {
	if n := to - ln.End(); n > 0 && n > *ln.lossBudget {
		return damaged("line %s continues %d positions after its end", ln.Line, n)
	} else if n > 0 {
		*ln.lossBudget -= n
	}
	ln.recent = slices.Grow(ln.recent, int(max(to-ln.End(), 0)))
	for ln.End() < to {
		ln.recent = append(ln.recent, Entry{Line: ln.Line, Position: ln.End(), Gone: archive.Lost})
		ln.Count++
	}
	return nil
}

// loseBefore makes a line begin earlier: the records of its first messages are missing.
func (ln *line) loseBefore(base int64) error {
	n := ln.Base - base
	if n > *ln.lossBudget {
		return damaged("line %s begins %d positions after its base", ln.Line, n)
	}
	*ln.lossBudget -= n
	ln.Base, ln.Count = base, ln.Count+n
	return nil
}

// trim ends the line earlier.
func (ln *line) trim(t *trim) error {
	if t.End < ln.Base || t.End > ln.End() {
		return fmt.Errorf("%w: trim record: line %s has no position %d", ErrDamaged, t.Line, t.End)
	}
	ln.recent = slices.Clone(ln.recent[:max(t.End-ln.start(), 0)])
	ln.changed = maps.Clone(ln.changed)
	maps.DeleteFunc(ln.changed, func(p int64, _ Entry) bool { return p >= t.End })
	ln.byID = nil
	ln.Count, ln.Bytes, ln.Last = t.End-ln.Base, t.Bytes, t.Last
	if ln.Count == 0 {
		ln.Referring = 0
	}
	return nil
}

// erase leaves of messages only that they were there.
func (ln *line) erase(x *erasure, seq uint64) error {
	for _, p := range x.Positions {
		if p < ln.Base || p >= ln.End() {
			return fmt.Errorf("%w: erase record: position %d of line %s not found", ErrDamaged, p, x.Line)
		}
		// The row of a message in a segment has its id and time: see entryAt.
		gone := Entry{Line: x.Line, Position: p, Seq: seq, Gone: x.gone()}
		if start := ln.start(); p >= start {
			gone.ID, gone.At = ln.recent[p-start].ID, ln.recent[p-start].At
			ln.recent = slices.Clone(ln.recent)
			ln.recent[p-start] = gone
		} else {
			if old, ok := ln.changed[p]; ok {
				gone.ID, gone.At = old.ID, old.At
			}
			ln.change(&gone)
		}
	}
	ln.Bytes = x.Bytes
	return nil
}
