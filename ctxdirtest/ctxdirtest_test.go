package ctxdirtest_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/ctxdirtest"
)

func TestNew(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, s := t.Context(), ctxdirtest.New(t)
	c, err := s.Create(ctx, ctxdir.Metadata{Title: "A walk"})
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.Active().Watch(ctx, c.Summary().Sequence)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := c.Active().Append(ctx, ctxdir.Draft{Body: json.RawMessage(`{"role":"user","content":"Which way?"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Active().Fork(ctx, "left", 2); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for e := range w.Pending(ctx) {
		if seen++; e.Kind != ctxdir.EventMessage {
			t.Errorf("%+v", e)
		}
	}
	if err := w.Close(); err != nil || seen != 3 {
		t.Errorf("%d events of main, %v", seen, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err = s.Open(ctx, c.ID()); err != nil {
		t.Fatal(err)
	}
	last, err := c.Active().Last(ctx, 2)
	if err != nil || len(last) != 2 || last[1].Position != 2 {
		t.Errorf("%v, %v", last, err)
	}
	for f, err := range s.Check(ctx, ctxdir.CheckOptions{All: true, ReadData: true}) {
		t.Errorf("%+v, %v", f, err)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("%v, %v: the store is not in memory alone", left, err)
	}
}
