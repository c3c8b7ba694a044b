package index

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/google/uuid"
)

// All yields the entries of the positions from … to that a line has itself, in order, and leaves out positions that do not
// exist. It reads them in pages: others may append to the line, or cut it, meanwhile.
func (ix *Index) All(ctx context.Context, line uuid.UUID, from, to int64) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		for page, err := range ix.Pages(ctx, line, from, to) {
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page {
				if !yield(&page[i], nil) {
					return
				}
			}
		}
	}
}

// Pages is [Index.All] for callers that take several entries at once.
func (ix *Index) Pages(ctx context.Context, line uuid.UUID, from, to int64) iter.Seq2[[]Entry, error] {
	return func(yield func([]Entry, error) bool) {
		counts, _, err := ix.Counts(line)
		for from = max(from, counts.Base); err == nil && from < to; {
			if err = ctx.Err(); err != nil {
				break
			}
			var page []Entry
			if page, err = ix.Entries(line, from, from+min(to-from, pageEntries)); err != nil || len(page) == 0 {
				break
			}
			from = page[len(page)-1].Position + 1
			if !yield(page, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// Unsealed returns the entries that no segment has yet, by line and in order of position: new messages, newer versions,
// and what is left of erased ones.
func (ix *Index) Unsealed() (all map[uuid.UUID][]Entry, err error) {
	err = ix.view(func(s *state) {
		all = map[uuid.UUID][]Entry{}
		for id, ln := range s.lines {
			for _, e := range ln.changed {
				all[id] = append(all[id], e)
			}
			slices.SortFunc(all[id], func(a, b Entry) int { return int(a.Position - b.Position) })
			if len(ln.recent) > 0 {
				all[id] = append(all[id], ln.recent...)
			}
		}
	})
	return all, err
}

// UnsealedBytes returns the length of the records that no segment has. ended says that some can be sealed without another
// Rotate.
func (ix *Index) UnsealedBytes() (n int64, ended bool, err error) {
	err = ix.viewLogs(func(s *state) {
		for _, o := range s.logs {
			n += o.Len()
			ended = ended || o.Next() != ""
		}
	})
	return n, ended, err
}

// NewestLog returns the name of the log that the next commit goes to, empty without one.
func (ix *Index) NewestLog() (name string, err error) {
	err = ix.viewLogs(func(s *state) {
		if len(s.logs) > 0 {
			name = cmp.Or(s.newest().Next(), s.newest().Name())
		}
	})
	return name, err
}
