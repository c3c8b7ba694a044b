package engine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// TestCollectGivesUp: a collection that has copied one end of a line gives up, and is killed while it removes the copy.
// No part of that stays in the trash.
func TestCollectGivesUp(t *testing.T) {
	ctx := context.Background()
	for kill := 1; ; kill++ {
		disk := crashfs.New()
		s := must[*Store](t)(Init("disk", withFS(disk), WithFoldBytes(-1)))
		c := must[*Context](t)(s.Create(ctx, Metadata{}))
		fill(t, c.Active(), 3)
		for _, name := range []string{"alt", "beta"} {
			fill(t, must[*Branch](t)(c.NewBranch(ctx, name)), 3)
			check(t, c.Remove(ctx, name))
		}
		check(t, c.Close())
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
		for _, err := range s.Collect(cancelled, Collecting{Grace: DefaultGrace}) {
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
		again := must[*Store](t)(Open("disk", withFS(disk.Clone())))
		for x, err := range again.Trash(ctx) {
			if check(t, err); x.Problem != nil {
				t.Errorf("killed at removal %d: %s: %v", kill, x.Path, x.Problem)
			}
		}
		finish(t, again.Collect(ctx, Collecting{Grace: DefaultGrace}))
	}
}
