package index

import (
	"errors"
	"math"
	"slices"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// Entries returns the entries of a line's own positions [from, to). It omits positions that do not exist.
func (l *Log) Entries(id uuid.UUID, from, to int64) ([]Entry, error) {
	seen := l.Renewals()
	entries, err := l.entries(id, from, to)
	for renewed, rebuilt := 0, 0; errors.Is(err, ErrDamaged) && rebuilt < 3; { // a writer may replace the index in between
		if renewed < 8 && l.Renewed(seen) { // the missing data has moved
			renewed++
		} else if err := l.rebuildRows(err); err != nil { // the rows are a cache: rebuild what they lost
			return nil, err
		} else {
			rebuilt++
		}
		seen = l.Renewals()
		entries, err = l.entries(id, from, to)
	}
	return entries, err
}

func (l *Log) entries(id uuid.UUID, from, to int64) ([]Entry, error) {
	var rows, recent, changed []Entry
	var rowsErr error
	err := l.view(func(s *state) {
		ln := s.lines[id]
		if ln == nil {
			to = from
			return
		}
		from, to = max(from, ln.Base), min(to, ln.End())
		if from < to && to > ln.start {
			recent = slices.Clone(ln.recent[max(from, ln.start)-ln.start : to-ln.start])
		}
		for p, e := range ln.changed {
			if p >= from && p < to {
				changed = append(changed, *e)
			}
		}
		rows, rowsErr = s.readRows(ln, from, min(to, ln.start)) // the view keeps the file open
	})
	if err = errors.Join(err, rowsErr); err != nil || from >= to {
		return nil, err
	}
	for _, e := range changed {
		rows[e.Position-from] = e
	}
	return append(rows, recent...), nil
}

// FindRecent looks an id up among the messages in live journals, in one line below position end.
func (l *Log) FindRecent(line, id uuid.UUID, end int64) (e Entry, ok bool, err error) {
	if err := l.load(); err != nil {
		return e, false, err
	}
	l.mu.Lock() // find builds the line's table of ids on first use
	defer l.mu.Unlock()
	if ln := l.state.lines[line]; ln != nil {
		if p, found := ln.find(id); found && p < end {
			e, ok = ln.recent[p-ln.start], true
		}
	}
	return e, ok, nil
}

// FindFolded looks an id up in the retained folded journals, in one line below position end. Their messages may have no
// files: until they are settled, a power cut can lose those.
func (l *Log) FindFolded(line, id uuid.UUID, end int64) (Entry, bool, error) {
	var position int64
	var ok bool
	err := l.view(func(s *state) { position, ok = s.kept.find(s.dir, line, id) })
	if err != nil || !ok || position >= end {
		return Entry{}, false, err
	}
	entries, err := l.Entries(line, position, position+1)
	if err != nil || len(entries) == 0 || entries[0].ID != id {
		return Entry{}, false, err
	}
	return entries[0], true, nil
}

// FindLost looks an id up among the messages of a line that are marked lost, below position end. It reads nothing if
// the line has none, and the rows once otherwise.
func (l *Log) FindLost(line, id uuid.UUID, end int64) (Entry, bool, error) {
	counts, _, err := l.Counts(line)
	if err != nil || counts.Lost == 0 {
		return Entry{}, false, err
	}
	position, ok, err := l.findUnfound(line, id)
	if err != nil || !ok || position >= end {
		return Entry{}, false, err
	}
	entries, err := l.Entries(line, position, position+1)
	if err != nil || len(entries) == 0 || entries[0].ID != id || entries[0].Lost == Erased {
		return Entry{}, false, err
	}
	return entries[0], true, nil
}

// findUnfound returns the position of a row that is marked lost.
func (l *Log) findUnfound(line, id uuid.UUID) (position int64, ok bool, err error) {
	var was *state
	var known map[uuid.UUID]int64
	look := func(s *state) {
		if was = s; s.lines[line] != nil {
			known = s.lines[line].unfound
		}
	}
	seen := l.Renewals()
	if err := l.view(look); err != nil {
		return 0, false, err
	}
	if known == nil {
		known = map[uuid.UUID]int64{}
		if err := l.each(line, math.MaxInt64, func(e *Entry) {
			if e.unfound() {
				known[e.ID] = e.Position
			}
		}); err != nil {
			return 0, false, err
		}
		l.mu.Lock()
		if l.state == was && l.Renewals() == seen && was.lines[line] != nil {
			was.lines[line].unfound = known
		}
		l.mu.Unlock()
	}
	position, ok = known[id]
	return position, ok, nil
}

// FindRow looks an id up in all rows of a line, below position end. It is for callers that know that the message's file
// is wrong. Of several rows the last counts, and a row that is not marked lost before one that is.
func (l *Log) FindRow(line, id uuid.UUID, end int64) (found Entry, ok bool, err error) {
	err = l.each(line, end, func(e *Entry) {
		if e.ID == id && e.Lost != Erased && (!ok || found.Lost != "" || e.Lost == "") {
			found, ok = *e, true
		}
	})
	return found, ok && err == nil, err
}

// each calls f for every entry of a line below position end.
func (l *Log) each(line uuid.UUID, end int64, f func(*Entry)) error {
	counts, _, err := l.Counts(line)
	for from := counts.Base; err == nil && from < min(counts.End(), end); from += atOnce {
		var entries []Entry
		entries, err = l.Entries(line, from, min(from+atOnce, end))
		for i := range entries {
			f(&entries[i])
		}
	}
	return err
}

// FindArchived looks an id up in the packs that serve a line, below position end. If one of them is damaged, it
// searches the rows. That rebuilds the index if they need what the pack had.
func (l *Log) FindArchived(line, id uuid.UUID, end int64) (Entry, bool, error) {
	var rows []archive.Row
	var harmed bool
	var rowsErr error
	err := l.view(func(s *state) {
		if ln := s.lines[line]; ln != nil {
			rows, harmed, rowsErr = s.archived(ln.Packs, id)
		}
	})
	if err = errors.Join(err, rowsErr); err != nil {
		return Entry{}, false, err
	}
	var positions []int64
	for i := range rows {
		if r := &rows[i]; r.Line == line && r.Position < end && !slices.Contains(positions, r.Position) {
			positions = append(positions, r.Position)
		}
	}
	for _, p := range positions {
		entries, eerr := l.Entries(line, p, p+1)
		if err = eerr; err != nil || len(entries) == 1 && entries[0].ID == id {
			return entries[0], err == nil, err
		}
	}
	if harmed && err == nil {
		return l.FindRow(line, id, end)
	}
	return Entry{}, false, err
}

// RowsFile returns the path of a line's row file.
func (l *Log) RowsFile(line uuid.UUID) (path string) {
	path = ctxfolder.RowsFile(line, 0)
	_ = l.view(func(s *state) {
		if ln := s.lines[line]; ln != nil {
			path = ctxfolder.RowsFile(line, ln.Rows)
		}
	})
	return path
}
