package search

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// UpdateOptions bound an [Index.Update].
type UpdateOptions struct {
	Contexts []uuid.UUID           // only these, for a program that knows what it will ask for; empty for all
	MaxWait  time.Duration         // stop after this time, between two contexts at the earliest; 0 for no limit
	Whole    bool                  // compare every row with the store, and look at every message file for an edit by hand
	Progress func(done, total int) // receives the number of contexts; may be nil
}

// UpdateResult says what an update did.
type UpdateResult struct {
	Messages int64 // that were added, changed or removed
	// Behind counts the commits that are not in the index, because the time was up, or a context cannot be read.
	Behind int64
	// Problem joins the errors of contexts that cannot be read; the others are complete.
	Problem error
}

// Update brings the index up to date with every commit of every process. An index that is damaged, or was removed
// meanwhile, is rebuilt.
func (x *Index) Update(ctx context.Context, o UpdateOptions) (done UpdateResult, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for range 3 {
		if done, err = x.updateOnce(ctx, o); err == nil || ctx.Err() != nil || !isUnusable(err) && !x.db.moved() {
			break
		}
		if err = x.rebuild(ctx); err != nil {
			break
		}
	}
	if o.MaxWait > 0 && isBusy(err) {
		done.Behind, err = max(done.Behind, 1), nil
	}
	return done, err
}

// reopen opens the index again if another process replaced it. The caller holds mu.
func (x *Index) reopen(ctx context.Context) error {
	if _, err := attach(x.store); err != nil && !hasNoFile(err) {
		return err
	}
	if x.db != nil && !x.db.moved() {
		return nil
	}
	if x.db != nil {
		_ = x.db.Close()
		x.db = nil
	}
	folder, err := attach(x.store)
	db, err := openDatabase(ctx, x.store.Info(), folder, err)
	if err != nil {
		return err
	}
	x.naming.Lock()
	x.db, x.names = db, nil
	x.naming.Unlock()
	return db.forgetLost(ctx)
}

// rebuild begins with an empty index. The caller holds mu.
func (x *Index) rebuild(ctx context.Context) error {
	if x.db != nil {
		moved, path := x.db.moved(), x.db.path
		_ = x.db.Close()
		x.db = nil
		if path != "" && !moved {
			if err := removeFiles(path); err != nil {
				return err
			}
		}
	}
	return x.reopen(ctx)
}

func (x *Index) updateOnce(ctx context.Context, o UpdateOptions) (done UpdateResult, err error) {
	if err := x.reopen(ctx); err != nil {
		return done, err
	}
	if len(o.Contexts) > 0 {
		return x.updateSome(ctx, o)
	}
	known, err := x.contexts(ctx)
	if err != nil {
		return done, err
	}
	states := make(map[uuid.UUID]string, len(known))
	for id, row := range known {
		if row.complete && !o.Whole {
			states[id] = row.state
		}
	}
	changed, err := x.store.Changed(ctx, states)
	if err != nil {
		return done, err
	}
	var due []uuid.UUID
	for id, is := range changed {
		if is {
			due = append(due, id)
		}
	}
	w := newWriter(x)
	w.bound(o)
	defer w.close()
	for id, row := range known {
		if _, ok := changed[id]; !ok {
			if err := w.drop(ctx, row); err != nil {
				return done, err
			}
		}
	}
	if done, err = w.syncAll(ctx, due, known, o); err != nil {
		return done, err
	}
	if done.Behind == 0 || o.Whole {
		if err := w.verify(ctx, slices.Collect(maps.Keys(changed)), o.Whole); err != nil {
			return done, err
		}
	}
	return done, w.end(ctx, &done)
}

// end commits what an update did.
func (w *writer) end(ctx context.Context, done *UpdateResult) error {
	done.Messages = w.changed
	if err := w.commit(); err != nil {
		return err
	}
	if w.x.db.lost {
		return w.x.db.forgetLost(ctx)
	}
	return nil
}

func (w *writer) bound(o UpdateOptions) {
	if w.whole = o.Whole; o.MaxWait > 0 {
		w.until = time.Now().Add(o.MaxWait)
	}
}

// updateSome brings some contexts up to date.
func (x *Index) updateSome(ctx context.Context, o UpdateOptions) (done UpdateResult, err error) {
	known := make(map[uuid.UUID]*contextRow, len(o.Contexts))
	var due []uuid.UUID
	for _, id := range o.Contexts {
		row, err := rowOf(ctx, x.db, id)
		if err != nil {
			return done, err
		}
		if row != nil && row.complete && !o.Whole {
			changed, err := x.store.Changed(ctx, map[uuid.UUID]string{id: row.state}, id)
			if err != nil {
				return done, err
			}
			if !changed[id] {
				continue
			}
		}
		known[id], due = row, append(due, id)
	}
	if len(due) == 0 {
		return done, nil
	}
	w := newWriter(x)
	w.bound(o)
	defer w.close()
	if done, err = w.syncAll(ctx, due, known, o); err != nil {
		return done, err
	}
	if o.Whole {
		if err := w.verify(ctx, due, true); err != nil {
			return done, err
		}
	}
	return done, w.end(ctx, &done)
}

// UpdateContext brings one context up to date: Update for a program that knows what changed.
func (x *Index) UpdateContext(ctx context.Context, id uuid.UUID) error {
	done, err := x.Update(ctx, UpdateOptions{Contexts: []uuid.UUID{id}})
	return errors.Join(err, done.Problem)
}

// syncAll brings contexts up to date. It counts the commits of those that it cannot read, or has no time for.
func (w *writer) syncAll(
	ctx context.Context, due []uuid.UUID, known map[uuid.UUID]*contextRow, o UpdateOptions,
) (done UpdateResult, err error) {

	for i, id := range due {
		if o.Progress != nil {
			o.Progress(i, len(due))
		}
		if o.MaxWait > 0 && time.Now().After(w.until) {
			done.Behind += w.x.behind(ctx, due[i:], known)
			break
		}
		err := w.sync(ctx, id)
		if o.MaxWait > 0 && isBusy(err) {
			w.failed = false
			done.Behind += w.x.behind(ctx, due[i:], known)
			return done, nil
		}
		switch {
		case errors.Is(err, ctxdir.ErrNotExist):
			err = w.dropID(ctx, id) // it was removed meanwhile
		case err != nil && ctx.Err() == nil && !w.failed:
			done.Problem = errors.Join(done.Problem, err)
			done.Behind += w.x.behind(ctx, due[i:i+1], known)
			err = nil
		}
		if err != nil {
			return done, err
		}
	}
	if o.Progress != nil && len(due) > 0 {
		o.Progress(len(due), len(due))
	}
	return done, nil
}

// contexts returns what the index knows of each context.
func (x *Index) contexts(ctx context.Context) (map[uuid.UUID]*contextRow, error) {
	rows, err := x.db.QueryContext(ctx, "SELECT "+contextColumns+" FROM contexts")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[uuid.UUID]*contextRow{}
	for rows.Next() {
		var r contextRow
		if err := r.scan(rows); err != nil {
			return nil, err
		}
		all[r.id] = &r
	}
	return all, rows.Err()
}

// behind counts the commits of contexts that the index does not have.
func (x *Index) behind(ctx context.Context, ids []uuid.UUID, known map[uuid.UUID]*contextRow) (n int64) {
	for _, id := range ids {
		commits := int64(0)
		_ = x.store.Use(ctx, id, func(c *ctxdir.Context) error { // the next update reports the error
			row := known[id]
			if row == nil || !row.complete {
				commits = int64(c.Summary().Sequence)
				return nil
			}
			_, rows := c.Changes(ctx, row.state)
			for _, err := range rows {
				if err != nil {
					return err
				}
				commits++
			}
			return nil
		})
		n += max(commits, 1)
	}
	return n
}
