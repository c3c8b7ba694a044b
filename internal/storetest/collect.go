package storetest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// clock is a clock that tests set.
type clock struct{ at atomic.Int64 }

func (c *clock) Now() time.Time { return time.Unix(0, c.at.Load()) }

func (c *clock) Set(at time.Time) { c.at.Store(at.UnixNano()) }

func NewClock() *clock { c := &clock{}; c.Set(time.Now()); return c }

func (c *clock) Jump(d time.Duration) { c.Set(c.Now().Add(d)) }

// Collect collects, and returns what was moved to trash and what was purged.
func Collect(t *testing.T, s *engine.Store, o trash.CollectOptions) (moved, purged []engine.TrashItem) {
	t.Helper()
	for x, err := range trash.Collect(context.Background(), s, o) {
		if err != nil {
			t.Fatal(err)
		}
		if x.Purged {
			purged = append(purged, x.TrashItem)
		} else {
			moved = append(moved, x.TrashItem)
		}
	}
	return moved, purged
}

func TrashOf(t *testing.T, s *engine.Store, kind string) (found []engine.TrashItem) {
	t.Helper()
	for x, err := range trash.List(context.Background(), s) {
		if err != nil {
			t.Fatal(err)
		}
		if kind == "" || x.Kind == kind {
			found = append(found, x)
		}
	}
	return found
}

func Bodies(t *testing.T, b *engine.Branch) (all []string) {
	t.Helper()
	for m, err := range b.Messages(context.Background()) {
		if err != nil || m.Unavailable != nil {
			t.Fatal(err, m.Unavailable)
		}
		all = append(all, m.ID.String()+string(m.Stored))
	}
	return all
}

func Check(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// NewOrphan makes a context with a removed branch "gone" of five messages of its own, forked at 1, beside main, and
// collects.
func NewOrphan(t *testing.T, s *engine.Store) (c *engine.Context, want []string) {
	t.Helper()
	ctx := context.Background()
	c = Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	Fill(t, c.Active(), 3)
	gone := Must[*engine.Branch](t)(c.Active().Fork(ctx, "gone", 1))
	Fill(t, gone, 5)
	want = Bodies(t, gone)
	Check(t, c.Remove(ctx, "gone"))
	return c, want
}
