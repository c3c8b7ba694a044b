package index

import (
	stdcontext "context"
	"errors"
	"math"
	"slices"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/google/uuid"
)

// IsNew reports whether an id is greater than every id of the context, so that no message has it. It is false where
// that is not known without a search.
func (l *Log) IsNew(id uuid.UUID) (isNew bool, err error) {
	err = l.view(func(s *state) {
		isNew = true
		for _, ln := range s.lines {
			isNew = isNew && ln.isAbove(id)
		}
	})
	return isNew, err
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

// Find looks an id up in one line below position end: in live journals, packs, folded journals, and rows that are
// marked lost. It does not look for a message file. With rows it also searches every row, for callers that know that
// the message's file is wrong. It omits erased messages, except those of a rebuilt index.
func (l *Log) Find(line, id uuid.UUID, end int64, rows bool) (e Entry, ok bool, err error) {
	if e, ok, err = l.FindRecent(line, id, end); ok || err != nil {
		return e, ok, err
	}
	try := func(positions []int64, perr error) (done bool) {
		err = perr
		for _, p := range positions {
			var entries []Entry
			if err == nil && !ok && p < end {
				entries, err = l.Entries(line, p, p+1)
			}
			if err == nil && len(entries) == 1 && entries[0].ID == id && entries[0].Lost != Erased {
				e, ok = entries[0], true
			}
		}
		return ok || err != nil
	}
	packed, damaged, err := l.inPacks(line, id)
	_ = try(packed, err) || try(l.inFolded(line, id)) ||
		(rows || damaged) && try(l.inRows(line, id, end)) || // this rebuilds the index if rows need what a pack had
		try(l.inLost(line, id))
	return e, ok, err
}

// inPacks returns the positions that packs state for a message. If damaged, there may be others.
func (l *Log) inPacks(line, id uuid.UUID) (positions []int64, damaged bool, err error) {
	verr := l.view(func(s *state) {
		if s.lines[line] == nil {
			return
		}
		for _, pack := range s.lines[line].Packs {
			p, perr := s.openPack(pack)
			if errors.Is(perr, ErrDamaged) {
				damaged = true
				continue
			}
			if perr != nil {
				err = perr // it may have the id
				return
			}
			p.find(id, func(r archive.Row) bool {
				if r.Line == line && !slices.Contains(positions, r.Position) {
					positions = append(positions, r.Position)
				}
				return true
			})
			damaged = damaged || p.isSalvaged()
			p.Release()
		}
	})
	return positions, damaged, errors.Join(verr, err)
}

// inFolded returns the position that the folded journals state for a message, if any. The message may have no file: a
// power cut can lose it until it is settled.
func (l *Log) inFolded(line, id uuid.UUID) (positions []int64, err error) {
	err = l.view(func(s *state) {
		if p, ok := s.folded.find(s.dir, line, id); ok {
			positions = []int64{p}
		}
	})
	return positions, err
}

// inRows searches all rows of a line. Of several rows the last counts, and a row that is not marked lost before one
// that is.
func (l *Log) inRows(line, id uuid.UUID, end int64) (positions []int64, err error) {
	lost := false
	for e, err := range l.All(stdcontext.Background(), line, 0, end) {
		if err != nil {
			return nil, err
		}
		if e.ID == id && e.Lost != Erased && (positions == nil || lost || e.Lost == "") {
			positions, lost = []int64{e.Position}, e.Lost != ""
		}
	}
	return positions, nil
}

// inLost returns the position of the message's row that is marked lost, if any. It reads nothing if the line has none,
// and the rows once otherwise.
func (l *Log) inLost(line, id uuid.UUID) (positions []int64, err error) {
	var was *state
	var known map[uuid.UUID]int64
	none := true
	seen := l.IndexVersion()
	err = l.view(func(s *state) {
		if ln := s.lines[line]; ln != nil {
			was, none, known = s, ln.Lost == 0, ln.lostIDs
		}
	})
	if none || err != nil {
		return nil, err
	}
	if known == nil {
		known = map[uuid.UUID]int64{}
		for e, err := range l.All(stdcontext.Background(), line, 0, math.MaxInt64) {
			if err != nil {
				return nil, err
			}
			if e.isLost() {
				known[e.ID] = e.Position
			}
		}
		l.mu.Lock()
		if l.state == was && l.IndexVersion() == seen && was.lines[line] != nil {
			was.lines[line].lostIDs = known
		}
		l.mu.Unlock()
	}
	if p, ok := known[id]; ok {
		positions = []int64{p}
	}
	return positions, nil
}
