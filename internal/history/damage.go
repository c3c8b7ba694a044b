package history

import (
	"fmt"

	"github.com/ctxdir/ctxdir/internal/segment"
	"github.com/google/uuid"
)

// Problem says that records of the history are missing or damaged. What they said is left out, and the rest counts: a
// position whose message is missing has an entry that is [segment.Lost], and the metadata is the newest that is whole.
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
func (h *History) Problems() (all []Problem, err error) {
	err = h.view(func(s *state) {
		all = append(all, s.problems...)
		for _, o := range s.segments.all {
			if err := o.failure(); err != nil {
				all = append(all, Problem{File: o.name.File(), From: o.name.From, To: o.name.To, Detail: err.Error()})
			}
		}
	})
	return all, err
}

// maxLost bounds the messages that are missing at once: a damaged file could claim any number.
const maxLost = 1 << 20

// lose fills a line up to a position: the records of its messages are missing.
func (ln *line) lose(to int64) error {
	if to-ln.End() > maxLost {
		return damaged("line %s goes on %d positions later", ln.Line, to-ln.End())
	}
	for ln.End() < to {
		ln.recent = append(ln.recent, Entry{Line: ln.Line, Position: ln.End(), Gone: segment.Lost})
		ln.Count++
	}
	return nil
}

// jump goes on at a log, although records before it are missing: its state says how long the lines are.
func (s *state) jump(o *openLog) error {
	s.problem(Problem{From: s.at.Seq + 1, To: o.From().Seq, Detail: "the records before " + o.Name() + " are missing"})
	was := s.lines
	if o.State() == nil {
		s.gaps, s.at = true, o.From()
		return nil
	}
	payloads := s.payloads
	if err := s.restore(o.State(), o.From()); err != nil {
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
	return Entry{Line: line, Position: position, Gone: segment.Lost}
}
