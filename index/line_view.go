package index

import (
	"errors"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/google/uuid"
)

// pageEntries is how many entries are read at once.
const pageEntries = 1024

// lineView is a line as a reader has it: nothing of it changes. The reader releases it.
type lineView struct {
	Counts
	recent   []Entry
	changed  map[int64]Entry
	segments *segments
}

func (v *lineView) release() { v.segments.release() }

// at returns the entry at one of the line's own positions.
func (v *lineView) at(position int64) (Entry, error) {
	if i := position - (v.End() - int64(len(v.recent))); i >= 0 {
		return v.recent[i], nil
	}
	e, changed := v.changed[position]
	if changed && e.ID != uuid.Nil {
		return e, nil
	}
	row, err := v.rowAt(position)
	if changed && err == nil {
		row.Seq, row.Gone, row.Size, row.Sum, row.Payloads = e.Seq, e.Gone, 0, 0, 0
	}
	return row, err
}

// rowAt returns what the newest segment with a position says of it.
func (v *lineView) rowAt(position int64) (Entry, error) {
	for i := len(v.segments.all) - 1; i >= 0; i-- {
		o := v.segments.all[i]
		if err := o.need(); errors.Is(err, ErrDamaged) {
			continue
		} else if err != nil {
			return Entry{}, err
		}
		if span, ok := o.spans[v.Line]; !ok || position < span.From || position >= span.To {
			continue
		}
		row, err := o.Lookup(v.Line, position)
		if errors.Is(err, archive.ErrNotFound) {
			continue
		}
		if errors.Is(err, ErrDamaged) {
			continue // an older segment may have another version
		}
		if err != nil {
			return Entry{}, err
		}
		return entryOfRow(&row, o), nil
	}
	return lostAt(v.Line, position), nil
}

func (v *lineView) entries(from, to int64) (all []Entry, err error) {
	from, to = max(from, v.Base), min(to, v.End())
	if from >= to {
		return nil, nil
	}
	start := v.End() - int64(len(v.recent))
	all = make([]Entry, 0, to-from)
	if from < start {
		if all, err = v.sealed(all, from, min(to, start)); err != nil {
			return nil, err
		}
	}
	if to > start {
		all = append(all, v.recent[max(from-start, 0):to-start]...)
	}
	return all, nil
}

// sealed adds the entries of positions of segments: of each, the one of the newest segment that has it.
func (v *lineView) sealed(all []Entry, from, to int64) ([]Entry, error) {
	n := len(all)
	all = append(all, make([]Entry, to-from)...)
	found := all[n:]
	left := to - from
	for i := len(v.segments.all) - 1; i >= 0 && left > 0; i-- {
		o := v.segments.all[i]
		if err := o.need(); errors.Is(err, ErrDamaged) {
			continue
		} else if err != nil {
			return nil, err
		}
		span, ok := o.spans[v.Line]
		if !ok || span.To <= from || span.From >= to {
			continue
		}
		for row, err := range o.Rows(v.Line, from, to) {
			if errors.Is(err, ErrDamaged) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if e := &found[row.Position-from]; e.seg == nil {
				*e = entryOfRow(&row, o)
				left--
			}
		}
	}
	for i := range found {
		p := from + int64(i)
		if found[i].seg == nil {
			found[i] = lostAt(v.Line, p)
		}
		if e, ok := v.changed[p]; ok {
			if e.ID == uuid.Nil {
				e.ID, e.At = found[i].ID, found[i].At
			}
			found[i] = e
		}
	}
	return all, nil
}
