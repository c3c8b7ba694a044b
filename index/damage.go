package index

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/google/uuid"
)

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

// Problems returns why the history is not whole, as far as it was read; nil if nothing is known.
func (ix *Index) Problems() (all []Problem, err error) {
	err = ix.view(func(s *state) {
		all = append(all, s.problems...)
		for _, o := range s.segments.all {
			if err := o.failure(); err != nil {
				all = append(all, Problem{File: o.name.File(), From: o.name.From, To: o.name.To, Detail: err.Error()})
			}
		}
	})
	return all, err
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

// lostAt is what is known of a position whose row is missing or damaged.
func lostAt(line uuid.UUID, position int64) Entry {
	return Entry{Line: line, Position: position, Gone: archive.Lost}
}

// baseOf returns where a line begins whose first known message has a position: those before it may be lost.
func (s *state) baseOf(line uuid.UUID, position int64) int64 {
	if s.gaps && s.metadata.m != nil {
		if l, ok := s.metadata.m.Line(line); ok {
			return min(l.Base, position)
		}
	}
	return position
}

// loseParents makes each line as long as the lines that begin on it prove: messages between are lost.
func (s *state) loseParents() error {
	if s.metadata.m == nil {
		return nil
	}
	for _, l := range s.metadata.m.Lines {
		if parent := s.lines[l.Parent]; l.Base == 0 || parent != nil && parent.End() >= l.Base {
			continue
		}
		parent, ok := s.metadata.m.Line(l.Parent)
		if !ok || parent.Base >= l.Base {
			continue
		}
		err := s.line(parent.ID, parent.Base).lose(l.Base)
		if s.lenient && errors.Is(err, ErrDamaged) {
			s.problem(Problem{Detail: err.Error()})
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
