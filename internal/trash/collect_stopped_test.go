package trash_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// TestCollectGivesUp: a collection that has copied one end of a line gives up, and is killed while it removes the copy.
// No part of that stays in the trash.
func TestCollectGivesUp(t *testing.T) {
	ctx := context.Background()
	for kill := 1; ; kill++ {
		disk := crashfs.New()
		s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk), engine.WithFoldBytes(-1)))
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
		kit.Fill(t, c.Active(), 3)
		for _, name := range []string{"alt", "beta"} {
			kit.Fill(t, kit.Must[*engine.Branch](t)(c.NewBranch(ctx, name)), 3)
			kit.Check(t, c.Remove(ctx, name))
		}
		kit.Check(t, c.Close())
		cancelled, cancel := context.WithCancel(ctx)
		copied, removed, dead := false, 0, false
		disk.Fail(func(o crashfs.Op) error {
			switch {
			case o.Kind == crashfs.KindRename && strings.Contains(o.Path, "/trash/.") && !copied:
				copied = true
				cancel()
			case copied && (o.Kind == crashfs.KindRemove || o.Kind == crashfs.KindRename):
				removed++
			}
			if dead = dead || removed == kill; dead {
				return errors.New("killed")
			}
			return nil
		})
		for _, err := range trash.Collect(cancelled, s, trash.CollectOptions{Grace: trash.DefaultGrace}) {
			if err == nil {
				t.Error("something was collected")
			}
		}
		cancel()
		if !copied {
			t.Fatal("nothing was copied")
		}
		if removed < kill {
			return
		}
		again := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(disk.Clone())))
		for x, err := range trash.List(ctx, again) {
			if kit.Check(t, err); x.Problem != nil {
				t.Errorf("killed at removal %d: %s: %v", kill, x.Path, x.Problem)
			}
		}
		kit.Finish(t, trash.Collect(ctx, again, trash.CollectOptions{Grace: trash.DefaultGrace}))
	}
}
