package history

import (
	"errors"

	"github.com/ctxdir/ctxdir/internal/segment"
)

// eraseFromSegments rewrites the segments that hold messages which a log erases, or cuts off a line.
func (x *sealing) eraseFromSegments(opts segment.Options) error {
	if len(x.erased)+len(x.cut) == 0 {
		return nil
	}
	var all *segments
	if err := x.h.view(func(s *state) {
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
		if err := x.h.rewrite(o, opts, func(r *segment.Row) segment.Fate {
			if end, ok := x.cut[r.Line]; ok && r.Position >= end {
				return segment.Remove
			}
			if x.erased[r.Line][r.Position] {
				return segment.Erase
			}
			return segment.Keep
		}); err != nil {
			return err
		}
	}
	return nil
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
			if err == nil && row.Gone != segment.Erased {
				return true, nil
			}
			if err != nil && !errors.Is(err, segment.ErrNotFound) {
				return false, err
			}
		}
	}
	return false, nil
}

// rewrite puts another segment in the place of one: the same records, but for the messages that fate lets go.
//
// Crash order: the next edition is durable before the old one goes, and counts from then on. Who seals next removes an old
// edition that is left over.
func (h *History) rewrite(o *openSegment, opts segment.Options, fate func(*segment.Row) segment.Fate) error {
	opts.Edition = o.name.Edition + 1
	w, err := segment.Create(h.dir.Segments, h.dir.Context, opts)
	if err != nil {
		return err
	}
	defer w.Abort()
	state, err := o.State()
	if err != nil {
		return err
	}
	x := segment.Rewrite{Fate: fate}
	if err := x.Run(w, []*segment.Segment{o.Segment}); err != nil {
		return err
	}
	file, _, err := w.Commit(o.From(), o.To(), state)
	if err != nil {
		return err
	}
	return h.replaceSegments([]*openSegment{o}, file)
}
