package storetest_test

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// Each attempt to end a log makes a file for the next one. Where the end record cannot be written, the files stay.
func TestBlankLogs(t *testing.T) {
	ctx := context.Background()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk)...))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"a":1}`)})
	first, err := c.Index.NewestLog()
	kit.Check(t, err)
	disk.Fail(func(op crashfs.Op) error {
		if op.Kind == crashfs.KindWrite && strings.HasSuffix(op.Path, first) {
			return syscall.ENOSPC
		}
		return nil
	})
	for range 10 {
		t.Log(c.Seal(ctx))
	}
	disk.Fail(nil)
	kit.Check(t, c.Seal(ctx))
	kit.Check(t, c.Seal(ctx))
	n := 0
	for e, err := range disk.ReadDir(c.ID().String()) {
		kit.Check(t, err)
		if strings.HasPrefix(e.Name(), "log-") {
			n++
		}
	}
	if n > 2 {
		t.Errorf("%d logs", n)
	}
}
