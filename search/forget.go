package search

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ctxdir/ctxdir"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/answers"
	"github.com/google/uuid"
)

// maxForget bounds the wait for another process that fills the index while messages are removed for good.
const maxForget = 10 * time.Second

// Attach makes the index of a store forget what is erased, purged or removed through s. Without it, such an operation
// removes the whole index, and the next update rebuilds it. Attach does not open the index.
func Attach(s *ctxdir.Store) { _, _ = attach(s) } // a store that is open for reading removes nothing

// attach is Attach, and returns the folder of the index.
func attach(s *ctxdir.Store) (string, error) {
	return s.Derived("search", func(ctx context.Context, contexts []uuid.UUID) error { return forget(ctx, s, contexts) })
}

// forget removes the rows of messages, and of versions, that contexts have no more, and then the terms of all removed
// rows from the files of the index.
func forget(ctx context.Context, s *ctxdir.Store, contexts []uuid.UUID) error {
	info := s.Info()
	path := filepath.Join(info.Path, answers.Derived, File)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	db, err := openFile(ctx, info.ID, path)
	if err != nil {
		return err
	}
	w := newWriter(&Index{store: s, dir: info.Path, db: db})
	w.until = time.Now().Add(maxForget)
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
	// To open a context that became a legacy one would migrate it again.
	if _, err := os.Lstat(filepath.Join(w.x.dir, id.String(), ctxfolder.MetadataFile)); errors.Is(err, fs.ErrNotExist) {
		return w.drop(ctx, row)
	}
	c, err := w.x.store.Open(ctx, id)
	if errors.Is(err, ctxdir.ErrNotExist) {
		return w.drop(ctx, row)
	}
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := w.newSync(ctx, c)
	if err == nil {
		err = s.removeStale(ctx)
	}
	return err
}

// removeStale removes the rows of other versions than the current ones.
func (s *contextSync) removeStale(ctx context.Context) error {
	stale := map[uuid.UUID]rowSums{}
	for line := range s.lines {
		rows, err := s.rows(line)
		if err != nil {
			return err
		}
		stale[line] = rows
	}
	_, rows := s.c.Changes(ctx, "")
	for r, err := range rows {
		if err != nil {
			return err
		}
		if row, ok := stale[r.Line][r.Position]; ok && !r.Gone && row.sum == sumOf(r.ID, r.StoredAt) {
			delete(stale[r.Line], r.Position)
		}
	}
	for _, rows := range stale {
		for _, row := range rows {
			if err := s.w.remove(row.n); err != nil {
				return err
			}
		}
	}
	return s.describe()
}
