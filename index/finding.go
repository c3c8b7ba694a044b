package index

import (
	stdcontext "context"
	"errors"
	"iter"
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

// pageRows is how many entries are read at once.
const pageRows = 1024

// All yields the entries of a line's own positions [from, to), in order, and omits positions that do not exist. It
// reads them in pages: others may append to the line or cut it meanwhile.
func (l *Log) All(ctx stdcontext.Context, line uuid.UUID, from, to int64) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		for entries, err := range l.Pages(ctx, line, from, to) {
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range entries {
				if !yield(&entries[i], nil) {
					return
				}
			}
		}
	}
}

// Pages is [Log.All] for callers that process several entries at once.
func (l *Log) Pages(ctx stdcontext.Context, line uuid.UUID, from, to int64) iter.Seq2[[]Entry, error] {
	return l.pages(func(line uuid.UUID, from, to int64) ([]Entry, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return l.Entries(line, from, to)
	}, line, from, to)
}

// storedPages is [Log.Pages] for the folded entries of a line, without later changes from the journals.
func (l *Log) storedPages(line uuid.UUID, from, to int64) iter.Seq2[[]Entry, error] {
	return l.pages(func(line uuid.UUID, from, to int64) (entries []Entry, err error) {
		l.mu.RLock()
		defer l.mu.RUnlock()
		if ln := l.state.lines[line]; ln != nil {
			entries, err = l.state.readRows(ln, from, to)
		}
		return entries, err
	}, line, from, to)
}

// pages yields what read returns, page by page, until it returns nothing.
func (l *Log) pages(read func(line uuid.UUID, from, to int64) ([]Entry, error), line uuid.UUID, from, to int64) iter.Seq2[[]Entry, error] {
	return func(yield func([]Entry, error) bool) {
		counts, _, err := l.Counts(line)
		from = max(from, counts.Base)
		for err == nil && from < min(to, maxSeq) {
			var entries []Entry
			if entries, err = read(line, from, min(from+pageRows, to)); err != nil || len(entries) == 0 {
				break
			}
			from = entries[len(entries)-1].Position + 1
			if !yield(entries, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
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

// Find looks an id up in one line below position end: in live journals, packs, folded journals, and rows that are marked
// lost. It does not look for a message file. With rows it also searches every row, for callers that know that the
// message's file is wrong. It omits erased messages, except those of a rebuilt index.
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
		if p, ok := s.kept.find(s.dir, line, id); ok {
			positions = []int64{p}
		}
	})
	return positions, err
}

// inRows searches all rows of a line. Of several rows the last counts, and a row that is not marked lost before one that
// is.
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
	seen := l.Renewals()
	err = l.view(func(s *state) {
		if ln := s.lines[line]; ln != nil {
			was, none, known = s, ln.Lost == 0, ln.unfound
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
			if e.unfound() {
				known[e.ID] = e.Position
			}
		}
		l.mu.Lock()
		if l.state == was && l.Renewals() == seen && was.lines[line] != nil {
			was.lines[line].unfound = known
		}
		l.mu.Unlock()
	}
	if p, ok := known[id]; ok {
		positions = []int64{p}
	}
	return positions, nil
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
