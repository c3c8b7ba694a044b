package erase_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// TestEraseArchivedShared: a payload that another archived message has too stays, also where that is in another
// context; one that only the erased message had goes.
func TestEraseArchivedShared(t *testing.T) {
	ctx := context.Background()
	for _, elsewhere := range []bool{false, true} {
		c, folder := kit.NewContext(t, engine.WithTextThreshold(1<<10))
		dir := filepath.Dir(folder)
		first := kit.Append(t, c.Active(), engine.Draft{Body: kit.Secret(3000)})
		other := c
		if elsewhere {
			other = kit.Must[*engine.Context](t)(c.Store.Create(ctx, engine.Metadata{}))
		}
		second := kit.Append(t, other.Active(), engine.Draft{Body: kit.Secret(3000)})
		for _, x := range []*engine.Context{c, other} {
			kit.Must[archiving.Result](t)(kit.Archive(ctx, x, archiving.Options{}))
		}
		kit.Collect(t, c.Store, trash.CollectOptions{Grace: 0})
		_, err := kit.Erase(c.Store, c.ID(), first.ID, erase.Options{})
		kit.Check(t, err, other.Refresh(ctx))
		m := kit.Must[*engine.Message](t)(other.Active().Message(ctx, second.ID))
		if body, err := m.Body(ctx); err != nil || string(body) != string(kit.Secret(3000)) {
			t.Errorf("the other message: %.40s, %v", body, err)
		}
		_, err = kit.Erase(c.Store, other.ID(), second.ID, erase.Options{})
		kit.Check(t, err)
		if found := inside(t, dir, kit.Canary); len(found) > 0 {
			t.Errorf("the canary is in %v", found)
		}
	}
}
