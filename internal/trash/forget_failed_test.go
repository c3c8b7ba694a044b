package trash_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/trash"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestForgetAfterFailure: a collection that cuts messages, and then cannot remove their files, removes the context from
// the derived data all the same.
func TestForgetAfterFailure(t *testing.T) {
	ctx := t.Context()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk)))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	kit.Fill(t, c.Active(), 2)
	kit.Check(t, c.Flush(ctx), c.Active().Rewind(ctx, 1), disk.Mkdir(engine.DerivedFolder),
		vfs.WriteNew(disk, engine.DerivedFolder+"/cache", nil))
	var forgotten []uuid.UUID
	s.OnForget("cache", func(_ context.Context, ids []uuid.UUID) error {
		forgotten = append(forgotten, ids...)
		return nil
	})
	disk.Fail(func(o crashfs.Op) error {
		if o.Kind == crashfs.KindRemove && strings.Contains(o.Path, ctxfolder.Messages+"/branch-main/") {
			return syscall.EIO
		}
		return nil
	})
	var failed error
	for _, err := range trash.Collect(ctx, s, trash.CollectOptions{}) {
		failed = errors.Join(failed, err)
	}
	disk.Fail(nil)
	if !errors.Is(failed, syscall.EIO) || !slices.Contains(forgotten, c.ID()) || s.IsErasing() {
		t.Errorf("%v; forgotten %v, note %v", failed, forgotten, s.IsErasing())
	}
	kit.Check(t, c.Close(), s.Close())
}
