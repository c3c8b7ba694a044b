package index

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/ctxdir/ctxdir/archive"
)

// current makes the segments those of the folder: another process may have sealed, merged or rewritten some. The caller
// holds the lock for sealing, so that none does now, and advance.
func (ix *Index) current() error {
	if err := ix.refresh(); err != nil {
		return err
	}
	names, _, err := listSegments(ix.dir.Segments, tipsOf(ix.state.logs))
	if err != nil {
		return err
	}
	all := ix.state.segments.all
	if len(names) == len(all) && len(ix.state.logs) > 0 && ix.state.logs[0].IsThere() {
		same := true
		for i := range names {
			same = same && names[i] == all[i].name
		}
		if same {
			return nil
		}
	}
	return ix.reload()
}

// held returns the segments of the folder, for one more user.
func (ix *Index) held() (all *segments, err error) {
	ix.advance.Lock()
	err = ix.current()
	ix.advance.Unlock()
	if err == nil {
		err = ix.view(func(s *state) {
			all = s.segments
			all.hold()
		})
	}
	return all, err
}

// otherSegments returns the names of the segments in the folder that are none of these.
func (ix *Index) otherSegments(all *segments) (names []archive.Name, err error) {
	for e, err := range ix.dir.Segments.ReadDir(".") {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		n, ok := archive.ParseName(e.Name())
		if ok && !slices.ContainsFunc(all.all, func(o *openSegment) bool { return o.name == n }) {
			names = append(names, n)
		}
	}
	return names, nil
}

// replaceSegments takes a segment in the place of those that it contains, and removes those.
func (ix *Index) replaceSegments(in []*openSegment, file string) error {
	now, err := openSegmentIn(ix.dir, file)
	if err != nil {
		return err
	}
	defer now.release()
	ix.advance.Lock()
	ix.mu.Lock()
	if s := ix.state; s != nil {
		if i := slices.Index(s.segments.all, in[0]); i >= 0 && i+len(in) <= len(s.segments.all) && s.segments.all[i+len(in)-1] == in[len(in)-1] {
			s.setSegments(slices.Concat(s.segments.all[:i], []*openSegment{now}, s.segments.all[i+len(in):]))
		} // else it was read anew meanwhile
	}
	ix.mu.Unlock()
	ix.advance.Unlock()
	for _, o := range in {
		if err := ix.removeSegment(o.name.File()); err != nil {
			return err
		}
	}
	return nil
}

func (ix *Index) removeSegment(file string) error {
	if err := ix.dir.Segments.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
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
