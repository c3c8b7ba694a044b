package listing

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/freshness"
)

// Lister lists the contexts of an open store. Several goroutines may use it. It keeps in memory what its last list read.
type Lister struct {
	s *engine.Store

	mu      sync.Mutex
	file    freshness.FileState // summaries.jsonl when it was read or written, without its time; zero for none
	head    head
	known   summaries
	saved   bool                // known is what the file has
	folder  freshness.FileState // the store's folder when entries was read
	entries []engine.Entry      // ordered by id; nil if they have to be read again
	seen    changesSeen
}

// New returns a Lister for a store. Each open store has one; close it before the store.
func New(s *engine.Store) *Lister { return &Lister{s: s} }

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
		if ctx.Err() == nil {
			rows[i].read(ctx, l.s, x)
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

// listRow is an entry of the store's folder in a list.
type listRow struct {
	engine.Entry
	known  *cachedSummary // what the cache has of it; nil for nothing
	judged bool           // what the cache has of it meets the conditions
	cached *cachedSummary // what the cache has of it from now on
	sum    *Summary       // nil if the entry is not a context after all, or does not meet the conditions
}

func (row *listRow) set(sum Summary) { row.sum = &sum }

// reuse sets the row to that of the cache, which is current.
func (row *listRow) reuse(r *summaryRow) {
	row.set(r.summary())
	row.cached = row.known
}

// fail sets the row to a context with a problem.
func (row *listRow) fail(err error) { row.set(Summary{ID: row.ID, Problem: err}) }

func (row *listRow) read(ctx context.Context, s *engine.Store, x *examination) {
	if row.Folder {
		if !row.judged && x.leavesOut(row.known, true) {
			row.cached = row.known
			return
		}
		if r := row.known.current(s); r != nil {
			row.reuse(r)
			return
		}
	}
	name := row.ID.String()
	if !row.Folder {
		name += ".json"
	}
	if !row.Folder || engine.IsSplit(s.FS, name) {
		row.readLegacy(s, name)
		if row.sum != nil && row.sum.Problem == nil || s.Legacy(row.ID) != "" {
			return
		}
		if _, err := s.FS.Lstat(row.ID.String()); err != nil && !ctxfolder.Ready(s.FS, row.ID) {
			return
		}
		// It was migrated meanwhile.
	}
	row.readContext(ctx, s)
}

func (row *listRow) readContext(ctx context.Context, s *engine.Store) {
	c, err := s.Open(ctx, row.ID)
	if err != nil {
		row.fail(engine.Wrap(engine.Error{Op: "open", Context: row.ID}, err))
		return
	}
	defer c.Close()
	log, err := c.Index.NewestLog()
	if err != nil || log == "" {
		row.set(Summarise(c))
		return
	}
	before, ok := freshness.FilesOf(s, row.ID, log)
	// Everything read from here on is at least as new as the files examined.
	if err := c.Refresh(ctx); err != nil {
		row.fail(err)
		return
	}
	row.set(Summarise(c))
	if newest, err := c.Index.NewestLog(); ok && err == nil && newest == log {
		now, ok := freshness.FilesOf(s, row.ID, log)
		row.keep(before, now, ok, log)
	}
}
