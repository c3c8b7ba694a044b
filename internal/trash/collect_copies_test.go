package trash_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// TestCollectCopies: a pack that a stopped archive left goes before its messages are purged. Afterwards it would look
// like a pack of another history, which stays.
func TestCollectCopies(t *testing.T) {
	ctx := context.Background()
	c, dir := kit.NewContext(t)
	kit.Fill(t, c.Active(), 3)
	alt := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "alt", 1))
	kit.Fill(t, alt, 4)
	kit.Must[engine.ArchiveResult](t)(c.Archive(ctx, engine.ArchiveOptions{}))
	packs := kit.Must[[]string](t)(filepath.Glob(filepath.Join(dir, "archive", "*.zst")))
	pack := kit.Must[[]byte](t)(os.ReadFile(packs[0]))
	kit.Must[engine.ArchiveResult](t)(c.Unarchive(ctx, nil))
	kit.Check(t, os.WriteFile(packs[0], pack, 0o600), c.Remove(ctx, "alt"), c.Refresh(ctx))
	for range 2 {
		for _, err := range trash.Collect(ctx, c.Store, trash.CollectOptions{}) {
			kit.Check(t, err)
		}
	}
	for f, err := range c.Store.Check(ctx, nil, engine.CheckOptions{ReadData: true}) {
		kit.Check(t, err)
		t.Errorf("%s: %s %s", f.Kind, f.Path, f.Detail)
	}
}

// TestCollectDropped: a pack that a stopped purge made anew and did not remove holds messages that are gone. It is not
// a pack of another history, and the next purge removes it.
func TestCollectDropped(t *testing.T) {
	ctx := context.Background()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk, engine.InOrder())...))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
	kit.Fill(t, c.Active(), 3)
	kit.Fill(t, kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "alt", 1)), 4)
	kit.Must[engine.ArchiveResult](t)(c.Archive(ctx, engine.ArchiveOptions{}))
	kit.Check(t, c.Remove(ctx, "alt"), c.Close())
	stopped := errors.New("stopped")
	disk.Fail(func(o crashfs.Op) error {
		if o.Kind == crashfs.KindRemove && strings.Contains(o.Path, "/archive/") {
			return stopped
		}
		return nil
	})
	if err := kit.CollectAll(s, 0); !errors.Is(err, stopped) {
		t.Fatalf("the purge was to be stopped: %v", err)
	}
	disk.Fail(nil)
	for _, when := range []string{"at once", "after a collection"} {
		for f, err := range s.Check(ctx, nil, engine.CheckOptions{ReadData: true}) {
			kit.Check(t, err)
			if when != "at once" || f.Kind != integrity.KindErasing {
				t.Errorf("%s: %s: %s %s", when, f.Kind, f.Path, f.Detail)
			}
		}
		kit.Check(t, kit.CollectAll(s, 0))
	}
	c = kit.Must[*engine.Context](t)(s.Context(ctx, kit.TestID(60000)))
	packs := 0
	for _, err := range c.Dir.FS.ReadDir(ctxfolder.Archive) {
		kit.Check(t, err)
		packs++
	}
	if packs != 1 || len(c.Metadata().Lines) != 1 {
		t.Errorf("%d packs, %+v", packs, c.Metadata())
	}
	kit.Check(t, c.Close())
}

// TestCollectUnread: a pack of which a purge cuts off the last messages that were read from it goes in the same purge.
// A rebuild would bring them back.
func TestCollectUnread(t *testing.T) {
	ctx := context.Background()
	c, dir := kit.NewContext(t)
	kit.Fill(t, c.Active(), 3)
	kit.Must[engine.ArchiveResult](t)(c.Archive(ctx, engine.ArchiveOptions{}))
	first := kit.Must[[]*engine.Message](t)(c.Active().Range(ctx, 0, 1))
	kit.Check(t, c.Active().Replace(ctx, first[0].ID, engine.Draft{Body: []byte(`{"replaced":true}`)}), c.Active().Rewind(ctx, 1), c.Fold(ctx))
	for _, err := range trash.Collect(ctx, c.Store, trash.CollectOptions{Grace: 0}) {
		kit.Check(t, err)
	}
	if packs := kit.Must[[]string](t)(filepath.Glob(filepath.Join(dir, "archive", "*.zst"))); len(packs) > 0 {
		t.Errorf("%v is left", packs)
	}
	kit.Check(t, c.Close())
	for _, pattern := range []string{"journal-*", "index.json", "index"} {
		for _, path := range kit.Must[[]string](t)(filepath.Glob(filepath.Join(dir, pattern))) {
			kit.Check(t, os.RemoveAll(path))
		}
	}
	for done, err := range trash.Collect(ctx, c.Store, trash.CollectOptions{Grace: 0}) {
		kit.Check(t, err)
		t.Errorf("collected again: %+v", done)
	}
}

// TestPurgeDropsCut: a line is forgotten after the packs that still have its messages were written anew. Otherwise they
// would look like messages of another history.
func TestPurgeDropsCut(t *testing.T) {
	ctx := context.Background()
	purges := map[string]func(c *engine.Context) error{
		"gc": func(c *engine.Context) error { return kit.CollectAll(c.Store, 0) },
		"trash empty": func(c *engine.Context) error {
			for x, err := range trash.Purge(ctx, c.Store, nil, 0, false) {
				if err != nil || x.Problem != nil {
					return errors.Join(err, x.Problem)
				}
			}
			return nil
		},
	}
	for name, purge := range purges {
		c, _ := kit.NewContext(t)
		kit.Fill(t, c.Active(), 9)
		kit.Must[engine.ArchiveResult](t)(c.Archive(ctx, engine.ArchiveOptions{}))
		kit.Check(t, c.Active().Rewind(ctx, 6))
		kit.Check(t, purge(c), kit.CollectAll(c.Store, time.Hour))
		for f, err := range c.Store.Check(ctx, nil, engine.CheckOptions{ReadData: true}) {
			kit.Check(t, err)
			t.Errorf("%s: %s: %s %s", name, f.Kind, f.Path, f.Detail)
		}
	}
}

// TestPowerCutWhilePurging cuts the power at each operation of the purge of TestPurgeDropsCut. Another purge then
// finishes it: the branch shows what it should, and a check finds nothing of another history.
func TestPowerCutWhilePurging(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	states := 0
	for k := range kit.Cuts(1) {
		disk := crashfs.New()
		s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk, engine.InOrder())...))
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
		kit.Fill(t, c.Active(), 9)
		kit.Must[engine.ArchiveResult](t)(c.Archive(ctx, engine.ArchiveOptions{}))
		kit.Check(t, c.Active().Rewind(ctx, 6), c.Close())
		disk.CutAt(len(disk.Ops()) + k)
		for range trash.Purge(ctx, s, nil, 0, false) { // what failed is looked at afterwards
		}
		cut := disk.PowerCut()
		for _, choice := range []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill, crashfs.Random(uint64(k))} {
			states++
			s := kit.Must[*engine.Store](t)(kit.Open("disk", kit.CrashOptions(disk.Crash(choice), engine.InOrder())...))
			for _, err := range trash.Purge(ctx, s, nil, 0, false) {
				kit.Check(t, err)
			}
			kit.Check(t, kit.CollectAll(s, time.Hour))
			c := kit.Must[*engine.Context](t)(s.Context(ctx, kit.TestID(60000)))
			if n := kit.Must[int64](t)(c.Active().Len(ctx)); n != 6 {
				t.Errorf("cut at %d (%s), disk %s: %d messages", k, kit.LastOp(disk), choice, n)
			}
			for f, err := range s.Check(ctx, nil, engine.CheckOptions{ReadData: true}) {
				if kit.Check(t, err); f.Severity == engine.SeverityError || f.Kind == integrity.KindForeign {
					t.Fatalf("cut at %d (%s), disk %s: %s: %s %s", k, kit.LastOp(disk), choice, f.Kind, f.Path, f.Detail)
				}
			}
			kit.Check(t, c.Close(), s.Close())
		}
		if !cut {
			break
		}
	}
	t.Logf("%d disk states", states)
}
