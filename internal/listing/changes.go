package listing

import (
	"bytes"
	"os"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// changesLine is the length of a line of ChangesFile.
const changesLine = 36 + len("\n")

// changesSeen is how much of ChangesFile a list has read.
type changesSeen struct {
	Number uint64 `json:"n"`
	Size   int64  `json:"size"`
}

// changesNow returns the current state of ChangesFile, zero without the file.
func changesNow(s *engine.Store) (now changesSeen) {
	if info, err := s.FS.Lstat(engine.ChangesFile); err == nil && info.Mode().IsRegular() {
		now = changesSeen{vfs.Number(info), info.Size()}
	}
	return now
}

// changedSince returns the contexts that ChangesFile names between two states. ok is false if that is not known.
func changedSince(s *engine.Store, seen, now changesSeen) (changed map[uuid.UUID]bool, ok bool) {
	if seen == now {
		return nil, true
	}
	none := changesSeen{}
	if now == none || seen != none && seen.Number != now.Number || seen.Size > now.Size || now.Size > 2*engine.MaxChanges {
		return nil, false
	}
	f, err := s.FS.OpenFile(engine.ChangesFile, os.O_RDONLY)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	from := seen.Size - seen.Size%int64(changesLine)
	b := make([]byte, now.Size-from)
	if n, _ := f.ReadAt(b, from); n < len(b) {
		return nil, false
	}
	changed = map[uuid.UUID]bool{}
	for line := range bytes.Lines(b) {
		id, err := uuid.ParseBytes(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil || len(line) != changesLine {
			return nil, false // a torn line
		}
		changed[id] = true
	}
	return changed, true
}
