package engine

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// DerivedFolder holds caches of what messages say, such as the search index. It can be removed at any time.
const DerivedFolder = "derived"

// erasureFile is in [DerivedFolder] while messages are removed for good. If the process that made it is gone, files
// of the folder may repeat what the store has lost.
const erasureFile = DerivedFolder + "/erasing"

func (d *derived) lose(contexts []uuid.UUID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lost = append(d.lost, contexts...)
}

// losses returns the lost contexts and others, each once, and begins again.
func (d *derived) losses(others []uuid.UUID) []uuid.UUID {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := slices.Concat(d.lost, others)
	d.lost = nil
	all = slices.DeleteFunc(all, func(id uuid.UUID) bool { return id == uuid.Nil }) // what belongs to the store alone
	slices.SortFunc(all, compareIDs)
	return slices.Compact(all)
}

// OnForget sets the function that removes text from the files of a view in [DerivedFolder]: those named like the view,
// up to the first dot. It is called when the store has lost messages of contexts for good, and before that is
// acknowledged. nil leaves the removal to the store, which removes the files.
func (s *Store) OnForget(view string, f Forget) {
	s.derived.mu.Lock()
	defer s.derived.mu.Unlock()
	if s.derived.views == nil {
		s.derived.views = map[string]Forget{}
	}
	s.derived.views[view] = f
}

func (d *derived) view(name string) Forget {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.views[name]
}

// ForgetDerived removes the text of messages that contexts have lost from [DerivedFolder]. The files of a view without a
// function that can do so, or whose function fails, go.
func (s *Store) ForgetDerived(ctx context.Context, contexts ...uuid.UUID) error {
	views := map[string][]string{}
	for e, err := range s.FS.ReadDir(DerivedFolder) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return s.removeDerived()
		}
		if name := e.Name(); name != path.Base(erasureFile) {
			view, _, _ := strings.Cut(name, ".")
			views[view] = append(views[view], name)
		}
	}
	kept, removed := false, false
	for _, view := range slices.Sorted(maps.Keys(views)) {
		if f := s.derived.view(view); f != nil && f(ctx, contexts) == nil {
			kept = true
			continue
		}
		removed = true
		for _, name := range views[view] {
			if err := s.removeFilled(DerivedFolder + "/" + name); err != nil {
				return s.removeDerived()
			}
		}
	}
	switch {
	case !kept:
		return s.removeDerived()
	case removed:
		return s.FS.SyncDir(DerivedFolder)
	default:
		return nil
	}
}

// removeFilled removes a file or folder that other processes may be filling. They can do so until it is gone.
func (s *Store) removeFilled(name string) (err error) {
	const attempts = 100
	for range attempts {
		if err = vfs.RemoveAll(s.FS, name); err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	return err
}

// removeDerived removes [DerivedFolder], the note last.
func (s *Store) removeDerived() error {
	for e, err := range s.FS.ReadDir(DerivedFolder) {
		if err != nil {
			break // no folder
		}
		if e.Name() == path.Base(erasureFile) {
			continue
		}
		if err := vfs.RemoveAll(s.FS, DerivedFolder+"/"+e.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	s.derived.noted.Store(false)
	err := vfs.RemoveAll(s.FS, DerivedFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = s.FS.SyncDir(".")
	}
	return err
}
