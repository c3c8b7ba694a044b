package history

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/ctxdir/ctxdir/internal/segment"
)

const (
	// together is how many neighbours of about the same size become one segment.
	together = 8
	// most bounds the envelopes of a segment, in bytes: what an erasure rewrites.
	most = 64 << 20
)

// level is the size of a segment, as a power of 8.
func level(bytes int64) (n int) {
	for bytes >= together*1<<10 {
		bytes /= together
		n++
	}
	return n
}

// Merge makes one segment of eight neighbours of a level, until there are none. It removes what a crash left over. The
// caller holds the lock for sealing.
//
// Crash order: the segment is durable under its name before those that it contains go. While both are there, the larger
// one counts.
func (h *History) Merge(o segment.Options) error {
	for {
		all, err := h.held()
		if err != nil {
			return err
		}
		var from, n int
		for _, o := range all.all {
			err = errors.Join(err, o.need())
		}
		if err == nil {
			from, n = due(all.all)
		}
		if n > 0 {
			err = h.merge(all.all[from:from+n], o)
		}
		all.release()
		if err != nil || n == 0 {
			return errors.Join(err, h.clear())
		}
	}
}

// held returns the segments of the folder, for one more user.
func (h *History) held() (all *segments, err error) {
	h.advance.Lock()
	err = h.current()
	h.advance.Unlock()
	if err == nil {
		err = h.view(func(s *state) {
			all = s.segments
			all.hold()
		})
	}
	return all, err
}

// due returns the oldest neighbours that are to become one.
func due(all []*openSegment) (from, n int) {
	for i := 0; i+together <= len(all); i++ {
		sum := all[i].Bytes()
		same := true
		for _, o := range all[i+1 : i+together] {
			sum += o.Bytes()
			same = same && level(o.Bytes()) <= level(all[i].Bytes())
		}
		if same && sum <= most {
			return i, together
		}
	}
	return 0, 0
}

func (h *History) merge(in []*openSegment, o segment.Options) error {
	w, err := segment.Create(h.dir.Segments, h.dir.Context, o)
	if err != nil {
		return err
	}
	defer w.Abort()
	last := in[len(in)-1]
	state, err := last.State()
	if err != nil {
		return err
	}
	plain := make([]*segment.Segment, len(in))
	for i := range in {
		plain[i] = in[i].Segment
	}
	x := segment.Rewrite{}
	if err := x.Run(w, plain); err != nil {
		return err
	}
	file, _, err := w.Commit(in[0].From(), last.To(), state)
	if err != nil {
		return err
	}
	return h.replaceSegments(in, file)
}

// replaceSegments takes a segment in the place of those that it contains, and removes those.
func (h *History) replaceSegments(in []*openSegment, file string) error {
	now, err := openSegmentIn(h.dir, file)
	if err != nil {
		return err
	}
	defer now.release()
	h.advance.Lock()
	h.mu.Lock()
	if s := h.state; s != nil {
		if i := slices.Index(s.segments.all, in[0]); i >= 0 && i+len(in) <= len(s.segments.all) && s.segments.all[i+len(in)-1] == in[len(in)-1] {
			s.setSegments(slices.Concat(s.segments.all[:i], []*openSegment{now}, s.segments.all[i+len(in):]))
		} // else it was read anew meanwhile
	}
	h.mu.Unlock()
	h.advance.Unlock()
	for _, o := range in {
		if err := h.removeSegment(o.name.File()); err != nil {
			return err
		}
	}
	return nil
}

func (h *History) removeSegment(file string) error {
	if err := h.dir.Segments.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// clear removes segments, and logs, that others contain.
func (h *History) clear() error {
	names, _, err := listSegments(h.dir.Segments)
	if err != nil {
		return err
	}
	var rest []string
	for e, err := range h.dir.Segments.ReadDir(".") {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if n, ok := segment.ParseName(e.Name()); ok && !slices.Contains(names, n) && contained(names, n) {
			rest = append(rest, e.Name())
		}
	}
	for _, file := range rest {
		if err := h.removeSegment(file); err != nil {
			return err
		}
	}
	return nil
}

// contained reports whether a segment ends, and begins, where others do: an older edition, or a part. What does not may
// be of another history, and stays.
func contained(names []segment.Name, n segment.Name) bool {
	return slices.ContainsFunc(names, func(is segment.Name) bool {
		return is.From <= n.From && n.To < is.To || is.From == n.From && is.To == n.To && is.Chain == n.Chain && is.Edition > n.Edition
	})
}
