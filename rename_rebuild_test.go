package ctxdir

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
)

// TestRebuildDuringARename: an index that is made anew while a branch's folder does not bear its new name yet has every message.
func TestRebuildDuringARename(t *testing.T) {
	ctx := context.Background()
	c, dir := newContext(t, WithFoldBytes(-1))
	fill(t, c.Active(), 20)
	if err := c.Fold(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.log.Exclusively(ctx, c.log.Retire); err != nil {
		t.Fatal(err)
	}
	// What a rename has done when the power goes before the folder's own.
	m := c.Metadata()
	m.Branches[0].Name, m.ActiveBranch, m.Lines[0].Folder = "other", "other", "branch-other"
	m.Renaming = &ctxfolder.Renaming{From: "branch-main", To: "branch-other"}
	m.Revision++
	if _, err := c.dir.WriteMetadata(m); err != nil {
		t.Fatal(err)
	}
	for _, cache := range []string{"index.json", "index"} {
		if err := os.RemoveAll(filepath.Join(dir, cache)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		again := must[*Context](t)(c.store.Context(ctx, c.ID()))
		ms := must[[]*Message](t)(again.Active().Load(ctx))
		for i, m := range ms {
			if m.Unavailable != nil {
				t.Errorf("position %d: %v", i, m.Unavailable)
			}
		}
		if len(ms) < 20 {
			t.Errorf("%d messages", len(ms))
		}
		fill(t, again.Active(), 1) // finishes the rename
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
