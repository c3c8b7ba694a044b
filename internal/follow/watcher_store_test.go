package follow_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/follow"
	"github.com/ctxdir/ctxdir/internal/legacytest"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// TestWatchStore follows a store in which contexts come and go.
func TestWatchStore(t *testing.T) {
	for name, opts := range map[string][]engine.Option{"hints": nil, "polling": {polled()}} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			s, dir := kit.NewStore(t, opts...)
			other := kit.Must[*engine.Store](t)(kit.Open(dir))
			defer other.Close()
			old := kit.Must[*engine.Context](t)(other.Create(ctx, engine.Metadata{}))
			defer old.Close()
			body := []byte(`{"role":"user","content":"x"}`)
			kit.Append(t, old.Active(), engine.Draft{Body: body})
			w := kit.Must[*follow.Watcher](t)(follow.Watch(ctx, s))
			defer w.Close()
			kit.Append(t, old.Active(), engine.Draft{Body: body})
			wantEvents(t, w, "message.appended main 1")
			added := kit.Must[*engine.Context](t)(other.Create(ctx, engine.Metadata{Title: "new"}))
			defer added.Close()
			kit.Append(t, added.Active(), engine.Draft{Body: body})
			wantEvents(t, w, "context.created", "message.appended main 0")
			gone := kit.Must[engine.TrashItem](t)(other.Delete(ctx, added.ID()))
			wantEvents(t, w, "context.removed")
			kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, other, gone.Item))
			back := kit.Must[*engine.Context](t)(other.Context(ctx, added.ID()))
			defer back.Close()
			kit.Append(t, back.Active(), engine.Draft{Body: body})
			wantEvents(t, w, "context.created", "message.appended main 1") // and not again what it has been told
			id := legacytest.ID(500)
			if err := os.WriteFile(filepath.Join(dir, id+".json"), []byte(legacytest.Whole(id)), 0o600); err != nil {
				t.Fatal(err)
			}
			c := kit.Must[*engine.Context](t)(other.Context(ctx, uuid.MustParse(id)))
			defer c.Close()
			if e := wantEvents(t, w, "context.migrated"); e.Context != c.ID() {
				t.Errorf("%+v", e)
			}
		})
	}
}

// TestWatchMany follows more contexts than are kept open.
func TestWatchMany(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t)
	const many = 3 * follow.MaxAwake
	var all []*engine.Context
	for range many {
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
		defer c.Close()
		all = append(all, c)
	}
	w := kit.Must[*follow.Watcher](t)(follow.Watch(ctx, s))
	defer w.Close()
	for round := range 3 {
		for _, c := range all {
			kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{}`)})
		}
		seen := map[uuid.UUID]bool{}
		n := 0
		for e, err := range w.Events(ctx) {
			if err != nil || e.Kind != follow.MessageAppended || e.Message.Position != int64(round) || seen[e.Context] {
				t.Fatal(line(e), err)
			}
			seen[e.Context] = true
			if n++; n == many {
				break
			}
		}
	}
	if w.Awake() > follow.MaxAwake {
		t.Errorf("%d contexts are open", w.Awake())
	}
}

// TestWatchLeavesNothing: no descriptor and no goroutine is left of a watcher that was closed, while events were awaited
// or not. A bubble ends only when all its goroutines have ended.
func TestWatchLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		s, _ := kit.NewStore(t)
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
		defer c.Close()
		kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{}`)})
		begun := func() (w *follow.Watcher) {
			w = kit.Must[*follow.Watcher](t)(follow.Watch(ctx, s))
			kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{}`)})
			events(t, w, 1)
			return w
		}
		if err := begun().Close(); err != nil { // what is opened once and stays
			t.Fatal(err)
		}
		files := kit.Descriptors(t)
		for range 5 {
			w := begun()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for e, err := range w.Events(ctx) {
					t.Error(e, err)
				}
			}()
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			<-ended
			if err := w.Close(); err != nil {
				t.Errorf("the second Close: %v", err)
			}
		}
		if now := kit.Descriptors(t); now > files {
			t.Errorf("%d descriptors, there were %d", now, files)
		}
	})
}
