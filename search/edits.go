package search

import (
	"context"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// verify looks for messages that were edited by hand since the last look: no commit tells of them. It compares the size
// and time of each message file with the index of its context, for a limited time unless all is set. The next call
// begins with the contexts that were not verified for longest.
func (w *writer) verify(ctx context.Context, known map[uuid.UUID]*contextRow, all bool) error {
	rows := make([]*contextRow, 0, len(known))
	for _, row := range known {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b *contextRow) int { return int(min(max(a.verified-b.verified, -1), 1)) })
	began := time.Now()
	var done []*contextRow
	for _, row := range rows {
		if !all && time.Since(began) >= editsBudget {
			break
		}
		if err := w.verifyContext(ctx, row.id); err != nil {
			if ctx.Err() != nil || w.failed {
				return err
			}
			continue // the next update reports it
		}
		done = append(done, row)
	}
	if len(done) == len(rows) {
		return nil // the order does not matter
	}
	if err := w.begin(ctx); err != nil {
		return err
	}
	for _, row := range done {
		if _, err := w.exec("UPDATE contexts SET verified = ? WHERE n = ?", began.UnixNano(), row.n); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) verifyContext(ctx context.Context, id uuid.UUID) error {
	return w.x.e.Use(ctx, id, func(c *engine.Context) error {
		spans, err := c.Spans(c.Current())
		if err != nil {
			return err
		}
		edited := positions{}
		for _, span := range spans {
			known, err := w.edits(ctx, id, span.Line)
			if err == nil {
				err = lookAtFiles(ctx, c, span, known, edited)
			}
			if err != nil {
				return err
			}
		}
		if len(edited) == 0 {
			return nil
		}
		if err := w.begin(ctx); err != nil {
			return err
		}
		return w.syncOpen(ctx, c, edited)
	})
}

// edits returns the times of the edited files of a line that the index has.
func (w *writer) edits(ctx context.Context, context, line uuid.UUID) (map[int64]int64, error) {
	const query = "SELECT position, edited FROM messages WHERE edited <> 0 AND line = " +
		"(SELECT n FROM lines WHERE id = ? AND context = (SELECT n FROM contexts WHERE id = ?))"
	q := w.x.db.QueryContext
	if w.tx != nil {
		q = w.tx.QueryContext
	}
	rows, err := q(ctx, query, line[:], context[:])
	if err != nil {
		return nil, w.fail(err)
	}
	defer rows.Close()
	known := map[int64]int64{}
	for rows.Next() {
		var position, edited int64
		if err := rows.Scan(&position, &edited); err != nil {
			return nil, w.fail(err)
		}
		known[position] = edited
	}
	return known, w.fail(rows.Err())
}

// lookAtFiles adds the messages of a span whose files are not as the index has them.
func lookAtFiles(ctx context.Context, c *engine.Context, span loader.Span, known map[int64]int64, edited positions) error {
	for entries, err := range c.Log.Pages(ctx, span.Line, span.From, span.To) {
		if err != nil {
			return err
		}
		var files []*index.Entry
		var ids []uuid.UUID
		for i := range entries {
			if e := &entries[i]; e.Lost == "" && (e.Pack == uuid.Nil || known[e.Position] != 0) {
				files, ids = append(files, e), append(ids, e.FileID())
			}
		}
		infos, err := c.Dir.StatMessages(span.Folder, ids)
		if err != nil {
			return err
		}
		for i, e := range files {
			if editTime(infos[i], e) != known[e.Position] {
				edited.add(span.Line, e.Position)
			}
		}
	}
	return nil
}
