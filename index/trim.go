package index

import (
	stdcontext "context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// trim is the body of a record that cuts a line: messages that no branch shows went to the trash.
type trim struct {
	Line  uuid.UUID `json:"line"`
	End   int64     `json:"end"`   // the line ends at this position from now on
	Bytes int64     `json:"bytes"` // of the envelopes that remain of its own messages
	Last  uuid.UUID `json:"last"`  // the id of the newest of them
}

func parseTrim(b []byte) (t trim, err error) {
	if err := json.Unmarshal(b, &t); err != nil {
		return t, fmt.Errorf("%w: trim record: %w", ErrDamaged, err)
	}
	if t.Line == uuid.Nil || t.End < 0 || t.Bytes < 0 {
		return t, fmt.Errorf("%w: trim record of line %s at position %d", ErrDamaged, t.Line, t.End)
	}
	return t, nil
}

// TrimItem returns the item that makes a line end at a position. The caller holds the context lock and has called
// Prepare under it.
func (l *Log) TrimItem(line uuid.UUID, end int64) (Item, error) {
	counts, ok, err := l.Counts(line)
	if err != nil {
		return Item{}, err
	}
	if !ok || end < counts.Base || end > counts.End() {
		return Item{}, fmt.Errorf("line %s cannot be cut at position %d", line, end)
	}
	t := trim{Line: line, End: end}
	if end > counts.Base {
		t.Bytes = counts.Bytes
		next := end - 1
		for e, err := range l.All(stdcontext.Background(), line, next, counts.End()) {
			if err != nil {
				return Item{}, err
			}
			if next = e.Position + 1; next == end {
				t.Last = e.ID
			} else {
				t.Bytes -= e.Size
			}
		}
		if next != counts.End() {
			return Item{}, fmt.Errorf("%w: position %d of line %s is missing", ErrDamaged, next, line)
		}
		t.Bytes = max(t.Bytes, 0)
	}
	body, err := json.Marshal(t)
	return Item{Kind: KindTrim, Body: body}, err
}

// trim cuts a line, by the record with number seq.
func (s *state) trim(t *trim, seq uint64) error {
	ln := s.lines[t.Line]
	if ln == nil || t.End < ln.Base || t.End > ln.End() {
		return fmt.Errorf("%w: line %s is cut at position %d, which it does not have", ErrDamaged, t.Line, t.End)
	}
	ln.recent = ln.recent[:max(t.End-ln.start, 0)]
	ln.start = min(ln.start, t.End)
	for p := range ln.changed {
		if p >= t.End {
			delete(ln.changed, p)
		}
	}
	ln.byID, ln.lostIDs = nil, nil
	ln.Count, ln.Bytes, ln.Last, ln.cut = t.End-ln.Base, t.Bytes, t.Last, seq
	if ln.Count == 0 {
		ln.Derived, ln.Referring, ln.Lost = 0, 0, 0
	}
	return nil
}

// removeRows removes the row files that index.json does not name: those of empty lines, and those that were rewritten.
//
// Crash order: a durable index.json does not name them. A file that comes back means nothing.
func (l *Log) removeRows(x *indexFile) error {
	named := map[string]bool{}
	for i := range x.Lines {
		named[ctxfolder.RowsFile(x.Lines[i].Line, x.Lines[i].Rows)] = true
	}
	files, err := rowFiles(l.dir)
	if err != nil {
		return err
	}
	for line, numbers := range files {
		for _, number := range numbers {
			name := ctxfolder.RowsFile(line, number)
			if named[name] {
				continue
			}
			if err := l.remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// rowFiles returns the numbers of the existing row files, by line.
func rowFiles(dir *ctxfolder.Dir) (map[uuid.UUID][]uint64, error) {
	files := map[uuid.UUID][]uint64{}
	for e, err := range dir.FS.ReadDir(ctxfolder.RowsFolder) {
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if info, serr := dir.FS.Lstat(ctxfolder.RowsFolder); err != nil && serr == nil && !info.IsDir() {
			break // writing rows sets it aside
		}
		if err != nil {
			return nil, err
		}
		if line, number, ok := ctxfolder.ParseRowsFile(e.Name()); ok && !e.IsDir() {
			files[line] = append(files[line], number)
		}
	}
	return files, nil
}
