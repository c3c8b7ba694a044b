package archive

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"sort"

	"github.com/google/uuid"
)

// Run is an unbroken run of rows of one line: positions [From, To).
type Run struct {
	Line     uuid.UUID
	From, To int64
}

func isDamage(err error) bool { return errors.Is(err, ErrDamaged) }

// Rows yields the pack's rows of the positions [from, to) of a line, in order. For each segment with damaged rows that
// its messages cannot replace, it yields an error that wraps [ErrDamaged] and continues.
func (p *Pack) Rows(line uuid.UUID, from, to int64) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for s, err := range p.segments(line, from, to) {
			if err != nil {
				if !yield(Row{}, p.wrap(err)) {
					return
				}
				continue
			}
			for i := s.search(line, from); i < len(s.rows) && s.rows[i].compare(line, to) < 0; i++ {
				if !yield(s.rows[i], nil) {
					return
				}
			}
		}
	}
}

// segments yields the segments that may have rows of the range.
func (p *Pack) segments(line uuid.UUID, from, to int64) iter.Seq2[*segmentRows, error] {
	return func(yield func(*segmentRows, error) bool) {
		if from >= to {
			return
		}
		n, err := p.findPosition(line, from)
		if err != nil {
			yield(nil, err)
			return
		}
		for n = max(n, 0); n < p.foot.segments; n++ {
			e, err := p.entry(n)
			if err != nil {
				yield(nil, err)
				return
			}
			if first := (Row{Line: e.line, Position: e.position}); first.compare(line, to) >= 0 {
				return
			}
			if !yield(p.segmentRows(n)) {
				return
			}
		}
	}
}

// Runs yields the runs of the pack, in order. It reads the directory, and rows only of segments that are not a single
// run. An error wraps [ErrDamaged] and stands for a segment with unreadable rows; the other segments follow.
func (p *Pack) Runs() iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		var run Run
		add := func(line uuid.UUID, from, to int64) bool {
			if run.Line == line && run.To == from && run.To > run.From {
				run.To = to
				return true
			}
			before := run
			run = Run{line, from, to}
			return before.To == before.From || yield(before, nil)
		}
		for n := range p.foot.segments {
			s, count, err := p.segment(n)
			if err == nil && n+1 < p.foot.segments {
				next, err := p.entry(n + 1)
				// Rows at two positions of one line that are count apart leave room for no other rows.
				if err == nil && next.line == s.line && next.position-s.position == count {
					if !add(s.line, s.position, next.position) {
						return
					}
					continue
				}
			}
			var r *segmentRows
			if err == nil {
				r, err = p.segmentRows(n)
			}
			if err != nil {
				if !yield(Run{}, p.wrap(err)) {
					return
				}
				continue
			}
			for _, row := range r.rows {
				if !add(row.Line, row.Position, row.Position+1) {
					return
				}
			}
		}
		if run.To > run.From {
			yield(run, nil)
		}
	}
}

// Payload returns a verified payload. The error wraps [ErrNotFound] or [ErrDamaged]. The caller owns the slice.
func (p *Pack) Payload(sum Sum) ([]byte, error) {
	e, err := p.payloadEntry(sum)
	if err != nil {
		return nil, p.wrap(err)
	}
	g, ok := p.groups.get(e.offset)
	if !ok {
		if g, err = p.group(&e); err != nil {
			return nil, p.wrap(err)
		}
		p.groups.put(e.offset, g)
	}
	b, err := g.payload(e.number, sum)
	if err != nil {
		return nil, p.wrap(err)
	}
	return append(make([]byte, 0, len(b)), b...), nil
}

// HasPayload reports whether the pack's table names a payload. It decodes nothing.
func (p *Pack) HasPayload(sum Sum) (bool, error) {
	switch _, err := p.payloadEntry(sum); {
	case err == nil:
		return true, nil
	case errors.Is(err, ErrNotFound):
		return false, nil
	default:
		return false, p.wrap(err)
	}
}

func (p *Pack) payloadEntry(sum Sum) (e payload, err error) {
	missing := func() (payload, error) { return payload{}, fmt.Errorf("%w: payload %s", ErrNotFound, sum) }
	if p.foot.payloads == 0 {
		return missing()
	}
	behind := func(b []byte) bool { s := parsePayload(b).sum; return bytes.Compare(s[:], sum[:]) > 0 }
	page, err := p.lastPage(&p.payloads, func(_, entries []byte) bool { return !behind(entries) })
	if err != nil {
		return e, err
	}
	_, entries, err := p.page(&p.payloads, page)
	if err != nil {
		return e, err
	}
	i := sort.Search(len(entries)/payloadWidth, func(i int) bool { return behind(entries[i*payloadWidth:]) })
	if i == 0 {
		return missing()
	}
	e = parsePayload(entries[(i-1)*payloadWidth:])
	if e.sum != sum {
		return missing()
	}
	if !e.sane(p.foot.tables) {
		return e, damaged("payload table: %s", sum)
	}
	return e, nil
}

// group reads a group. If its content is damaged, its names come with the error.
func (p *Pack) group(e *payload) (*group, error) {
	b := make([]byte, e.length) // at most maxGroup, and within the file
	if err := readAt(p.file, b, e.offset); err != nil {
		return nil, err
	}
	g, err := parseGroup(b)
	return &g, err
}

// Payloads yields the names of the payloads, sorted. An error wraps [ErrDamaged] and ends the iteration.
func (p *Pack) Payloads() iter.Seq2[Sum, error] {
	return func(yield func(Sum, error) bool) {
		for n := range p.payloads.pages() {
			_, entries, err := p.page(&p.payloads, n)
			if err != nil {
				yield(Sum{}, p.wrap(err))
				return
			}
			for ; len(entries) > 0; entries = entries[payloadWidth:] {
				if !yield(parsePayload(entries).sum, nil) {
					return
				}
			}
		}
	}
}
