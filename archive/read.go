package archive

import (
	"errors"
	"iter"

	"github.com/google/uuid"
)

func isDamage(err error) bool { return errors.Is(err, ErrDamaged) }

func isVersion(err error) bool { return errors.Is(err, ErrVersion) }

// Rows yields the segment's rows of the positions [from, to) of a line, in order. For each block with damaged rows that
// its messages cannot replace, it yields an error that wraps [ErrDamaged] and continues.
func (s *Segment) Rows(line uuid.UUID, from, to int64) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if from >= to {
			return
		}
		n, err := s.findPosition(line, from)
		if err != nil {
			yield(Row{}, s.wrap(err))
			return
		}
		for n = max(n, 0); n < s.tables[directory].count; n++ {
			e, err := s.entry(n)
			if err != nil {
				yield(Row{}, s.wrap(err))
				return
			}
			if first := (Row{Line: e.line, Position: e.position}); first.compare(line, to) >= 0 {
				return
			}
			b, err := s.blockRows(n)
			if err != nil {
				if !yield(Row{}, s.wrap(err)) {
					return
				}
				continue
			}
			for i := b.search(line, from); i < len(b.rows) && b.rows[i].compare(line, to) < 0; i++ {
				if !yield(b.rows[i], nil) {
					return
				}
			}
		}
	}
}
