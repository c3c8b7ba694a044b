package follow

import (
	"path/filepath"
	"strings"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/watch"
	"github.com/google/uuid"
)

// takeHints makes the contexts due that the hints concern.
func (w *Watcher) takeHints() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.takeBatch(w.hints.Take())
}

// takeBatch takes hints. Some may be lost; the others still name files, and only a hint shows an edit by hand.
func (w *Watcher) takeBatch(t watch.Batch) {
	if t.All {
		w.lookAtAll()
	}
	for dir := range t.Folders {
		w.takeHint(dir, t.Cut)
	}
	for path := range t.Files {
		w.takeFileHint(filepath.Dir(path), filepath.Base(path))
	}
}

// takeHint takes the hint that something happened in a folder. cut says that some of the files are unknown.
func (w *Watcher) takeHint(dir string, cut bool) {
	if dir == w.root {
		if cut {
			w.lookForAll()
		}
		return
	}
	f, below := w.follower(dir)
	if f == nil {
		return
	}
	w.look(f)
	if cut && below == ctxfolder.Messages {
		w.watchBranches(f.id)
	}
}

// takeFileHint takes the hint that something happened to a file or folder in dir.
func (w *Watcher) takeFileHint(dir, name string) {
	if dir == w.root {
		if id, ok := ctxfolder.ParseID(name); !ok {
			return
		} else if f := w.followers[id]; f != nil {
			w.look(f) // it may be gone
		} else {
			w.lookFor(id)
		}
		return
	}
	f, below := w.follower(dir)
	if f == nil {
		return
	}
	if folder, ok := strings.CutPrefix(below, ctxfolder.Messages+string(filepath.Separator)); ok {
		if len(f.files) < maxReportedEdits {
			f.files[folder+"/"+name] = true
		}
	}
}

// follower returns the follower of the context that a folder belongs to, and the folder's path in the context.
func (w *Watcher) follower(dir string) (f *follower, below string) {
	rel, ok := strings.CutPrefix(dir, w.root+string(filepath.Separator))
	if !ok {
		return nil, ""
	}
	name, below, _ := strings.Cut(rel, string(filepath.Separator))
	id, ok := ctxfolder.ParseID(name)
	if !ok {
		return nil, ""
	}
	return w.followers[id], below
}

// lookFor begins to follow a context if it exists and is not followed yet.
func (w *Watcher) lookFor(id uuid.UUID) {
	if w.followers[id] != nil || w.only != uuid.Nil && w.only != id {
		return
	}
	if there, err := vfs.IsFolder(w.s.FS, id.String()); err != nil || !there {
		return
	}
	if legacy, err := engine.IsSplit(w.s.FS, id.String()); err != nil || legacy {
		return
	}
	f := w.add(id)
	f.arrived = true
	if left := w.removed[id]; left != nil {
		f.at, f.queue = left.at, left.queue
		delete(w.removed, id)
	}
	w.look(f)
}

// lookAtAll makes every context due, and looks for new ones.
func (w *Watcher) lookAtAll() {
	w.due = w.due[:0]
	for _, f := range w.followers {
		w.due = append(w.due, f)
		w.watchBranches(f.id)
	}
	w.lookForAll()
}

func (w *Watcher) lookForAll() {
	if w.only != uuid.Nil {
		w.lookFor(w.only)
		return
	}
	for id, err := range w.s.IDs() {
		if err == nil {
			w.lookFor(id)
		}
	}
}

// sweep makes those contexts due that seem to have changed without a hint.
func (w *Watcher) sweep() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	for _, f := range w.followers {
		if !f.isUnchanged() {
			w.look(f)
		}
	}
	w.lookForAll()
}
