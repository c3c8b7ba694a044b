package storetest_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// A creation is killed after it renamed the folder, before it synced the store's folder. Another process appends, which is
// acknowledged. Then the power goes.
func TestKilledCreation(t *testing.T) {
	ctx := context.Background()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk)...))
	id := kit.TestID(77)
	disk.Fail(func(op crashfs.Op) error {
		if op.Kind == crashfs.KindSyncDir && op.Path == "." {
			if _, err := disk.Lstat(id.String()); err == nil {
				runtime.Goexit()
			}
		}
		return nil
	})
	ended := make(chan bool)
	go func() {
		defer close(ended)
		_, _ = s.Create(ctx, engine.Metadata{ID: id})
	}()
	<-ended
	disk.Fail(nil)
	other := kit.Must[*engine.Store](t)(kit.OpenCrash(disk.Clone()))
	_ = other
	fs := disk.Clone() // all locks are free: the process is gone
	other = kit.Must[*engine.Store](t)(kit.OpenCrash(fs))
	c := kit.Must[*engine.Context](t)(other.Context(ctx, id))
	kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"a":1}`)})
	after := fs.Crash(crashfs.Lose)
	again := kit.Must[*engine.Store](t)(kit.OpenCrash(after))
	d, err := again.Context(ctx, id)
	if err != nil {
		t.Fatalf("the context with an acknowledged message: %v", err)
	}
	if n := len(kit.Load(t, d.Active())); n != 1 {
		t.Errorf("%d messages", n)
	}
}
