package storetest_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestStaleHandle uses a handle that is two logs behind. At each of its calls, another process seals these logs: they are
// gone where the handle looks next. What is acknowledged is there.
func TestStaleHandle(t *testing.T) {
	ctx := context.Background()
	for name, use := range map[string]func(c *engine.Context) error{
		"append": func(c *engine.Context) error {
			at, err := c.Active().Append(ctx, staleDraft(4))
			if err == nil && at.Position != 3 {
				err = fmt.Errorf("at position %d", at.Position)
			}
			return err
		},
		"replace": func(c *engine.Context) error { return c.Active().Replace(ctx, kit.TestID(2), staleDraft(2)) },
		"read": func(c *engine.Context) error {
			if err := c.Refresh(ctx); err != nil {
				return err
			}
			all, err := c.Active().Load(ctx)
			if err == nil && (len(all) != 3 || slices.ContainsFunc(all, func(m *engine.Message) bool { return m.Unavailable != nil })) {
				err = fmt.Errorf("%d messages", len(all))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := 1
			for useStale(t, k, use) {
				k++
			}
			if k < 5 {
				t.Errorf("%d calls", k)
			}
		})
	}
}

func staleDraft(n int) engine.Draft {
	return engine.Draft{ID: kit.TestID(n), Body: fmt.Appendf(nil, `{"n":%d}`, n)}
}

// useStale seals at the k-th call of use, and reports whether there was one.
func useStale(t *testing.T, k int, use func(c *engine.Context) error) (there bool) {
	t.Helper()
	ctx := context.Background()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk, engine.InOrder())...))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
	kit.Append(t, c.Active(), staleDraft(1))
	others := kit.Must[*engine.Store](t)(kit.OpenCrash(disk, engine.InOrder()))
	theirs := kit.Must[*engine.Context](t)(others.Context(ctx, c.ID()))
	for n := range 2 {
		kit.Append(t, theirs.Active(), staleDraft(2+n))
		kit.Check(t, theirs.Exclusively(ctx, theirs.Index.Rotate))
	}
	calls := 0
	disk.Fail(func(crashfs.Op) error {
		if calls++; calls != k {
			return nil
		}
		there = true
		kit.Check(t, theirs.Dir.SealLock.Acquire(ctx), theirs.Index.Seal(archive.Options{}), theirs.Dir.SealLock.Release())
		return nil
	})
	if err := use(c); err != nil {
		t.Errorf("at call %d: %v", k, err)
	}
	disk.Fail(nil)
	kit.Check(t, c.Close(), s.Close(), theirs.Close(), others.Close())
	got, err := kit.Read(disk, kit.TestID(60000))
	if n := len(got["main"]); err != nil || n < 3 {
		t.Errorf("at call %d: %d messages, %v", k, n, err)
	}
	return there
}
