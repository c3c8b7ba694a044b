package storetest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestRefreshBesideReading: while a refresh reads metadata, another goroutine of the same handle reads on in the
// logs, as a seal in the background does, or refreshes too. Both then show what is newest.
func TestRefreshBesideReading(t *testing.T) {
	for name, beside := range map[string]func(c *engine.Context) error{
		"the logs alone": func(c *engine.Context) error { return c.Index.Refresh() },
		"a refresh":      func(c *engine.Context) error { return c.Refresh(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			k := 0
			for refreshBeside(t, k, beside) {
				k++
			}
			if k == 0 {
				t.Error("a refresh does not look at metadata.json")
			}
		})
	}
}

// refreshBeside commits and reads on beside the k-th operation on metadata.json, and reports whether there was one.
func refreshBeside(t *testing.T, k int, beside func(c *engine.Context) error) (read bool) {
	t.Helper()
	ctx := context.Background()
	disk := crashfs.New()
	w := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk, engine.WithFiles(engine.FilesHeld))...))
	writer := kit.Must[*engine.Context](t)(w.Create(ctx, engine.Metadata{}))
	r := kit.Must[*engine.Store](t)(kit.OpenCrash(disk, engine.WithFiles(engine.FilesHeld)))
	c := kit.Must[*engine.Context](t)(r.Context(ctx, writer.ID()))
	kit.Must[*engine.Branch](t)(writer.Active().Fork(ctx, "first", 0))
	seen := 0
	disk.Fail(func(o crashfs.Op) error {
		if read || !strings.HasSuffix(o.Path, "/metadata.json") {
			return nil
		}
		if seen++; seen > k {
			read = true
			kit.Must[*engine.Branch](t)(writer.Active().Fork(ctx, "second", 0))
			kit.Check(t, beside(c))
		}
		return nil
	})
	kit.Check(t, c.Refresh(ctx))
	disk.Fail(nil)
	kit.Must[*engine.Branch](t)(c.Branch("first"))
	if _, err := c.Branch("second"); read && err != nil {
		t.Errorf("operation on metadata.json %d: %v", k, err)
	}
	kit.Check(t, c.Close(), r.Close(), writer.Close(), w.Close())
	return read
}
