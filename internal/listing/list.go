package listing

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/ctxdir/ctxdir/internal/engine"
)

// List yields the contexts in the store that o asks for, in its order. It includes legacy contexts, and does not
// migrate them. A damaged context is a row with its problem and does not end the list. An error is that of the options,
// or of reading the store's own folder. It keeps what lists read in [SummariesFile], a cache.
func (l *Lister) List(ctx context.Context, o ListOptions) iter.Seq2[Summary, error] {
	return func(yield func(Summary, error) bool) {
		rows, err := l.list(ctx, &o)
		if err != nil {
			yield(Summary{}, engine.Wrap(engine.Error{Op: "list", Path: l.s.Path()}, err))
			return
		}
		for _, r := range rows {
			if err := ctx.Err(); err != nil {
				yield(Summary{}, err)
				return
			}
			row := *r
			row.Cursor, row.Labels = o.cursor(r), maps.Clone(r.Labels) // the cache keeps its own
			if !yield(row, nil) {
				return
			}
		}
	}
}

func (l *Lister) list(ctx context.Context, o *ListOptions) ([]*Summary, error) {
	choose, err := o.chooser()
	if err != nil {
		return nil, err
	}
	all, err := l.summaries(ctx, o)
	if err != nil {
		return nil, err
	}
	rows := slices.DeleteFunc(all, func(row *Summary) bool { return !choose(row) })
	slices.SortFunc(rows, o.compare)
	if o.Limit > 0 {
		rows = rows[:min(o.Limit, len(rows))]
	}
	return rows, nil
}

// summaries returns the rows of all contexts; with options it may leave out contexts that they do not select. It reads
// those that are not in the cache, or changed since.
func (l *Lister) summaries(ctx context.Context, o *ListOptions) ([]*Summary, error) {
	x := l.examine(o)
	entries, err := l.listEntries(x)
	if err != nil {
		return nil, err
	}
	rows := x.rows(entries)
	engine.InParallel(len(rows), func(i int) {
		switch row := &rows[i]; {
		case ctx.Err() != nil:
		case row.Folder && !row.judged && x.leavesOut(row.known, true):
			row.cached = row.known
		default:
			row.read(ctx, l.s)
			row.leave(l.s)
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.keep(x, rows)
	all := make([]*Summary, 0, len(rows))
	for i := range rows {
		if rows[i].sum != nil {
			all = append(all, rows[i].sum)
		}
	}
	return all, nil
}
