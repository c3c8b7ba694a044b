package storetest_test

import (
	"context"
	"path"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// TestCollectCosts: a collection with its sweep opens each context once, lists each context's trash once, and looks at
// each thing in it once. The trash of the store is listed again at the end, since a context may have come into it.
func TestCollectCosts(t *testing.T) {
	ctx := context.Background()
	for _, dry := range []bool{false, true} {
		k := newCounted(t, engine.WithTextThreshold(1<<10), engine.WithSealBytes(-1))
		var names []string
		for i := range 4 {
			c := kit.Must[*engine.Context](t)(k.store.Create(ctx, engine.Metadata{ID: kit.TestID(60000 + i)}))
			at := kit.Append(t, c.Active(), engine.Draft{Body: []byte(kit.LargeBody("a"))})
			kit.Check(t, c.Active().Replace(ctx, at.ID, engine.Draft{Body: []byte(kit.LargeBody("b"))}))
			gone := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "gone", 1))
			kit.Fill(t, gone, 3)
			kit.Check(t, c.Remove(ctx, "gone"), c.Close())
			names = append(names, c.ID().String())
		}
		// From now on there is an item of each kind, and nothing to do.
		kit.Finish(t, trash.Collect(ctx, k.store, trash.CollectOptions{Grace: trash.DefaultGrace}))
		opened, listed := map[string]int{}, map[string]int{}
		for _, o := range k.during(func() {
			kit.Finish(t, trash.Collect(ctx, k.store, trash.CollectOptions{Grace: trash.DefaultGrace, DryRun: dry}))
		}) {
			switch o.Kind {
			case crashfs.KindOpen:
				opened[o.Path]++
			case crashfs.KindReadDir:
				listed[o.Path]++
			}
		}
		for _, name := range names {
			if n := opened[name]; n != 1 {
				t.Errorf("dry run %v: context %s is opened %d times", dry, name, n)
			}
			if n := listed[name+"/trash"]; n != 1 {
				t.Errorf("dry run %v: its trash is listed %d times", dry, n)
			}
		}
		for file, n := range opened {
			if n > 1 && path.Ext(file) != "" && path.Base(file) != "item.json" {
				t.Errorf("dry run %v: %s is opened %d times", dry, file, n)
			}
			if n > 2 && path.Base(file) == "item.json" { // what it says, and what it may refer to
				t.Errorf("dry run %v: %s is opened %d times", dry, file, n)
			}
		}
		if n := listed["trash"]; n > 2 {
			t.Errorf("dry run %v: the store's trash is listed %d times", dry, n)
		}
	}
}

// TestReadOnlyCosts: what only shows a context opens none of the others, and nothing that it does not show.
func TestReadOnlyCosts(t *testing.T) {
	ctx := context.Background()
	k := newCounted(t, engine.WithTextThreshold(1<<10), engine.WithSealBytes(-1))
	for i := range 3 {
		c := kit.Must[*engine.Context](t)(k.store.Create(ctx, engine.Metadata{ID: kit.TestID(60000 + i)}))
		kit.Fill(t, c.Active(), 20)
		kit.Append(t, c.Active(), engine.Draft{Body: []byte(kit.LargeBody("a"))})
		kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "alt", 5))
		kit.Check(t, c.Seal(ctx), c.Close())
	}
	one := kit.TestID(60000)
	with := func(f func(c *engine.Context)) func(*engine.Store) {
		return func(s *engine.Store) {
			c := kit.Must[*engine.Context](t)(s.Context(ctx, one))
			f(c)
			kit.Check(t, c.Close())
		}
	}
	never := []string{"staging", "trash", "locks", "collected.jsonl"}
	for name, verb := range map[string]struct {
		do   func(*engine.Store)
		less []string // what it does not open besides
	}{
		"ls":   {func(s *engine.Store) { kit.List(t, s) }, []string{"messages", "blobs", ".zst"}},
		"show": {with(func(c *engine.Context) { kit.Must[[]*engine.Message](t)(c.Active().Last(ctx, 2)) }), []string{"blobs", "summaries"}},
		"du CONTEXT": {with(func(c *engine.Context) {
			listing.Summarise(c)
			kit.Must[[]engine.BranchInfo](t)(c.Branches(ctx))
		}), []string{"messages", "blobs", ".zst", "summaries"}},
		"meta": {with(func(c *engine.Context) { c.Metadata() }), []string{"messages", "blobs", ".zst", "summaries"}},
		"branch ls": {with(func(c *engine.Context) {
			kit.Must[[]engine.BranchInfo](t)(c.Branches(ctx))
		}), []string{"messages", "blobs", ".zst", "summaries"}},
	} {
		calls := k.during(func() {
			s := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(k.disk), engine.ReadOnly()))
			verb.do(s)
			kit.Check(t, s.Close())
		})
		for _, o := range calls {
			if o.Kind != crashfs.KindOpen && o.Kind != crashfs.KindReadDir {
				continue
			}
			for _, what := range append(verb.less, never...) {
				if strings.Contains(o.Path, what) {
					t.Errorf("%s: %v", name, o)
				}
			}
			for _, other := range []int{60001, 60002} {
				if name != "ls" && strings.Contains(o.Path, kit.TestID(other).String()) {
					t.Errorf("%s: %v", name, o)
				}
			}
		}
	}
}
