package search_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/search"
)

// TestMaxWait bounds an update while another process fills the index, and says what is missing then.
func TestMaxWait(t *testing.T) {
	s := openStore(t, t.TempDir())
	x := openIndex(t, s)
	c := secrets(t, s, x, 3)
	other, err := sql.Open("sqlite", filepath.Join(s.Info().Path, "derived", search.File)+"?_txlock=immediate")
	check(t, err)
	tx, err := other.Begin()
	check(t, err)
	_, err = c.Active().Append(t.Context(), said(t, "one more"))
	check(t, err)
	done, err := x.Update(t.Context(), search.UpdateOptions{MaxWait: time.Millisecond})
	check(t, err, done.Problem)
	if done.Behind != 1 {
		t.Errorf("%d commits behind, want 1", done.Behind)
	}
	released := time.AfterFunc(50*time.Millisecond, func() { _ = tx.Rollback() })
	defer released.Stop()
	if n := found(t, x, search.Query{Text: "more"}); n != 1 {
		t.Errorf("%d hits when the other process is done", n)
	}
	check(t, other.Close(), c.Close())
}

// TestCanceledWait: an update that ends while it waits for another process says that it was ended.
func TestCanceledWait(t *testing.T) {
	s := openStore(t, t.TempDir())
	x := openIndex(t, s)
	c := secrets(t, s, x, 3)
	other, err := sql.Open("sqlite", filepath.Join(s.Info().Path, "derived", search.File)+"?_txlock=immediate")
	check(t, err)
	tx, err := other.Begin()
	check(t, err)
	_, err = c.Active().Append(t.Context(), said(t, "one more"))
	check(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err = x.Update(ctx, search.UpdateOptions{Progress: func(int, int) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	check(t, tx.Rollback(), other.Close(), c.Close())
}
