package erase

import (
	"errors"
	"io/fs"
	"path"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// A repair moves segments to the trash that are damaged, or of another history. An erase rewrites those that have one of
// the messages, or may have it in a part that cannot be read. That part then goes, too.

func isSegment(p string) bool {
	_, ok := archive.ParseName(path.Base(p))
	return ok
}

// withSegment calls f with a segment, which may be damaged, and its folder.
func withSegment(fsys vfs.FS, p string, f func(folder vfs.FS, s *archive.Segment) error) error {
	folder, err := fsys.Sub(path.Dir(p))
	if err != nil {
		return err
	}
	defer folder.Close()
	s, err := archive.Open(folder, path.Base(p))
	if errors.Is(err, archive.ErrDamaged) {
		s, err = archive.Salvage(folder, path.Base(p))
	}
	if err != nil {
		return err
	}
	defer s.Close()
	return f(folder, s)
}

// segmentTrace reports whether a segment may have one of the messages, or a title. One of which nothing can be read goes.
func (e *eraser) segmentTrace(fsys vfs.FS, p string) (t trace, ok bool, err error) {
	t.path, t.kind = p, "segment in the trash"
	err = withSegment(fsys, p, func(_ vfs.FS, s *archive.Segment) error {
		for range s.Verify() {
			ok = true
			break
		}
		for id := range e.ids {
			for row, err := range s.LookupID(id) {
				if err != nil || row.Gone != archive.Here {
					continue
				}
				t.id, ok = id, true
				t.bytes += row.Size
				if b, err := s.ReadMessage(row); err == nil {
					e.refer(b)
				}
			}
		}
		state, _ := s.State()
		ok = ok || e.hasTitle(state)
		for o, err := range s.Others(0) {
			if err != nil {
				return err
			}
			ok = ok || e.hasTitle(o.Body)
		}
		return nil
	})
	switch {
	case errors.Is(err, archive.ErrDamaged):
		t.whole, ok, err = true, true, nil
	case errors.Is(err, archive.ErrVersion), errors.Is(err, fs.ErrNotExist):
		ok, err = false, nil
	}
	return t, ok, err
}
