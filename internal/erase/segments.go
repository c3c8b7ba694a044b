package erase

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
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

// rewriteSegment replaces a segment by one without the messages.
//
// Crash order: the new segment is durable before it takes the name.
func (e *eraser) rewriteSegment(fsys vfs.FS, p string) error {
	err := withSegment(fsys, p, func(folder vfs.FS, s *archive.Segment) error {
		o := archive.Options{With: archive.NewCompressor(archive.Fast, 1), Edition: math.MaxUint32} // no other has this name
		w, err := archive.Create(folder, s.Context(), o)
		if err != nil {
			return err
		}
		defer w.Abort()
		lost := func(*archive.Row) []byte { return nil } // a damaged message; the others stay
		x := archive.Rewrite{Fate: e.fate, Rescue: lost, Other: func(o *archive.Other) bool { return !e.hasTitle(o.Body) }}
		if err := x.Run(w, []*archive.Segment{s}); err != nil {
			return err
		}
		state, err := s.State()
		if err != nil {
			return err
		}
		if e.hasTitle(state) {
			state = []byte("{}")
		}
		name, _, err := w.Commit(s.From(), s.To(), state)
		if err == nil {
			err = folder.Rename(name, path.Base(p))
		}
		if err == nil {
			err = folder.SyncDir(".")
		}
		return err
	})
	if errors.Is(err, archive.ErrDamaged) {
		return clearOne(fsys, p)
	}
	if err != nil {
		return fmt.Errorf("rewriting %s: %w", p, err)
	}
	return nil
}

func (e *eraser) fate(r *archive.Row) archive.Fate {
	if e.ids[r.ID] {
		return archive.Erase
	}
	return archive.Keep
}
