package erase

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// clear removes or rewrites traces, durably. The next seal removes those of the history.
//
// Crash order: a file is there with the message, or gone, or rewritten whole.
func (e *eraser) clear(x *target, traces []trace) error {
	for _, t := range traces {
		e.report(t.id, x.path(t.path), t.bytes, t.kind)
		if t.history {
			continue
		}
		if err := e.clearTrace(x.c.Dir.FS, t); err != nil {
			return err
		}
	}
	return nil
}

func (e *eraser) clearTrace(fsys vfs.FS, t trace) error {
	switch {
	case t.whole:
		return clearOne(fsys, t.path)
	case isSegment(t.path):
		return e.rewriteSegment(fsys, t.path)
	}
	return e.rewrite(fsys, t)
}

// clearOne removes a file, durably, and its trash item if nothing else is in it.
func clearOne(fsys vfs.FS, p string) error {
	dir := path.Dir(p)
	if err := fsys.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := fsys.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if path.Dir(dir) == ctxfolder.Trash {
		return sweepItem(fsys, dir)
	}
	return nil
}

// sweepItem removes a trash item that holds only its note.
func sweepItem(fsys vfs.FS, item string) error {
	for entry, err := range fsys.ReadDir(item) {
		if err != nil || entry.Name() != ctxfolder.TrashNote {
			return err
		}
	}
	if err := vfs.RemoveAll(fsys, item); err != nil {
		return err
	}
	return fsys.SyncDir(ctxfolder.Trash)
}

// rewrite replaces a file in the trash by one without the lines that hold the messages.
func (e *eraser) rewrite(fsys vfs.FS, t trace) error {
	p, dir := t.path, path.Dir(t.path)
	tmp := dir + "/" + vfs.TemporaryName(path.Base(p))
	f, err := engine.CreateFile(fsys, tmp)
	if err != nil {
		return err
	}
	err = eachLine(fsys, p, func(line []byte) error {
		if _, held := e.trashedLine(line); held {
			return nil
		}
		_, err := f.Write(line)
		return err
	})
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = fsys.Rename(tmp, p)
	}
	if err != nil {
		_ = fsys.Remove(tmp)
		return fmt.Errorf("rewriting %s: %w", p, err)
	}
	return fsys.SyncDir(dir)
}

// eraseTrash erases the messages from a context's trash. The caller holds the context's locks.
func (e *eraser) eraseTrash(x *target) error {
	traces, err := e.trashTraces(x.c.Dir.FS, ctxfolder.Trash)
	if err != nil {
		return err
	}
	return e.clear(x, traces)
}

// eraseLooseTrash erases the messages from those items of the store's trash that are parts of the context, not whole
// copies.
func (e *eraser) eraseLooseTrash() error {
	var items []string
	for entry, err := range e.s.FS.ReadDir(ctxfolder.Trash) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			continue // a link may lead anywhere
		}
		item := ctxfolder.Trash + "/" + entry.Name()
		switch whole, err := vfs.Exists(e.s.FS, item+"/"+e.id.String()); {
		case err != nil:
			return err
		case whole:
			continue
		}
		b, err := vfs.ReadFile(e.s.FS, item+"/"+ctxfolder.TrashNote, 1<<20)
		if vfs.IsFault(err) {
			return err // it may have come from the context
		}
		var note ctxfolder.TrashItem
		if err == nil && json.Unmarshal(b, &note) == nil && note.Context == e.id {
			items = append(items, item)
		}
	}
	for _, item := range items {
		traces, err := e.trashTraces(e.s.FS, item)
		if err != nil {
			return err
		}
		for _, t := range traces {
			e.report(t.id, t.path, t.bytes, t.kind)
			if e.o.DryRun {
				continue
			}
			if err := e.clearTrace(e.s.FS, t); err != nil {
				return err
			}
		}
	}
	return nil
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
