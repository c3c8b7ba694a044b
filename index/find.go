package index

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/google/uuid"
)

// lineOf returns a line; ok is false if the history never had it.
func (ix *Index) lineOf(id uuid.UUID) (v lineView, ok bool, err error) {
	err = ix.view(func(s *state) {
		ln := s.lines[id]
		if ok = ln != nil; ok {
			s.segments.hold()
			v = lineView{ln.Counts, ln.recent, ln.changed, s.segments}
		}
	})
	return v, ok, err
}

// anew repeats a read whose segment another one took the place of.
func (ix *Index) anew(read func() error) (err error) {
	for range looks {
		if err = read(); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := ix.Reload(); err != nil {
			return err
		}
	}
	return err
}

// Entry returns the entry at a position, which a line has itself. ok is false if it has no such position.
func (ix *Index) Entry(line uuid.UUID, position int64) (e Entry, ok bool, err error) {
	err = ix.anew(func() (err error) {
		e, ok, err = ix.entry(line, position)
		return err
	})
	return e, ok, err
}

func (ix *Index) entry(line uuid.UUID, position int64) (e Entry, ok bool, err error) {
	v, ok, err := ix.lineOf(line)
	if err != nil || !ok {
		return e, false, err
	}
	defer v.release()
	if position < v.Base || position >= v.End() {
		return e, false, nil
	}
	e, err = v.at(position)
	return e, err == nil, err
}

// Entries returns the entries of the positions from … to that a line has itself, in order.
func (ix *Index) Entries(line uuid.UUID, from, to int64) (all []Entry, err error) {
	err = ix.anew(func() (err error) {
		all, err = ix.entries(line, from, to)
		return err
	})
	return all, err
}

func (ix *Index) entries(line uuid.UUID, from, to int64) ([]Entry, error) {
	v, ok, err := ix.lineOf(line)
	if err != nil || !ok {
		return nil, err
	}
	defer v.release()
	return v.entries(from, to)
}

// Find returns the newest message with an id of a line, below a position. One that was erased counts only if there is no
// other: its id can be appended again.
func (ix *Index) Find(line, id uuid.UUID, end int64) (e Entry, ok bool, err error) {
	err = ix.anew(func() (err error) {
		e, ok, err = ix.find(line, id, end)
		return err
	})
	return e, ok, err
}

func (ix *Index) find(line, id uuid.UUID, end int64) (e Entry, ok bool, err error) {
	var position int64
	err = ix.view(func(s *state) {
		if ln := s.lines[line]; ln != nil && !ln.IsAbove(id) {
			// byID is made under the lock of readers: see line.find.
			position, ok = ln.findIn(id)
		}
	})
	if err != nil {
		return e, false, err
	}
	found := false // an erased one
	take := func(at Entry) bool {
		if at.ID == id && at.Position < end {
			e, found = at, true
		}
		return found && !e.IsErased()
	}
	if ok {
		if at, there, err := ix.Entry(line, position); err != nil || there && take(at) || position >= end {
			return e, found, err
		}
	}
	v, ok, err := ix.lineOf(line)
	if err != nil || !ok {
		return e, false, err
	}
	defer v.release()
	if v.IsAbove(id) {
		return e, false, nil
	}
	for _, c := range v.changed {
		if take(c) {
			return e, true, nil
		}
	}
	for i := len(v.segments.all) - 1; i >= 0; i-- {
		o := v.segments.all[i]
		if err := o.need(); errors.Is(err, ErrDamaged) {
			continue
		} else if err != nil {
			return e, false, err
		}
		span, ok := o.spans[line]
		if !ok || bytes.Compare(id[:], span.Least[:]) < 0 || bytes.Compare(id[:], span.Greatest[:]) > 0 {
			continue
		}
		for row, rerr := range o.LookupID(id) {
			if rerr != nil {
				err = errors.Join(err, fmt.Errorf("%w: %w", ErrDamaged, rerr))
				continue
			}
			if row.Line != line || row.Position >= min(end, v.End()) || row.Position < v.Base {
				continue
			}
			// Its position may have another message by now.
			if at, aerr := v.at(row.Position); aerr == nil && take(at) {
				return e, true, nil
			}
		}
	}
	return e, found && err == nil, err
}
