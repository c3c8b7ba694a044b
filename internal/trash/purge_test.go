package trash_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/ctxdir/ctxdir/internal/trash"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// purgeStates are the states that a context can be in when something is removed from it.
var purgeStates = map[string]func(ctx context.Context, c *engine.Context) error{
	"fresh":  func(context.Context, *engine.Context) error { return nil },
	"sealed": func(ctx context.Context, c *engine.Context) error { return c.Seal(ctx) },
	"archived": func(ctx context.Context, c *engine.Context) error {
		_, err := kit.Archive(ctx, c, archiving.Options{})
		return err
	},
}

// removals remove the canary from a context in which it is message 2, with a payload if the body is large.
var removals = map[string]func(ctx context.Context, c *engine.Context) error{
	"rewind":    func(ctx context.Context, c *engine.Context) error { return c.Active().Rewind(ctx, 1) },
	"branch rm": func(ctx context.Context, c *engine.Context) error { return c.Remove(ctx, "b-"+kit.Canary) },
	"replace": func(ctx context.Context, c *engine.Context) error {
		return c.Active().Replace(ctx, kit.TestID(2), engine.Draft{Body: []byte(`{"n":2}`)})
	},
	"rm": func(ctx context.Context, c *engine.Context) error {
		_, err := c.Store.Delete(ctx, c.ID())
		return err
	},
}

// newPurgeStore makes a store with a context whose message 2 is the canary, in a state, and removes it. The name of a
// branch and the title hold the canary where the removal takes them away, too.
func newPurgeStore(t *testing.T, disk *crashfs.FS, state, removal string, size int) *engine.Store {
	t.Helper()
	ctx := context.Background()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk)...))
	m := engine.Metadata{ID: kit.TestID(60000)}
	if removal == "rm" {
		m.Title = kit.Canary
	}
	c := kit.Must[*engine.Context](t)(s.Create(ctx, m))
	l, b := listing.New(s), c.Active()
	kit.Append(t, b, engine.Draft{ID: kit.TestID(1), Body: []byte(`{"kept":"` + strings.Repeat("kept ", 400) + `"}`)})
	if removal == "branch rm" {
		b = kit.Must[*engine.Branch](t)(b.Fork(ctx, "b-"+kit.Canary, 1))
	}
	kit.Append(t, b, engine.Draft{ID: kit.TestID(2), Body: kit.Secret(size)})
	for _, err := range l.List(ctx, listing.ListOptions{}) {
		kit.Check(t, err)
	}
	kit.Check(t, purgeStates[state](ctx, c), removals[removal](ctx, c), c.Close())
	for _, err := range l.List(ctx, listing.ListOptions{}) {
		kit.Check(t, err)
	}
	return s
}

func purgeAll(s *engine.Store) error {
	for _, err := range trash.Purge(context.Background(), s, nil, 0, false) {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestPurgeLeavesNothing: whatever state a context is in, a purge ends with no file that holds what it removed.
func TestPurgeLeavesNothing(t *testing.T) {
	purges := map[string]func(s *engine.Store) error{
		"trash empty": purgeAll,
		"gc":          func(s *engine.Store) error { return kit.CollectAll(s, 0) },
		"gc of some": func(s *engine.Store) error {
			for _, err := range trash.Collect(context.Background(), s, trash.CollectOptions{Contexts: []uuid.UUID{kit.TestID(60000)}}) {
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	for state := range purgeStates {
		for removal := range removals {
			for by, purge := range purges {
				for _, size := range []int{10, 3000, 70_000} {
					t.Run(fmt.Sprint(state, "/", removal, "/", by, "/", size), func(t *testing.T) {
						disk := crashfs.New()
						s := newPurgeStore(t, disk, state, removal, size)
						defer s.Close()
						kit.Check(t, purge(s))
						found, err := kit.FilesWithCanary(disk)
						if err != nil || len(found) > 0 {
							t.Fatalf("the canary is in %v, %v", found, err)
						}
						if removal != "rm" {
							c := kit.Must[*engine.Context](t)(s.Context(t.Context(), kit.TestID(60000)))
							kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"more":1}`)})
							kit.Check(t, c.Seal(t.Context()), c.Close())
						}
						if found, err := kit.FilesWithCanary(disk); err != nil || len(found) > 0 {
							t.Errorf("after another seal, the canary is in %v, %v", found, err)
						}
						kit.NothingFound(t, "after the purge", s, checking.Options{ReadData: true})
					})
				}
			}
		}
	}
}

// TestPurgeRotatesOnce: a purge begins one new log for all that it removes from a context, and none if it removes nothing.
func TestPurgeRotatesOnce(t *testing.T) {
	ctx := t.Context()
	c, _ := kit.NewContext(t, engine.WithSealBytes(-1))
	kit.Fill(t, c.Active(), 3)
	kit.Check(t, c.Seal(ctx))
	log := func() uint64 {
		t.Helper()
		kit.Check(t, c.Refresh(ctx))
		number, _ := journal.ParseName(kit.Must[string](t)(c.Index.NewestLog()))
		return number
	}
	rotations := func(n int) uint64 {
		before := log()
		for i := range n {
			name := fmt.Sprint("b", i)
			kit.Fill(t, kit.Must[*engine.Branch](t)(c.NewBranch(ctx, name)), 1)
			kit.Check(t, c.Remove(ctx, name))
		}
		kit.Check(t, kit.CollectAll(c.Store, 0), purgeAll(c.Store))
		return log() - before
	}
	if none := rotations(0); none != 0 {
		t.Errorf("%d new logs, and nothing was purged", none)
	}
	if one, many := rotations(1), rotations(20); one == 0 || many != one {
		t.Errorf("%d new logs for one line, %d for twenty", one, many)
	}
}
