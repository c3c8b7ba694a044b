package engine

import (
	"context"
	"iter"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// Summary is one context in a list.
type Summary struct {
	ID           uuid.UUID
	Title        string
	Labels       map[string]string
	Kind         string
	ExternalID   string
	Model        string // config.model_id
	Branches     int
	ActiveBranch string
	Messages     int64 // shown by at least one branch, each counted once
	Bytes        int64 // of all its messages and of metadata.json
	Archived     int64 // of these, those of messages without files
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Format       LegacyFormat // of a legacy context; empty otherwise
	Cursor       string       // in a list: where it continues after this row
	Problem      error        // why the context, or a part of it, is unusable; the other fields hold the known values
}

// List yields the contexts in the store that o asks for, in its order. It includes legacy contexts, and does not
// migrate them. A damaged context is a row with its problem and does not end the list. An error is that of the options,
// or of reading the store's own folder. The store keeps what earlier lists read in summaries.jsonl, a cache.
func (s *Store) List(ctx context.Context, o ListOptions) iter.Seq2[Summary, error] {
	return func(yield func(Summary, error) bool) {
		rows, err := s.list(ctx, &o)
		if err != nil {
			yield(Summary{}, Wrap(Error{Op: "list", Path: s.path}, err))
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

func (s *Store) list(ctx context.Context, o *ListOptions) ([]*Summary, error) {
	choose, err := o.chooser()
	if err != nil {
		return nil, err
	}
	all, err := s.summaries(ctx, o)
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
func (s *Store) summaries(ctx context.Context, o *ListOptions) ([]*Summary, error) {
	x := s.examine(o)
	entries, err := s.listEntries(x)
	if err != nil {
		return nil, err
	}
	rows := x.rows(entries)
	inParallel(len(rows), func(i int) {
		if ctx.Err() == nil {
			rows[i].read(ctx, s, x)
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.keepSummaries(x, rows)
	all := make([]*Summary, 0, len(rows))
	for i := range rows {
		if rows[i].sum != nil {
			all = append(all, rows[i].sum)
		}
	}
	return all, nil
}

// inParallel calls f for 0 to n-1, on every processor if there are many calls.
func inParallel(n int, f func(i int)) {
	const block = 16 // calls at a time, so that a slow one holds up few others
	if n <= block {
		for i := range n {
			f(i)
		}
		return
	}
	var next atomic.Int64
	work := func() {
		for from := int(next.Add(block)) - block; from < n; from = int(next.Add(block)) - block {
			for i := from; i < min(from+block, n); i++ {
				f(i)
			}
		}
	}
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (n+block-1)/block) - 1 {
		group.Go(work)
	}
	work()
	group.Wait()
}

// listRow is an entry of the store's folder in a list.
type listRow struct {
	entry
	known  *cachedSummary // what the cache has of it; nil for nothing
	judged bool           // what the cache has of it meets the conditions
	cached *cachedSummary // what the cache has of it from now on
	sum    *Summary       // nil if the entry is no context after all, or does not meet the conditions
}

func (row *listRow) set(sum Summary) { row.sum = &sum }

// reuse sets the row to that of the cache, which is current.
func (row *listRow) reuse(r *summaryRow) {
	row.set(r.summary())
	row.cached = row.known
}

// fail sets the row to a context with a problem.
func (row *listRow) fail(err error) { row.set(Summary{ID: row.id, Problem: err}) }

func (row *listRow) read(ctx context.Context, s *Store, x *examination) {
	if row.folder {
		if !row.judged && x.leavesOut(row.known, true) {
			row.cached = row.known
			return
		}
		if r := s.current(row.known); r != nil {
			row.reuse(r)
			return
		}
	}
	name := row.id.String()
	if !row.folder {
		name += ".json"
	}
	if !row.folder || IsSplit(s.FS, name) {
		row.readLegacy(s, name)
		if row.sum != nil && row.sum.Problem == nil || s.Legacy(row.id) != "" {
			return
		}
		if _, err := s.FS.Lstat(row.id.String()); err != nil && !ctxfolder.Ready(s.FS, row.id) {
			return
		}
		// It was migrated meanwhile.
	}
	row.readContext(ctx, s)
}

func (row *listRow) readContext(ctx context.Context, s *Store) {
	c, err := s.Open(ctx, row.id)
	if err != nil {
		row.fail(Wrap(Error{Op: "open", Context: row.id}, err))
		return
	}
	defer c.Close()
	log, err := c.Index.NewestLog()
	if err != nil || log == "" {
		row.set(c.Summary())
		return
	}
	before, ok := s.fileStates(row.id, log)
	// Everything read from here on is at least as new as the files examined.
	if err := c.Refresh(ctx); err != nil {
		row.fail(err)
		return
	}
	row.set(c.Summary())
	if newest, err := c.Index.NewestLog(); ok && err == nil && newest == log {
		now, ok := s.fileStates(row.id, log)
		row.keep(before, now, ok, log)
	}
}

// Summary returns the row of the context in a list.
func (c *Context) Summary() Summary {
	m := c.Current()
	sum := Summary{
		ID: m.ID, Title: m.Title, Labels: m.Labels.Texts(), Kind: m.Kind, ExternalID: m.ExternalID, Model: m.Config.Text("model_id"),
		Branches: len(m.Branches), ActiveBranch: m.ActiveBranch,
		CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt, Problem: c.Problem(),
	}
	if err := c.use(func() error { return c.sizes(m, &sum) }); err != nil {
		sum.Problem = err
	}
	return sum
}

// newestIn returns when the last message of a branch was stored, if that is later than a time. lines are those of the
// branch, its own first.
func (c *Context) newestIn(lines []branch.Segment, than time.Time) (time.Time, error) {
	for _, seg := range lines {
		for e, err := range c.Index.All(context.Background(), seg.Line, max(seg.From, seg.To-1), seg.To) {
			if err != nil {
				return than, err
			}
			if at := e.StoredAt(); at.After(than) {
				return at, nil
			}
			return than, nil
		}
	}
	return than, nil
}

// sizes adds the counts and sizes of the index to a summary.
func (c *Context) sizes(m *Metadata, sum *Summary) error {
	all, newest, err := c.Index.AllCounts()
	if err != nil {
		return err
	}
	hasKinds := slices.ContainsFunc(m.Branches, func(b ctxfolder.Branch) bool { return b.Extra.Text(ctxfolder.BranchKind) != "" })
	shown := map[uuid.UUID]int64{} // for each line, the end of what branches show of it
	var said time.Time             // when the newest message of the conversation was stored
	for _, b := range m.Branches {
		l, ok := m.Line(b.Line)
		if !ok {
			continue
		}
		lines, err := branch.Lines(m, l.ID, max(all[l.ID].End(), l.Base))
		if err == nil && hasKinds && b.Extra.Text(ctxfolder.BranchKind) == "" {
			said, err = c.newestIn(lines, said)
		}
		if err != nil {
			sum.Problem = err
		}
		for _, seg := range lines {
			shown[seg.Line] = max(shown[seg.Line], seg.To)
		}
	}
	for _, l := range m.Lines {
		sum.Messages += max(shown[l.ID]-l.Base, 0)
		sum.Bytes += all[l.ID].Bytes
		sum.Archived += min(l.ArchivedBytes, all[l.ID].Bytes)
	}
	if b, err := m.Encode(); err == nil {
		sum.Bytes += int64(len(b))
	}
	if hasKinds {
		newest = said
	}
	if newest.After(sum.UpdatedAt) {
		sum.UpdatedAt = newest
	}
	useOriginTimes(m, newest, sum)
	return nil
}
