package index

import (
	"errors"

	"github.com/ctxdir/ctxdir/archive"
)

// eraseFromSegments rewrites the segments that hold messages which a log erases, or cuts off a line.
func (x *sealing) eraseFromSegments(opts archive.Options) error {
	if len(x.erased)+len(x.cut) == 0 {
		return nil
	}
	var all *segments
	if err := x.ix.view(func(s *state) {
		all = s.segments
		all.hold()
	}); err != nil {
		return err
	}
	defer all.release()
	for _, o := range all.all {
		err := o.need()
		var holds bool
		if err == nil {
			holds, err = x.holds(o)
		}
		if err != nil {
			return err
		}
		if !holds {
			continue
		}
		state, err := o.State()
		if err == nil {
			err = x.ix.rewrite(o, opts, archive.Rewrite{Fate: x.fate}, state)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *sealing) fate(r *archive.Row) archive.Fate {
	if end, ok := x.cut[r.Line]; ok && r.Position >= end {
		return archive.Remove
	}
	if x.erased[r.Line][r.Position] {
		return archive.Erase
	}
	return archive.Keep
}

// holds reports whether a segment has one of these messages.
func (x *sealing) holds(o *openSegment) (bool, error) {
	for line, end := range x.cut {
		if span, ok := o.spans[line]; ok && span.To > end {
			return true, nil
		}
	}
	for line, positions := range x.erased {
		span, ok := o.spans[line]
		if !ok {
			continue
		}
		for p := range positions {
			if p < span.From || p >= span.To {
				continue
			}
			row, err := o.Lookup(line, p)
			if err == nil && row.Gone != archive.Erased {
				return true, nil
			}
			if err != nil && !errors.Is(err, archive.ErrNotFound) {
				return false, err
			}
		}
	}
	return false, nil
}

// rewrite puts another segment in the place of one: the same records, but for what x lets go, and another state. It fails
// if a message is damaged that stays: a repair may find another copy of it.
//
// Crash order: the next edition is durable before the old one goes, and counts from then on. Who seals next removes an old
// edition that is left over.
func (ix *Index) rewrite(o *openSegment, opts archive.Options, x archive.Rewrite, state []byte) error {
	opts.Edition = o.name.Edition + 1
	w, err := archive.Create(ix.dir.Segments, ix.dir.Context, opts)
	if err != nil {
		return err
	}
	defer w.Abort()
	if err := x.Run(w, []*archive.Segment{o.Segment}); err != nil {
		return err
	}
	file, _, err := w.Commit(o.From(), o.To(), state)
	if err != nil {
		return err
	}
	return ix.replaceSegments([]*openSegment{o}, file)
}
