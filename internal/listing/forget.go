package listing

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// Forget removes from [SummariesFile], durably, contexts that are not in the store any more, and some that are: the file
// has titles and names of branches. The next list reads the latter again. It also tells the lists of this process and of
// others that read these contexts before: none of them writes what it read.
//
// Crash order: ChangesFile names the contexts first, so a list that replaces the file afterwards leaves them out; see
// [Lister.save]. Then the file is there with these contexts, or without them, or gone.
func Forget(s *engine.Store, contexts ...uuid.UUID) error {
	s.NoteChange(contexts...)
	if err := removeTemporary(s); err != nil {
		return err
	}
	if !hasEntry(s, SummariesFile) {
		return nil
	}
	known, seen, h := readFile(s)
	kept := slices.DeleteFunc(slices.Clone(known), func(r *cachedSummary) bool {
		return slices.Contains(contexts, r.id) || !hasEntry(s, r.id.String()) && !hasEntry(s, r.id.String()+".json")
	})
	if len(kept) == len(known) && len(kept) > 0 {
		return nil
	}
	written := false
	if len(kept) > 0 {
		_, written = replaceFile(s, kept, seen, h.checked)
	}
	if !written { // it is damaged, has no context any more, or could not be written
		if err := s.FS.Remove(SummariesFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return s.FS.SyncDir(".")
}

func hasEntry(s *engine.Store, name string) bool {
	_, err := s.FS.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// removeTemporary removes what interrupted lists left. A running list does without its file.
func removeTemporary(s *engine.Store) error {
	var names []string
	for e, err := range s.FS.ReadDir(".") {
		if err != nil {
			return err
		}
		if strings.HasPrefix(e.Name(), "."+SummariesFile+".") {
			names = append(names, e.Name())
		}
	}
	for _, name := range names {
		if err := s.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
