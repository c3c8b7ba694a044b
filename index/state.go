package index

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/google/uuid"
)

// state is what is known of the history, up to a place.
type state struct {
	context    uuid.UUID
	at         journal.Position
	segments   *segments  // they begin the history
	logs       []*openLog // these go on; writers append to the last one
	lines      map[uuid.UUID]*line
	payloads   map[blob.Sum]payloadAt // that the logs have
	metadata   metadata
	lenient    bool      // what is damaged is left out, and the rest counts
	gaps       bool      // messages may be missing before the next one
	torn       bool      // a log ends in what an interrupted write may have left
	lossBudget int64     // how many more messages may be lost at once
	headless   bool      // the newest log is missing
	broken     bool      // no log takes further records: another one begins
	listing    string    // the names of the files
	problems   []Problem // why something was left out
	newestAt   int64     // the time of the newest commit of a message, microseconds since 1970; 0 without one
}

// payloadAt is where a log has the record of a payload.
type payloadAt struct {
	log *openLog
	off int64
}

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
		gone := Entry{Line: x.Line, Position: p, Seq: seq, Gone: archive.Erased}
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

func (s *state) line(id uuid.UUID, base int64) *line {
	ln := s.lines[id]
	if ln == nil {
		ln = &line{Counts: Counts{Line: id, Base: base}, lossBudget: &s.lossBudget}
		s.lines[id] = ln
	}
	return ln
}

// take applies a record, which continues the history.
func (s *state) take(r *record) error {
	switch r.Kind {
	case journal.Add, journal.Replace:
		was := int64(-1)
		if r.Kind == journal.Replace {
			was = r.Was
		}
		e := r.entry()
		if err := s.line(e.Line, s.baseOf(e.Line, e.Position)).put(&e, was, s.gaps); err != nil {
			return err
		}
		s.newestAt = max(s.newestAt, e.At)
	case journal.Trim:
		ln := s.lines[r.trim.Line]
		if ln == nil {
			return fmt.Errorf("%w: trim record: line %s not found", ErrDamaged, r.trim.Line)
		}
		if err := ln.trim(&r.trim); err != nil {
			return err
		}
	case journal.Erase:
		ln := s.lines[r.erasure.Line]
		if ln == nil {
			return fmt.Errorf("%w: erase record: line %s not found", ErrDamaged, r.erasure.Line)
		}
		if err := ln.erase(&r.erasure, r.Seq); err != nil {
			return err
		}
	case journal.Payload:
		s.payloads[r.payload] = payloadAt{r.log, r.Off}
	case journal.Metadata, journal.Change:
		err := s.metadata.take(r.Kind, r.Body)
		if err == nil {
			err = s.loseParents()
		}
		if err != nil {
			return r.damaged(err)
		}
	default: // the version of the log says that its records can be skipped
	}
	s.at = r.Position()
	return nil
}

// sealed forgets what the logs up to a place had, which a segment has now.
func (s *state) sealed(to uint64) {
	for id, ln := range s.lines {
		n := len(ln.recent)
		for n > 0 && ln.recent[n-1].Seq > to {
			n--
		}
		for i := range n {
			if e := &ln.recent[i]; e.Seq > to {
				ln.change(e) // the segment has an earlier version
			}
		}
		ln.recent, ln.byID = slices.Clone(ln.recent[n:]), nil
		ln.changed = maps.Clone(ln.changed)
		maps.DeleteFunc(ln.changed, func(_ int64, e Entry) bool { return e.Seq <= to })
		if ln.Count == 0 && len(ln.recent) == 0 && !s.metadata.has(id) {
			delete(s.lines, id)
		}
	}
	for sum, at := range s.payloads {
		if at.log.At().Seq <= to {
			delete(s.payloads, sum)
		}
	}
}

// save returns the state as a log begins with it.
func (s *state) save() (saved, error) {
	raw, err := s.metadata.copy()
	if err != nil {
		return saved{}, err
	}
	all := saved{Metadata: raw, Newest: s.newestAt}
	for _, ln := range s.lines {
		all.Lines = append(all.Lines, ln.Counts)
	}
	slices.SortFunc(all.Lines, func(a, b Counts) int { return slices.Compare(a.Line[:], b.Line[:]) })
	return all, nil
}

// restore makes the state what a log begins with, or what a segment ends with.
func (s *state) restore(b []byte, at journal.Position) error {
	all := saved{}
	if b != nil {
		var err error
		if all, err = parseSaved(b); err != nil {
			return err
		}
	}
	lines := make(map[uuid.UUID]*line, len(all.Lines))
	for _, c := range all.Lines {
		if c.Count > int64(at.Seq)+maxLost { // each has a record, or is lost
			return damaged("line %s has %d messages after %d records", c.Line, c.Count, at.Seq)
		}
		lines[c.Line] = &line{Counts: c, lossBudget: &s.lossBudget}
	}
	next := metadata{context: s.context}
	if len(all.Metadata) > 0 && string(all.Metadata) != "null" {
		m, err := ctxfolder.ParseMetadata(all.Metadata)
		if errors.Is(err, ctxfolder.ErrVersion) {
			return err
		}
		if err != nil {
			return fmt.Errorf("%w: state: %w", ErrDamaged, err)
		}
		next.set(m, all.Metadata)
	}
	s.lines, s.metadata, s.payloads = lines, next, map[blob.Sum]payloadAt{}
	s.at, s.newestAt = at, all.Newest
	return nil
}
