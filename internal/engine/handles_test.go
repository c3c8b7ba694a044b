package engine_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// length returns what Use shows of a context.
func length(t *testing.T, s *engine.Store, id uuid.UUID) (n int64) {
	t.Helper()
	kit.Check(t, s.Use(t.Context(), id, func(c *engine.Context) error {
		n = kit.Must[int64](t)(c.Active().Len(t.Context()))
		return nil
	}))
	return n
}

// made makes a context, and returns its id.
func made(t *testing.T, s *engine.Store, m engine.Metadata) uuid.UUID {
	t.Helper()
	c := kit.Must[*engine.Context](t)(s.Create(t.Context(), m))
	kit.Check(t, c.Close())
	return c.ID()
}

// TestUseSharesHandles: calls of Use for one context get the same handle, which shows what others committed. A context
// that was removed, or removed and made again, is not shown from an old handle.
func TestUseSharesHandles(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	other := kit.Must[*engine.Store](t)(kit.Open(dir))
	defer other.Close()
	id := made(t, s, engine.Metadata{ExternalID: "x"})
	var first *engine.Context
	kit.Check(t, s.Use(ctx, id, func(c *engine.Context) error {
		first = c
		kit.Fill(t, c.Active(), 2)
		return s.Use(ctx, id, func(c *engine.Context) error {
			if c != first {
				t.Error("a second handle")
			}
			return nil
		})
	}))
	theirs := kit.Must[*engine.Context](t)(other.Context(ctx, id))
	kit.Append(t, theirs.Active(), engine.Draft{Body: []byte(`{"n":3}`)})
	if n := length(t, s, id); n != 3 {
		t.Errorf("%d messages after another handle's append", n)
	}
	kit.Check(t, theirs.Close())
	failed := errors.New("failed")
	if err := s.Use(ctx, id, func(c *engine.Context) error {
		if c != first {
			t.Error("the handle was not kept")
		}
		return failed
	}); !errors.Is(err, failed) {
		t.Errorf("the error of the function: %v", err)
	}
	kit.Must[engine.TrashItem](t)(other.Delete(ctx, id)) // another process
	none := func(*engine.Context) error { t.Error("a removed context was used"); return nil }
	if err := s.Use(ctx, id, none); !errors.Is(err, engine.ErrNotExist) {
		t.Errorf("a removed context: %v", err)
	}
	made(t, other, engine.Metadata{ExternalID: "x"})
	if n := length(t, s, id); n != 0 {
		t.Errorf("%d messages in a new context", n)
	}
	kit.Check(t, s.Use(ctx, id, func(c *engine.Context) error {
		kit.Must[engine.TrashItem](t)(s.Delete(ctx, id)) // while it is in use
		if _, err := c.Active().Append(ctx, engine.Draft{Body: []byte(`{"n":1}`)}); !errors.Is(err, engine.ErrGone) {
			t.Errorf("an append to a removed context: %v", err)
		}
		return nil
	}))
	kit.Check(t, s.Close())
	if err := s.Use(ctx, id, none); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("a closed store: %v", err)
	}
}

// TestUseBoundsHandles uses many contexts at once and in turn: the store keeps a bounded number of them open, and
// closes none that is in use.
func TestUseBoundsHandles(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	var ids []uuid.UUID
	for range engine.MaxHandles + 20 {
		ids = append(ids, made(t, s, engine.Metadata{}))
	}
	s = kit.Must[*engine.Store](t)(kit.Open(dir))
	appendTo := func(c *engine.Context) error {
		_, err := c.Active().Append(ctx, engine.Draft{Body: []byte(`{"n":1}`)})
		return err
	}
	kit.Check(t, s.Use(ctx, ids[0], func(used *engine.Context) error {
		for range 3 {
			var group sync.WaitGroup
			for _, id := range ids {
				group.Go(func() {
					if err := s.Use(ctx, id, appendTo); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
		}
		if open, all := s.OpenHandles(); open > engine.MaxHandles || all > engine.MaxHandles {
			t.Errorf("%d handles are open, of %d", open, all)
		}
		return appendTo(used)
	}))
	before := descriptors(t)
	kit.Check(t, s.Use(ctx, ids[len(ids)-1], appendTo))
	kit.Check(t, s.Close())
	if after := descriptors(t); before > 0 && after >= before {
		t.Errorf("%d descriptors before the close, %d after", before, after)
	}
	s = kit.Must[*engine.Store](t)(kit.Open(dir))
	defer s.Close()
	for i, id := range ids {
		want := int64(3)
		if i == 0 || i == len(ids)-1 {
			want++
		}
		if n := length(t, s, id); n != want {
			t.Errorf("context %d has %d messages, want %d", i, n, want)
		}
	}
}

// descriptors returns how many files the process has open, 0 if the system does not say.
func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(all)
}

// TestUseOpensOnce: concurrent first uses open a context once; a caller whose ctx ends meanwhile does not spoil it for
// the others.
func TestUseOpensOnce(t *testing.T) {
	s, _ := kit.NewStore(t)
	id := made(t, s, engine.Metadata{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var mu sync.Mutex
	seen := map[*engine.Context]bool{}
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			err := s.Use(t.Context(), id, func(c *engine.Context) error {
				mu.Lock()
				defer mu.Unlock()
				seen[c] = true
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		group.Go(func() {
			if err := s.Use(ended, id, func(*engine.Context) error { return nil }); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if open, all := s.OpenHandles(); len(seen) != 1 || open != 1 || all != 1 {
		t.Errorf("%d handles, %d are open, %d in the table", len(seen), open, all)
	}
}
