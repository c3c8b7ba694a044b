package index

import (
	"errors"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// replayFromRows tries the short way: the oldest begin record has the counts, and the rows up to there are whole. Where
// row files were rewritten, or packs exist, only index.json says where entries are.
func (s *state) replayFromRows() bool {
	if len(s.journals) == 0 || len(s.problems) > 0 || s.rearranged() {
		return false
	}
	for i, j := range s.journals[1:] {
		if j.gen != s.journals[i].gen+1 {
			return false
		}
	}
	for i := range s.journals[0].begin.Lines {
		if !s.rowsWhole(&s.journals[0].begin.Lines[i]) {
			return false
		}
	}
	first := s.journals[0].begin
	s.beginAt(func(yield func(FoldedLine) bool) {
		for _, c := range first.Lines {
			if !yield(FoldedLine{Counts: c}) {
				return
			}
		}
	}, first.Seq, first.chain)
	err := s.replay()
	if m, merr := s.dir.UsableMetadata(s.metadata); err == nil && merr == nil {
		err = s.short(m)
	}
	if err != nil || s.outnumbered() || s.rowsBehind() {
		for _, j := range s.journals {
			j.end, j.seq, j.chain = j.first, j.begin.Seq, j.begin.chain
		}
		s.lines, s.problems = map[uuid.UUID]*line{}, nil
		return false
	}
	return true
}

// rowsWhole reports whether a line has every row that it should have. It counts those marked lost, since the marks may
// be newer than c.
func (s *state) rowsWhole(c *Counts) bool {
	var last uuid.UUID
	c.Lost = 0
	for from := c.Base; from < c.End(); from += pageRows {
		rows, err := s.readDense(&line{Counts: *c}, from, min(from+pageRows, c.End()))
		if err != nil {
			return false
		}
		last = rows[len(rows)-1].ID
		for i := range rows {
			if rows[i].unfound() {
				c.Lost++
			}
		}
	}
	return c.Count == 0 || last == c.Last
}

// rearranged reports whether there may be packs, or row files other than the first ones.
func (s *state) rearranged() bool {
	if packs, err := packIDs(s.dir); err != nil || len(packs) > 0 {
		return true
	}
	files, err := rowFiles(s.dir)
	for _, numbers := range files {
		if slices.Max(numbers) > 0 {
			return true
		}
	}
	return err != nil
}

// rowsBehind reports whether a line has more rows than messages: the newest journals are missing, or the line was cut.
func (s *state) rowsBehind() bool {
	for line := range s.folders() {
		var counts Counts
		if ln := s.lines[line]; ln != nil {
			counts = ln.Counts
		}
		if info, err := s.dir.FS.Lstat(ctxfolder.RowsFile(line, 0)); err == nil && info.Size() > counts.Count*rowWidth {
			return true
		}
	}
	return false
}

// outnumbered reports whether there are more message files than messages: then the newest journals are missing.
func (s *state) outnumbered() bool {
	room := map[string]int64{}
	for line, folder := range s.folders() {
		if ln := s.lines[line]; ln != nil {
			room[folder] += ln.Count
		} else {
			room[folder] += 0
		}
	}
	for folder, left := range room {
		err := s.dir.MessageIDs(folder, func(uuid.UUID) error {
			if left--; left < 0 {
				return ErrDamaged
			}
			return nil
		})
		if errors.Is(err, ErrDamaged) {
			return true
		}
	}
	return false
}
