package segment

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"sort"

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

// Payload returns a verified payload. The error wraps [ErrNotFound] or [ErrDamaged]. The caller owns the slice.
func (s *Segment) Payload(sum Sum) ([]byte, error) {
	e, err := s.payloadEntry(sum)
	if err != nil {
		return nil, s.wrap(err)
	}
	g, ok := s.groups.get(e.offset)
	if !ok {
		if g, err = s.group(&e); err != nil {
			return nil, s.wrap(err)
		}
		s.groups.put(e.offset, g)
	}
	b, err := g.payload(e.number, sum)
	if err != nil {
		return nil, s.wrap(err)
	}
	return append(make([]byte, 0, len(b)), b...), nil
}

// HasPayload reports whether the segment's table names a payload. It decodes nothing.
func (s *Segment) HasPayload(sum Sum) (bool, error) {
	switch _, err := s.payloadEntry(sum); {
	case err == nil:
		return true, nil
	case errors.Is(err, ErrNotFound):
		return false, nil
	default:
		return false, s.wrap(err)
	}
}

func (s *Segment) payloadEntry(sum Sum) (e payload, err error) {
	t := &s.tables[payloads]
	missing := func() (payload, error) { return payload{}, fmt.Errorf("%w: payload %s", ErrNotFound, sum) }
	if t.count == 0 {
		return missing()
	}
	behind := func(b []byte) bool { s := parsePayload(b).sum; return bytes.Compare(s[:], sum[:]) > 0 }
	page, err := s.lastPage(t, func(_, entries []byte) bool { return !behind(entries) })
	if err != nil {
		return e, err
	}
	_, entries, err := s.page(t, page)
	if err != nil {
		return e, err
	}
	width := int(t.shape.width)
	i := sort.Search(len(entries)/width, func(i int) bool { return behind(entries[i*width:]) })
	if i == 0 {
		return missing()
	}
	e = parsePayload(entries[(i-1)*width:])
	if e.sum != sum {
		return missing()
	}
	if !e.sane(s.foot.tables) {
		return e, damaged("payload table: %s", sum)
	}
	return e, nil
}

// group reads a group. If its content is damaged, its names come with the error.
func (s *Segment) group(e *payload) (*group, error) {
	b := make([]byte, e.length) // at most maxGroup, and within the file
	if err := readAt(s.file, b, e.offset); err != nil {
		return nil, err
	}
	g, err := parseGroup(b, e.offset)
	return &g, err
}

// Payloads yields the names of the payloads, sorted. An error wraps [ErrDamaged] and ends the iteration.
func (s *Segment) Payloads() iter.Seq2[Sum, error] {
	return func(yield func(Sum, error) bool) {
		t := &s.tables[payloads]
		for n := range t.pages() {
			_, entries, err := s.page(t, n)
			if err != nil {
				yield(Sum{}, s.wrap(err))
				return
			}
			for ; len(entries) > 0; entries = entries[t.shape.width:] {
				if !yield(parsePayload(entries).sum, nil) {
					return
				}
			}
		}
	}
}
