package erase_test

import (
	"context"
	"testing"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestErasedBytes: a size does not count what was erased, wherever that was.
func TestErasedBytes(t *testing.T) {
	ctx := context.Background()
	for name, x := range map[string]func(c *engine.Context) error{
		"in a log": func(*engine.Context) error { return nil },
		"sealed":   func(c *engine.Context) error { return c.Seal(ctx) },
		"archived": func(c *engine.Context) error {
			_, err := kit.Archive(ctx, c, archiving.Options{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := kit.NewContext(t, engine.WithSealBytes(-1))
			kit.Fill(t, c.Active(), 10)
			kit.Check(t, x(c))
			all := kit.Load(t, c.Active())
			bytesOf := func() int64 {
				t.Helper()
				again := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
				defer again.Close()
				counts, _, err := again.Index.Counts(again.Current().Lines[0].ID)
				kit.Check(t, err)
				return counts.Bytes
			}
			before := bytesOf()
			for n := range 2 { // the second time there is nothing to erase
				for _, err := range erase.Messages(ctx, c.Store, c.ID(), []uuid.UUID{all[3].ID, all[9].ID}, erase.Options{}) {
					kit.Check(t, err)
				}
				after := bytesOf()
				if n == 0 && after >= before-100 || n == 1 && after != before {
					t.Errorf("%d bytes, %d before", after, before)
				}
				kit.Check(t, c.Refresh(ctx))
				if counts, _, err := c.Index.Counts(c.Current().Lines[0].ID); err != nil || counts.Bytes != after {
					t.Errorf("an open handle tells %d bytes, another one %d, %v", counts.Bytes, after, err)
				}
				kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"after":1}`)})
				kit.Check(t, c.Seal(ctx))
				if before = bytesOf(); before <= after {
					t.Errorf("%d bytes, with one more %d", after, before)
				}
			}
		})
	}
}
