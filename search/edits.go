package search

import (
	"context"
	"math/rand/v2"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// verify looks for messages that were edited by hand since the last look: no commit tells of them. It compares the size
// and time of each message file with the index of its context. Unless all is set, it does so within [editsBudget], and
// begins with a random context.
func (w *writer) verify(ctx context.Context, ids []uuid.UUID, all bool) error {
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for _, id := range ids {
		if !all && w.looked >= editsBudget {
			break
		}
		w.looked += editsOpen
		// The next update reports the error of a context.
		if err := w.verifyContext(ctx, id); err != nil && (ctx.Err() != nil || w.failed) {
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
				err = w.lookAtFiles(ctx, c, span, known, edited)
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
func (w *writer) lookAtFiles(
	ctx context.Context, c *engine.Context, span loader.Span, known map[int64]int64, edited positions,
) error {
	folder := c.Dir.Files(span.Folder)
	defer folder.Release()
	archived := int64(0)
	if line, ok := c.Current().Line(span.Line); ok {
		archived = line.Archived
	}
	for entries, err := range c.Index.Pages(ctx, span.Line, span.From, span.To) {
		if err != nil {
			return err
		}
		var files []*index.Entry
		var ids []uuid.UUID
		for i := range entries {
			if e := &entries[i]; e.Gone == archive.Here && (e.Position >= archived || known[e.Position] != 0) {
				files, ids = append(files, e), append(ids, e.ID)
			}
		}
		w.looked += len(ids)
		infos, err := folder.Stat(ids)
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
