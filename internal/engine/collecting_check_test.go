package engine

import (
	"context"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// TestCheckAfterCollect: a collection that is stopped when the lines of two branches are cut, of which one begins on
// the other, and metadata.json has not forgotten them: that is no damage.
func TestCheckAfterCollect(t *testing.T) {
	ctx := context.Background()
	for k := 1; ; k++ {
		disk := crashfs.New()
		s := must[*Store](t)(Init("disk", onCrashFS(disk, inOrder())...))
		c := must[*Context](t)(s.Create(ctx, Metadata{ID: testID(60000)}))
		fill(t, c.Active(), 1)
		first := must[*Branch](t)(c.NewBranch(ctx, "first"))
		fill(t, first, 1)
		must[*Branch](t)(first.Fork(ctx, "second", 1))
		check(t, c.Remove(ctx, "first"))
		check(t, c.Remove(ctx, "second"))
		disk.CutAt(len(disk.Ops()) + k)
		err := collectAll(s, DefaultGrace)
		for _, choice := range []crashfs.Choice{crashfs.Keep, crashfs.Lose} {
			again := must[*Store](t)(openCrash(disk.Crash(choice)))
			if err := settles(ctx, again); err != nil {
				t.Fatalf("power cut at operation %d (%s), disk %s: %v", k, lastOp(disk), choice, err)
			}
			check(t, again.Close())
		}
		if !disk.PowerCut() {
			check(t, err)
			return
		}
	}
}
