package engine

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// TestFolderMadeAnew: a branch folder that is removed, since all is archived, and made anew for a new message, is
// another one also for handles that have the first one open: for one that reads, and for one that appends and folds.
func TestFolderMadeAnew(t *testing.T) {
	ctx := context.Background()
	c, dir := newContext(t, WithFoldBytes(-1))
	path := filepath.Join(dir, "messages", "branch-main")
	archived := func(other *Context) {
		t.Helper()
		must[Archived](t)(c.Archive(ctx, ArchiveOptions{}))
		must[[]*Message](t)(other.Active().Load(ctx))
		// As the archive found and left it: the handle opens the folder right before it is removed.
		check(t, os.Mkdir(path, 0o700))
		if !other.dir.HasFolder("branch-main") {
			t.Fatal("the handle does not see the folder")
		}
		check(t, os.Remove(path))
	}
	fill(t, c.Active(), 5)
	other := must[*Context](t)(c.store.Context(ctx, c.ID()))
	archived(other)
	for range 2 {
		fill(t, c.Active(), 2)
		check(t, c.log.Fold(ctx, false))
		check(t, other.Refresh(ctx))
	}
	check(t, c.Fold(ctx)) // of the first two messages there is no journal any more
	for _, m := range must[[]*Message](t)(other.Active().Load(ctx)) {
		if m.Unavailable != nil {
			t.Errorf("position %d: %v", m.Position, m.Unavailable)
		}
	}
	check(t, other.Close())

	other = must[*Context](t)(c.store.Context(ctx, c.ID()))
	archived(other)
	var a Appended
	for range 3 { // the first one finds out, and the fold makes its file
		a = must[Appended](t)(other.Active().Append(ctx, Draft{Body: []byte(`{}`)}))
	}
	if _, err := os.Lstat(filepath.Join(path, a.ID.String()+".json")); err != nil {
		t.Error(err)
	}
	check(t, other.Fold(ctx))
	if names, err := os.ReadDir(path); err != nil || len(names) != 3 {
		t.Errorf("%d message files, %v", len(names), err)
	}
	check(t, other.Close())
}
