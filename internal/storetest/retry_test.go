package storetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestRetryOfLost: a message of which no copy is whole is found by its id, and to append it again makes it what it was, in
// its place; before a repair and after. No id is shown twice, and a repair settles.
func TestRetryOfLost(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, positions := range [][]int{{5}, {30, 31}, {0, 39}} {
		for _, repaired := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, repaired %v", positions, repaired), func(t *testing.T) {
				t.Parallel()
				p := kit.NewPatient(t, false)
				before := kit.Must[*engine.Context](t)(p.Store.Context(ctx, p.ID))
				defer before.Close()
				p.Garble(positions...)
				lost := p.IDs(positions...)
				if repaired {
					p.Settle("damaged")
				}
				kit.Check(t, before.Refresh(ctx))
				if m, err := before.Active().Message(ctx, lost[0]); err != nil || !errors.Is(m.Unavailable, engine.ErrDamaged) {
					t.Errorf("through an older handle: %+v, %v", m, err)
				}
				p.VerifyIDs("damaged", lost)
				p.Retry("damaged", lost)
				p.VerifyIDs("retried", nil)
				p.Retry("retried", lost)
				p.Settle("retried")
				p.VerifyIDs("repaired", nil)
				p.Retry("repaired", lost)
				p.In(func(c *engine.Context) { kit.Check(t, c.Seal(ctx)) })
				p.VerifyIDs("sealed", nil)
			})
		}
	}
}

// TestRetryOfLostWithPayloads: what comes back in its place brings its payloads with it, and goes into a batch with
// others.
func TestRetryOfLostWithPayloads(t *testing.T) {
	t.Parallel()
	p := kit.NewPatient(t, false)
	w := p.Want["main"][3] // its text is in a blob
	p.Garble(3)
	p.Remove(p.Blobs...)
	p.Repair(checking.Options{})
	p.In(func(c *engine.Context) {
		results, err := c.Active().AppendBatch(t.Context(), []engine.Draft{
			{Body: []byte(`{"one":1}`)}, {ID: w.ID, Body: json.RawMessage(w.Text)},
			{Body: []byte(`{"two":2}`)}, {ID: w.ID, Body: json.RawMessage(w.Text)},
			{ID: w.ID, Body: []byte(`{"another":1}`)},
		})
		if err != nil || len(results) != 5 {
			t.Fatal(results, err)
		}
		for i, want := range []engine.AppendResult{{Position: 40}, {Position: 3, Existed: true}, {Position: 41}, {Position: 3, Existed: true}} {
			if r := results[i]; r.Err != nil || r.Position != want.Position || r.Existed != want.Existed {
				t.Errorf("message %d: %+v", i, r)
			}
		}
		if !errors.Is(results[4].Err, engine.ErrConflict) {
			t.Errorf("another body: %+v", results[4])
		}
		kit.Check(t, c.Seal(t.Context()))
	})
	p.In(func(c *engine.Context) {
		if m := kit.Must[*engine.Message](t)(c.Active().Message(t.Context(), w.ID)); m.Position != 3 || kit.BodyOf(m) != w.Text {
			t.Errorf("position %d: %s", m.Position, kit.BodyOf(m))
		}
	})
}
