package storetest_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestFolderMadeAnew: a branch folder that is removed, since all is archived, and made anew for a new message, is
// another one also for handles that have the first one open: for one that reads, and for one that appends and seals.
func TestFolderMadeAnew(t *testing.T) {
	ctx := context.Background()
	c, dir := kit.NewContext(t, engine.WithSealBytes(-1))
	path := filepath.Join(dir, "messages", "branch-main")
	archived := func(other *engine.Context) {
		t.Helper()
		kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{}))
		kit.Load(t, other.Active())
		// As the archive found and left it: the handle opens the folder right before it is removed.
		kit.Check(t, os.Mkdir(path, 0o700))
		other.Dir.Files("branch-main").Release()
		kit.Check(t, os.Remove(path))
	}
	kit.Fill(t, c.Active(), 5)
	other := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
	archived(other)
	for range 2 {
		kit.Fill(t, c.Active(), 2)
		kit.Check(t, c.Seal(ctx))
		kit.Check(t, other.Refresh(ctx))
	}
	for _, m := range kit.Load(t, other.Active()) {
		if m.Unavailable != nil {
			t.Errorf("position %d: %v", m.Position, m.Unavailable)
		}
	}
	kit.Check(t, other.Close())

	other = kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
	archived(other)
	var a engine.AppendResult
	for range 3 { // the first one finds out, and the seal makes its file
		a = kit.Append(t, other.Active(), engine.Draft{Body: []byte(`{}`)})
	}
	if _, err := os.Lstat(filepath.Join(path, a.ID.String()+".json")); err != nil {
		t.Error(err)
	}
	kit.Check(t, other.Seal(ctx))
	if names, err := os.ReadDir(path); err != nil || len(names) != 3 {
		t.Errorf("%d message files, %v", len(names), err)
	}
	kit.Check(t, other.Close())
}
