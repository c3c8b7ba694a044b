package engine

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// ForgetSummaries removes from [SummariesFile], durably, contexts that are not in the store any more, and some that are:
// the file has titles and names of branches. The next list reads the latter again.
//
// Crash order: the file is there with these contexts, or without them, or gone.
func (s *Store) ForgetSummaries(contexts ...uuid.UUID) error {
	if err := s.removeTemporarySummaries(); err != nil {
		return err
	}
	c := s.listed
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := s.FS.Lstat(SummariesFile); errors.Is(err, fs.ErrNotExist) {
		c.known = nil
		return nil
	}
	c.known, c.seen, c.head = s.parseSummaries()
	kept := slices.DeleteFunc(slices.Clone(c.known), func(r *cachedSummary) bool {
		return slices.Contains(contexts, r.id) || !s.hasEntry(r.id.String()) && !s.hasEntry(r.id.String()+".json")
	})
	if len(kept) == len(c.known) && len(kept) > 0 {
		c.file, c.saved = s.summariesFile(), true
		return nil
	}
	c.saved, c.known = false, kept
	if len(kept) > 0 {
		s.writeSummaries()
	}
	if !c.saved { // it is damaged, has no context any more, or could not be written
		c.known = nil
		if err := s.FS.Remove(SummariesFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return s.FS.SyncDir(".")
}

func (s *Store) hasEntry(name string) bool {
	_, err := s.FS.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// removeTemporarySummaries removes what interrupted lists left. A running list does without its file.
func (s *Store) removeTemporarySummaries() error {
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
