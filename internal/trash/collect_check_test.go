package trash_test

import (
	"context"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestCheckAfterCollect: a purge that is stopped when the lines of two branches are cut, of which one begins on the
// other, and the metadata has not forgotten them: that is no damage.
func TestCheckAfterCollect(t *testing.T) {
	ctx := context.Background()
	for k := 1; ; k++ {
		disk := crashfs.New()
		s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk, engine.InOrder())...))
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
		kit.Fill(t, c.Active(), 1)
		first := kit.Must[*engine.Branch](t)(c.NewBranch(ctx, "first"))
		kit.Fill(t, first, 1)
		kit.Must[*engine.Branch](t)(first.Fork(ctx, "second", 1))
		kit.Check(t, c.Remove(ctx, "first"))
		kit.Check(t, c.Remove(ctx, "second"))
		disk.CutAt(len(disk.Ops()) + k)
		err := kit.CollectAll(s, 0)
		for _, choice := range []crashfs.Choice{crashfs.Keep, crashfs.Lose} {
			again := kit.Must[*engine.Store](t)(kit.OpenCrash(disk.Crash(choice)))
			if err := kit.VerifyRepair(ctx, again); err != nil {
				t.Fatalf("power cut at operation %d (%s), disk %s: %v", k, kit.LastOp(disk), choice, err)
			}
			kit.Check(t, again.Close())
		}
		if !disk.PowerCut() {
			kit.Check(t, err)
			return
		}
	}
}
