package index

import (
	"errors"
	"fmt"
	"maps"
	"slices"

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

// Problem says that records of the history are missing or damaged. What they said is left out, and the rest counts: a
// position whose message is missing has an entry that is [archive.Lost], and the metadata is the newest that is whole.
type Problem struct {
	File     string // that is damaged; empty if it is missing
	From, To uint64 // the numbers of the records; To is 0 or less than From if it is not known
	Detail   string
}

func (p *Problem) String() string {
	return fmt.Sprintf("%s, records %d to %d: %s", p.File, p.From, p.To, p.Detail)
}

func (s *state) problem(p Problem) { s.problems = append(s.problems, p) }

func (s *state) line(id uuid.UUID, base int64) *line {
	ln := s.lines[id]
	if ln == nil {
		ln = &line{Counts: Counts{Line: id, Base: base}, lossBudget: &s.lossBudget}
		s.lines[id] = ln
	}
	return ln
}

func (s *state) newest() *openLog { return s.logs[len(s.logs)-1] }

// baseOf returns where a line begins whose first known message has a position: those before it may be lost.
func (s *state) baseOf(line uuid.UUID, position int64) int64 {
	if s.gaps && s.metadata.m != nil {
		if l, ok := s.metadata.m.Line(line); ok {
			return min(l.Base, position)
		}
	}
	return position
}

// loseMissing makes each line as long as its base and the lines that begin on it prove: messages between are lost.
func (s *state) loseMissing() error {
	if s.metadata.m == nil {
		return nil
	}
	for _, l := range s.metadata.m.Lines {
		if ln := s.lines[l.ID]; s.gaps && ln != nil && ln.Base > l.Base {
			if err := s.lenientOf(ln.loseBefore(l.Base)); err != nil {
				return err
			}
		}
		if parent := s.lines[l.Parent]; l.Base == 0 || parent != nil && parent.End() >= l.Base {
			continue
		}
		parent, ok := s.metadata.m.Line(l.Parent)
		if !ok || parent.Base >= l.Base {
			continue
		}
		if err := s.lenientOf(s.line(parent.ID, parent.Base).lose(l.Base)); err != nil {
			return err
		}
	}
	return nil
}

// lenientOf makes damage a problem, with lenient.
func (s *state) lenientOf(err error) error {
	if s.lenient && errors.Is(err, ErrDamaged) {
		s.problem(Problem{Detail: err.Error()})
		return nil
	}
	return err
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
			err = s.loseMissing()
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

// setSegments makes these the segments. The caller holds mu.
func (s *state) setSegments(all []*openSegment) {
	next := newSegments()
	for _, o := range all {
		o.hold()
	}
	next.all = all
	was := s.segments
	s.segments = next
	was.release()
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

// asLongAs makes lines as long as the state that a log begins with says. Of a damaged history, its writer knew from the files of
// messages that there were more than the records before the log tell.
func (s *state) asLongAs(o *openLog) error {
	if o.State() == nil {
		return nil
	}
	all, err := parseSaved(o.State())
	if err != nil {
		return nil //nolint:nilerr // the records before it say as much
	}
	for _, c := range all.Lines {
		ln := s.line(c.Line, c.Base)
		if ln.Base > c.Base {
			err = ln.loseBefore(c.Base)
		}
		if err == nil {
			err = ln.lose(c.End())
		}
		if err := s.lenientOf(err); err != nil {
			return err
		}
	}
	return nil
}

// jump goes on at a log, although records before it are missing: its state says how long the lines are.
func (s *state) jump(o *openLog) error {
	s.problem(Problem{From: s.at.Seq + 1, To: o.From().Seq, Detail: "the records before " + o.Name() + " are missing"})
	was := s.lines
	payloads, err := s.payloads, error(nil)
	if o.State() != nil {
		err = s.restore(o.State(), o.From())
	}
	if o.State() == nil || errors.Is(err, ErrDamaged) {
		s.gaps, s.at = true, o.From()
		return nil
	}
	if err != nil {
		return err
	}
	s.payloads = payloads
	for id, old := range was {
		ln := s.lines[id]
		if ln == nil {
			continue // it has no message any more
		}
		end := ln.End()
		if end < old.End() {
			old.recent = old.recent[:max(end-old.start(), 0)]
		}
		now := ln.Counts
		ln.Counts, ln.recent, ln.changed = old.Counts, old.recent, old.changed
		ln.Count = min(ln.Count, now.Count)
		if err := ln.lose(end); err != nil {
			return err
		}
		ln.Counts = now
	}
	return nil
}

// close ends the state's use of its files.
func (s *state) close() {
	s.segments.release()
	for _, o := range s.logs {
		o.release()
	}
}
