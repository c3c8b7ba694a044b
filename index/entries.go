package index

import (
	stdcontext "context"
	"errors"
	"iter"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// Entries returns the entries of a line's own positions [from, to). It omits positions that do not exist.
func (l *Log) Entries(id uuid.UUID, from, to int64) ([]Entry, error) {
	seen := l.IndexVersion()
	entries, err := l.entries(id, from, to)
	for renewed, rebuilt := 0, 0; errors.Is(err, ErrDamaged) && rebuilt < 3; { // a writer may replace the index in between
		if renewed < 8 && l.IndexChanged(seen) { // the missing data has moved
			renewed++
		} else if err := l.rebuildRows(err); err != nil { // the rows are a cache: rebuild what they lost
			return nil, err
		} else {
			rebuilt++
		}
		seen = l.IndexVersion()
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
