package storetest_test

import (
	"context"
	"testing"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestNoFilesOfArchived: at some operation of another process that archives, a handle reads on. Later commits and seals
// follow. Neither a flush nor the first commit of the handle makes files of archived messages again.
func TestNoFilesOfArchived(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, act := range map[string]func(c *engine.Context) error{
		"flush":  func(c *engine.Context) error { return c.Flush(ctx) },
		"commit": func(c *engine.Context) error { return c.Switch(ctx, "b") },
	} {
		for k, done := 1, false; !done; k++ {
			done = noFilesOfArchived(t, name, k, act)
		}
	}
}

// noFilesOfArchived reads on at the k-th operation, and reports whether there was none.
func noFilesOfArchived(t *testing.T, name string, k int, act func(c *engine.Context) error) (done bool) {
	t.Helper()
	ctx := context.Background()
	disk := crashfs.New()
	w := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk, engine.WithFiles(engine.FilesOnReturn))...))
	writer := kit.Must[*engine.Context](t)(w.Create(ctx, engine.Metadata{}))
	r := kit.Must[*engine.Store](t)(kit.OpenCrash(disk, engine.WithFiles(engine.FilesOnReturn)))
	c := kit.Must[*engine.Context](t)(r.Context(ctx, writer.ID()))
	kit.Fill(t, writer.Active(), 3)
	kit.Must[*engine.Branch](t)(writer.Active().Fork(ctx, "b", 3))
	kit.Load(t, c.Active())
	ops, read := len(disk.Ops()), false
	disk.Fail(func(o crashfs.Op) error {
		if !read && o.Index == ops+k {
			read = true
			kit.Check(t, c.Refresh(ctx))
		}
		return nil
	})
	if done := kit.Must[archiving.Result](t)(kit.Archive(ctx, writer, archiving.Options{})); done.Messages != 3 {
		t.Fatalf("archived %+v", done)
	}
	disk.Fail(nil)
	for range 2 {
		kit.Check(t, writer.Update(ctx, func(m *engine.Metadata) error { m.Title += "x"; return nil }))
		kit.Check(t, writer.Seal(ctx))
	}
	kit.Check(t, act(c))
	line := writer.Metadata().Branches[0].Line
	for e, err := range writer.Index.All(ctx, line, 0, 3) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := disk.Lstat(writer.ID().String() + "/messages/branch-main/" + e.ID.String() + ".json"); err == nil {
			t.Errorf("%s, operation %d: message %d has a file again", name, k, e.Position)
		}
	}
	kit.Check(t, c.Close(), r.Close(), writer.Close(), w.Close())
	return !read
}
