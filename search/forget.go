package search

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/answers"
	"github.com/ctxdir/ctxdir/internal/bridge"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// Attach makes the index of a store, and the texts assembled from it, forget what is erased, purged or removed through
// s. Without it, such an operation removes the whole index, and the next update rebuilds it. Attach does not open
// the index.
func Attach(s *ctxdir.Store) {
	e := bridge.Engine(s)
	e.OnForget(func(ctx context.Context, contexts []uuid.UUID) error {
		return errors.Join(answers.Drop(e), forget(ctx, e, contexts))
	})
}

// forget removes the rows of messages, and of versions, that contexts have no more, and then the terms of all removed
// rows from the files of the index.
func forget(ctx context.Context, e *engine.Store, contexts []uuid.UUID) error {
	path := filepath.Join(e.Path(), engine.DerivedFolder, File)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	db, err := openFile(ctx, e, path)
	if err != nil {
		return err
	}
	w := newWriter(&Index{e: e, db: db})
	w.until = time.Now().Add(e.Options.LockTimeout)
	for _, id := range contexts {
		if err == nil {
			err = w.reconcile(ctx, id)
		}
	}
	if err == nil {
		err = w.commit()
	}
	if err == nil {
		err = db.purge(ctx)
	}
	if err == nil && w.lost {
		err = e.EndErasure(ctx)
	}
	w.close()
	return errors.Join(err, db.Close())
}

// reconcile removes the rows of a context that do not belong to current versions of its messages.
func (w *writer) reconcile(ctx context.Context, id uuid.UUID) error {
	if err := w.begin(ctx); err != nil {
		return err
	}
	row, err := rowOf(ctx, w.tx, id)
	if err != nil || row == nil {
		return w.fail(err)
	}
	c, err := w.x.e.Open(ctx, id)
	if errors.Is(err, ctxfolder.ErrNotExist) {
		return w.drop(ctx, row)
	}
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := w.newSync(ctx, c)
	if err == nil {
		err = s.describe()
	}
	if err == nil {
		err = s.removeStale(ctx)
	}
	return err
}

// removeStale removes the rows of other versions than the current ones.
func (s *contextSync) removeStale(ctx context.Context) error {
	for _, span := range s.spans {
		rows, err := s.rows(span.Line)
		if err != nil {
			return err
		}
		for entries, err := range s.c.Index.Pages(ctx, span.Line, span.From, span.To) {
			if err != nil {
				return err
			}
			for i := range entries {
				e := &entries[i]
				if row, ok := rows[e.Position]; ok && e.Gone == archive.Here && row.sum == int64(e.Sum) {
					delete(rows, e.Position)
				}
			}
		}
		for _, row := range rows {
			if err := s.w.remove(row.n); err != nil {
				return err
			}
		}
	}
	return nil
}
