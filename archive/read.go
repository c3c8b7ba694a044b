package archive

import (
	"bytes"
	"fmt"
	"iter"

	"github.com/google/uuid"
)

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

// Lookup returns the row of a message. The error wraps [ErrNotFound] or [ErrDamaged].
func (s *Segment) Lookup(line uuid.UUID, position int64) (Row, error) {
	n, err := s.findPosition(line, position)
	if err != nil {
		return Row{}, s.wrap(err)
	}
	if n >= 0 {
		b, err := s.blockRows(n)
		if err != nil {
			return Row{}, s.wrap(err)
		}
		if i := b.search(line, position); i < len(b.rows) && b.rows[i].compare(line, position) == 0 {
			return b.rows[i], nil
		}
	}
	return Row{}, s.wrap(fmt.Errorf("%w: line %s, position %d", ErrNotFound, line, position))
}

// LookupID yields the rows of all messages with an id, in the order of the segment; two lines may each have one. For
// each damaged part that may hold such a row, it yields an error that wraps [ErrDamaged] and continues.
func (s *Segment) LookupID(id uuid.UUID) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if s.Len() == 0 {
			return
		}
		t := &s.tables[ids]
		// Equal ids may begin on the page before the first page that begins with them.
		page, err := s.lastPage(t, func(head, _ []byte) bool { return bytes.Compare(head, id[:]) < 0 })
		if err != nil {
			yield(Row{}, s.wrap(err))
			return
		}
		for ; page < t.pages(); page++ {
			head, entries, err := s.page(t, page)
			if err != nil {
				yield(Row{}, s.wrap(err))
				return
			}
			if bytes.Compare(head, id[:]) > 0 {
				return
			}
			for ; len(entries) > 0; entries = entries[t.shape.width:] {
				tag, number := parseIDEntry(entries)
				if tag != [2]byte(id[14:]) {
					continue
				}
				r, err := s.row(number)
				if err != nil && !yield(Row{}, s.wrap(err)) || err == nil && r.ID == id && !yield(r, nil) {
					return
				}
			}
		}
	}
}

// row returns a row by its number in the segment.
func (s *Segment) row(number int64) (Row, error) {
	if number >= s.Len() {
		return Row{}, damaged("the id table names row %d of %d", number, s.Len())
	}
	n, err := s.find(func(b *block) bool { return b.first <= number })
	if err != nil {
		return Row{}, err
	}
	if n < 0 {
		return Row{}, damaged("row %d is missing from the directory", number)
	}
	b, err := s.blockRows(n)
	if err != nil {
		return Row{}, err
	}
	i := number - b.first
	if i >= int64(len(b.rows)) {
		return Row{}, damaged("block %d lacks row %d", n, i)
	}
	return b.rows[i], nil
}
