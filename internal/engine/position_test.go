package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestPositionAt looks up times in branches with ascending times, with times in any order, and with erased messages.
func TestPositionAt(t *testing.T) {
	c, _ := kit.NewContext(t)
	ctx := context.Background()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	next := 0
	rapid.Check(t, func(r *rapid.T) {
		next++
		b := kit.Must[*engine.Branch](t)(c.NewBranch(ctx, fmt.Sprint("b", next)))
		ascending := rapid.Bool().Draw(r, "ascending")
		steps := rapid.SliceOfN(rapid.IntRange(0, 3), 0, 20).Draw(r, "steps")
		var times []time.Time
		var drafts []engine.Draft
		at := start
		for i, step := range steps {
			if at = at.Add(time.Duration(step) * time.Minute); !ascending {
				at = start.Add(time.Duration(step) * time.Minute)
			}
			times = append(times, at)
			drafts = append(drafts, engine.Draft{Body: fmt.Appendf(nil, `{"n":%d}`, i), CreatedAt: at})
		}
		if len(drafts) > 0 {
			kit.Must[[]engine.BatchResult](t)(b.AppendBatch(ctx, drafts))
		}
		want := start.Add(time.Duration(rapid.IntRange(-1, 60).Draw(r, "minute")) * time.Minute)
		p, err := b.PositionAt(ctx, want)
		if err != nil || p < 0 || p > int64(len(times)) {
			t.Fatalf("position %d of %d, %v", p, len(times), err)
		}
		if p > 0 && !times[p-1].Before(want) || p < int64(len(times)) && times[p].Before(want) {
			t.Fatalf("position %d for %v among %v", p, want, times)
		}
	})
}

// TestPositionAtOfUnavailable: an unavailable message has the time of the next one; a message without a time of its own
// has that of its commit.
func TestPositionAtOfUnavailable(t *testing.T) {
	c, _ := kit.NewContext(t)
	ctx := context.Background()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range 10 {
		kit.Append(t, c.Active(), engine.Draft{
			ID: kit.TestID(i + 1), Body: fmt.Appendf(nil, `{"n":%d}`, i), CreatedAt: start.Add(time.Duration(i) * time.Minute),
		})
	}
	var erased []uuid.UUID
	for i := 3; i < 8; i++ {
		erased = append(erased, kit.TestID(i+1))
	}
	for _, err := range erase.Messages(ctx, c.Store, c.ID(), erased, erase.Options{}) {
		kit.Check(t, err)
	}
	kit.Check(t, c.Refresh(ctx))
	before := time.Now().Add(-time.Minute)
	kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"n":10}`)})
	for at, want := range map[time.Time]int64{
		start.Add(-time.Hour): 0, start: 0, start.Add(time.Second): 1, start.Add(2 * time.Minute): 2,
		start.Add(2*time.Minute + 1): 3, start.Add(8 * time.Minute): 3, start.Add(8*time.Minute + 1): 9, before: 10,
		time.Now().Add(time.Hour): 11,
	} {
		if p, err := c.Active().PositionAt(ctx, at); p != want || err != nil {
			t.Errorf("%v: position %d, %v; want %d", at, p, err, want)
		}
	}
}

// TestAround reads the messages around one.
func TestAround(t *testing.T) {
	c, _ := kit.NewContext(t)
	ctx := context.Background()
	kit.Fill(t, c.Active(), 5)
	var ids []uuid.UUID
	for _, m := range kit.Load(t, c.Active()) {
		ids = append(ids, m.ID)
	}
	b := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "fork", 3))
	for _, x := range []struct {
		b             *engine.Branch
		of            int
		before, after int
		from, to      int64
	}{
		{c.Active(), 2, 1, 1, 1, 4}, {c.Active(), 0, 3, 1, 0, 2}, {c.Active(), 4, 0, 0, 4, 5}, {c.Active(), 3, math.MaxInt, math.MaxInt, 0, 5},
		{b, 1, 1, 9, 0, 3},
	} {
		got, err := x.b.Around(ctx, ids[x.of], x.before, x.after)
		if err != nil || len(got) != int(x.to-x.from) || got[0].Position != x.from {
			t.Errorf("%+v: %d messages, %v", x, len(got), err)
		}
	}
	if _, err := b.Around(ctx, ids[4], 1, 1); !errors.Is(err, engine.ErrNotExist) {
		t.Errorf("a message of another branch: %v", err)
	}
	if _, err := b.Around(ctx, ids[0], -1, 1); !errors.Is(err, engine.ErrInvalid) {
		t.Errorf("a negative number: %v", err)
	}
}
