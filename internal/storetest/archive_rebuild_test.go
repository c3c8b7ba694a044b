package storetest_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestRebuiltBesideArchiving: a handle whose index was made anew in memory, because journals were missing, follows what
// another one then writes and archives.
func TestRebuiltBesideArchiving(t *testing.T) {
	ctx := context.Background()
	c, dir := kit.NewContext(t, engine.WithFoldBytes(-1))
	kit.Fill(t, c.Active(), 5)
	kit.Check(t, c.Close())
	for _, path := range kit.Must[[]string](t)(filepath.Glob(filepath.Join(dir, "journal-*"))) {
		kit.Check(t, os.Remove(path))
	}
	reader := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
	defer reader.Close()
	kit.Must[[]*engine.Message](t)(reader.Active().Last(ctx, 2))
	other := kit.Must[*engine.Store](t)(kit.Open(filepath.Dir(dir), engine.WithFoldBytes(-1)))
	defer other.Close()
	theirs := kit.Must[*engine.Context](t)(other.Context(ctx, c.ID()))
	defer theirs.Close()
	kit.Fill(t, theirs.Active(), 1)
	kit.Must[engine.ArchiveResult](t)(theirs.Archive(ctx, engine.ArchiveOptions{}))
	ms := kit.Load(t, reader.Active())
	for _, m := range ms {
		if m.Unavailable != nil {
			t.Errorf("position %d: %v", m.Position, m.Unavailable)
		}
	}
	if len(ms) < 5 {
		t.Errorf("%d messages", len(ms))
	}
}

// TestRebuiltInVain: an index that was made in memory, because journals went each time that index.json was read, is
// left for index.json as soon as a message is not where it says.
func TestRebuiltInVain(t *testing.T) {
	ctx := context.Background()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk)...))
	defer s.Close()
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	kit.Fill(t, c.Active(), 5)
	kit.Check(t, c.Fold(ctx), c.Close())
	disk.Fail(func(o crashfs.Op) error {
		if o.Kind == crashfs.KindOpen && strings.Contains(o.Path, "/journal-") {
			return syscall.ENOENT
		}
		return nil
	})
	reader := kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
	defer reader.Close()
	kit.Must[[]*engine.Message](t)(reader.Active().Last(ctx, 2))
	disk.Fail(nil)
	if problems := kit.Must[[]index.Problem](t)(reader.Log.Problems()); len(problems) == 0 {
		t.Fatal("the index was not made anew")
	}
	if !reader.Log.IndexChanged(reader.Log.IndexVersion()) {
		t.Error("index.json is not read again")
	}
	if problems := kit.Must[[]index.Problem](t)(reader.Log.Problems()); len(problems) > 0 {
		t.Errorf("%v", problems)
	}
}
