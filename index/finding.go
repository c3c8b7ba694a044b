package index

import (
	"errors"
	"slices"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// Entries returns the entries of a line's own positions [from, to). Positions that are not there give
// fewer entries.
func (l *Log) Entries(id uuid.UUID, from, to int64) ([]Entry, error) {
	seen := l.Renewals()
	entries, err := l.entries(id, from, to)
	for renewed, rebuilt := 0, 0; errors.Is(err, ErrDamaged) && rebuilt < 3; { // a writer may read the index anew in between
		if renewed < 8 && l.Renewed(seen) { // what is missing is somewhere else now
			renewed++
		} else if err := l.rebuildRows(err); err != nil { // the rows are a cache: what they lost is made again
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

// FindRecent looks an id up among the messages that live journals hold, in one line below position end.
func (l *Log) FindRecent(line, id uuid.UUID, end int64) (e Entry, ok bool, err error) {
	if err := l.load(); err != nil {
		return e, false, err
	}
	l.mu.Lock() // a line makes its table of ids when it is first asked
	defer l.mu.Unlock()
	if ln := l.state.lines[line]; ln != nil {
		if p, found := ln.find(id); found && p < end {
			e, ok = ln.recent[p-ln.start], true
		}
	}
	return e, ok, nil
}

// FindFolded looks an id up in the journals that are folded and kept, in one line below position end. Their
// messages may have no files: a power cut can take those until they are settled.
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

// FindArchived looks an id up in the packs that serve a line, below position end.
func (l *Log) FindArchived(line, id uuid.UUID, end int64) (Entry, bool, error) {
	var rows []archive.Row
	var rowsErr error
	err := l.view(func(s *state) {
		if ln := s.lines[line]; ln != nil {
			rows, rowsErr = s.archived(ln.Packs, id)
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
	return Entry{}, false, err
}

// RowsFile is the path of a line's row file.
func (l *Log) RowsFile(line uuid.UUID) (path string) {
	path = ctxfolder.RowsFile(line, 0)
	_ = l.view(func(s *state) {
		if ln := s.lines[line]; ln != nil {
			path = ctxfolder.RowsFile(line, ln.Rows)
		}
	})
	return path
}
