package engine

import (
	"maps"
	"os"

	"github.com/google/uuid"
)

// ChangesFile holds the ids of contexts whose title, labels or model a commit changed, one a line. It is part of the
// cache of lists, for which see package listing.
const ChangesFile = "summaries.changes"

// PurgedFile is the file of a store with the contexts that were removed for good, one per line: see docs/APPLICATIONS.md.
const PurgedFile = "purged.jsonl"

// MaxChanges bounds ChangesFile. The next writer removes a larger one, and every list then examines all files once.
const MaxChanges = 1 << 20

// noteChange adds the context to ChangesFile if a commit changed what conditions of a list ask for. The caller holds
// the lock, and the commit is visible. If noteChange fails, the next full check finds the change.
func (c *Context) noteChange(before, after *Metadata) {
	if before != nil && before.Title == after.Title && maps.Equal(before.Labels.Texts(), after.Labels.Texts()) &&
		before.Config.Text("model_id") == after.Config.Text("model_id") {
		return
	}
	c.Store.NoteChange(c.Dir.ID)
}

// NoteChange adds contexts to ChangesFile, or removes it, which names all.
func (s *Store) NoteChange(ids ...uuid.UUID) {
	if len(ids) == 0 {
		return
	}
	f, err := s.FS.OpenFile(ChangesFile, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return
	}
	var lines []byte
	for _, id := range ids {
		lines = append(append(lines, id.String()...), '\n')
	}
	_, err = f.Write(lines)
	info, serr := f.Stat()
	_ = f.Close()
	if err != nil || serr == nil && info.Size() > MaxChanges {
		_ = s.FS.Remove(ChangesFile)
	}
}
