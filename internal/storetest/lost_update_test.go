package storetest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestReadOnBeforeCommit: a seal in the background reads what another process committed while a commit begins. The commit
// builds on that, too.
func TestReadOnBeforeCommit(t *testing.T) {
	ctx := context.Background()
	disk := crashfs.New()
	nothing := func(string) {}
	hooked := &hookedFS{FS: disk, open: nothing, remove: nothing}
	look := nothing
	hooked.look = func(name string) { look(name) }
	s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.Manual(1<<10, engine.WithFS(hooked))...))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"a":1}`)})
	kit.Check(t, c.Refresh(ctx))

	// The other process leaves metadata.json as it was.
	other := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(disk), engine.WithFiles(engine.FilesHeld)))
	defer other.Close()
	d := kit.Must[*engine.Context](t)(other.Context(ctx, c.ID()))
	defer d.Close()
	kit.Must[*engine.Branch](t)(d.NewBranch(ctx, "of another process"))
	read := false
	look = func(name string) {
		if !read && strings.HasSuffix(name, "metadata.json") {
			read = true
			kit.Check(t, c.Index.Refresh())
		}
	}
	kit.Must[*engine.Branch](t)(c.NewBranch(ctx, "second"))
	look = nothing
	if !read {
		t.Fatal("nothing read on")
	}
	for _, c := range []*engine.Context{c, d} {
		kit.Check(t, c.Refresh(ctx))
		for _, name := range []string{"of another process", "second"} {
			if _, err := c.Branch(name); err != nil {
				t.Error(err)
			}
		}
	}
}
