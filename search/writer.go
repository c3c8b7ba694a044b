package search

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// writer changes the index. It reads messages of the store only within a transaction that excludes other writers of the
// index: a removal of messages, which comes to the index after the store has lost them, waits for the transaction, and
// so no writer brings them back.
type writer struct {
	x       *Index
	tx      *sql.Tx
	stmts   map[string]*sql.Stmt
	rows    int       // changed in the transaction
	began   time.Time // the transaction
	changed int64     // rows in all
	until   time.Time // wait for other processes until then; zero for no limit
	looked  int       // files compared in search of edits by hand; see editsBudget
	whole   bool      // compare all rows of a context with the store
	lost    bool      // the transaction removes rows of messages that the store has no more
	failed  bool      // the index failed, not a context
}

// Bounds of a transaction, so that other processes get their turn.
const (
	maxRows = 2000
	maxHold = 300 * time.Millisecond
)

func newWriter(x *Index) *writer { return &writer{x: x} }

// fail marks an error as one of the index.
func (w *writer) fail(err error) error {
	w.failed = w.failed || err != nil
	return err
}

func (w *writer) begin(ctx context.Context) (err error) {
	if w.tx != nil {
		return nil
	}
	for {
		// The transaction must survive the end of ctx, so that commit decides.
		w.tx, err = w.x.db.BeginTx(context.WithoutCancel(ctx), nil)
		if err == nil {
			break
		}
		w.tx = nil
		if cerr := ctx.Err(); cerr != nil {
			return w.fail(cerr)
		}
		// Another process fills the index.
		if !isBusy(err) || !w.until.IsZero() && time.Now().After(w.until) {
			return w.fail(fmt.Errorf("search index: %w", err))
		}
	}
	w.stmts, w.rows, w.lost, w.began = map[string]*sql.Stmt{}, 0, false, time.Now()
	return nil
}

func (w *writer) commit() error {
	if w.tx == nil {
		return nil
	}
	tx := w.tx
	w.tx, w.stmts = nil, nil
	return w.fail(tx.Commit())
}

// close undoes what was not committed.
func (w *writer) close() {
	if w.tx != nil {
		_ = w.tx.Rollback()
		w.tx = nil
	}
}

// isFull reports whether the transaction should end.
func (w *writer) isFull() bool { return w.rows >= maxRows || time.Since(w.began) >= maxHold }

func (w *writer) stmt(query string) (*sql.Stmt, error) {
	if s := w.stmts[query]; s != nil {
		return s, nil
	}
	s, err := w.tx.Prepare(query)
	if err == nil {
		w.stmts[query] = s
	}
	return s, w.fail(err)
}

// exec runs a statement, and returns the number of the inserted row.
func (w *writer) exec(query string, args ...any) (n int64, err error) {
	s, err := w.stmt(query)
	if err != nil {
		return 0, err
	}
	r, err := s.Exec(args...)
	if err != nil {
		return 0, w.fail(err)
	}
	n, err = r.LastInsertId()
	return n, w.fail(err)
}

// numbers returns the first column of a query.
func (w *writer) numbers(query string, args ...any) (all []int64, err error) {
	s, err := w.stmt(query)
	if err != nil {
		return nil, err
	}
	rows, err := s.Query(args...)
	if err != nil {
		return nil, w.fail(err)
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, w.fail(err)
		}
		all = append(all, n)
	}
	return all, w.fail(rows.Err())
}

// dropID removes a context by its id.
func (w *writer) dropID(ctx context.Context, id uuid.UUID) error {
	if err := w.begin(ctx); err != nil {
		return err
	}
	row, err := rowOf(ctx, w.tx, id)
	if err != nil || row == nil {
		return w.fail(err)
	}
	return w.drop(ctx, row)
}

// drop removes a context.
func (w *writer) drop(ctx context.Context, row *contextRow) error {
	if err := w.begin(ctx); err != nil {
		return err
	}
	lines, err := w.numbers("SELECT n FROM lines WHERE context = ?", row.n)
	for _, line := range lines {
		if err == nil {
			err = w.cut(line, 0)
		}
	}
	for _, query := range []string{"DELETE FROM lines WHERE context = ?", "DELETE FROM contexts WHERE n = ?"} {
		if err == nil {
			_, err = w.exec(query, row.n)
		}
	}
	if err == nil {
		err = w.renamed()
	}
	return err
}

// cut removes the messages of a line from a position on.
func (w *writer) cut(line, from int64) error {
	all, err := w.numbers("SELECT n FROM messages WHERE line = ? AND position >= ?", line, from)
	if err == nil && len(all) > 0 {
		err = w.lose()
	}
	for _, n := range all {
		if err == nil {
			err = w.remove(n)
		}
	}
	return err
}

// lose notes that the transaction removes rows of messages that the store has no more, so that their terms go, too: see
// [database.forgetLost].
func (w *writer) lose() error {
	if w.lost {
		return nil
	}
	w.lost, w.x.db.lost = true, true
	_, err := w.exec("UPDATE about SET lost = lost + 1")
	return err
}

// remove removes a message.
func (w *writer) remove(n int64) error {
	w.rows++
	w.changed++
	for _, query := range []string{
		"DELETE FROM terms WHERE rowid = ?", "DELETE FROM files WHERE message = ?", "DELETE FROM messages WHERE n = ?",
	} {
		if _, err := w.exec(query, n); err != nil {
			return err
		}
	}
	return nil
}

// renamed notes that contexts or lines changed, so that searches read them again.
func (w *writer) renamed() error {
	_, err := w.exec("UPDATE about SET changes = changes + 1")
	return err
}
