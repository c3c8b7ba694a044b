package trash_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// TestPurgeStopped: a purge that cannot remove a segment that it has written anew says so. The segment is not of another
// history, and the next collection removes it.
func TestPurgeStopped(t *testing.T) {
	ctx := context.Background()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk, engine.InOrder())...))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
	kit.Fill(t, c.Active(), 3)
	kit.Fill(t, kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "alt", 1)), 4)
	kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{}))
	kit.Check(t, c.Remove(ctx, "alt"), c.Close())
	stopped := errors.New("stopped")
	disk.Fail(func(o crashfs.Op) error {
		if o.Kind == crashfs.KindRemove && strings.Contains(o.Path, "/segments/") && !strings.HasSuffix(o.Path, ".tmp") {
			return stopped
		}
		return nil
	})
	if err := kit.CollectAll(s, 0); !errors.Is(err, stopped) {
		t.Fatalf("the purge was to be stopped: %v", err)
	}
	disk.Fail(nil)
	for _, when := range []string{"at once", "after a collection"} {
		for f, err := range checking.Check(ctx, s, nil, checking.Options{ReadData: true}) {
			kit.Check(t, err)
			if when != "at once" || f.Kind != integrity.KindErasing {
				t.Errorf("%s: %s: %s %s", when, f.Kind, f.Path, f.Detail)
			}
		}
		kit.Check(t, kit.CollectAll(s, 0))
	}
	c = kit.Must[*engine.Context](t)(s.Context(ctx, kit.TestID(60000)))
	if len(c.Metadata().Lines) != 1 || len(kit.Must[[]string](t)(c.Index.Tidy())) > 0 {
		t.Errorf("%+v", c.Metadata())
	}
	kit.Check(t, c.Close())
}

// TestPurgeDropsCut: what a purge of archived messages leaves is in order.
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
		kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{}))
		kit.Check(t, c.Active().Rewind(ctx, 6))
		kit.Check(t, purge(c), kit.CollectAll(c.Store, time.Hour))
		for f, err := range checking.Check(ctx, c.Store, nil, checking.Options{ReadData: true}) {
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
		kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{}))
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
			for f, err := range checking.Check(ctx, s, nil, checking.Options{ReadData: true}) {
				if kit.Check(t, err); f.Severity == integrity.SeverityError || f.Kind == integrity.KindForeign {
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

// TestEraseAfterPurgeStopped: an erase finishes a purge that was interrupted, since it writes a note of its own.
func TestEraseAfterPurgeStopped(t *testing.T) {
	t.Parallel()
	for _, removal := range []string{"rewind", "branch rm", "replace"} {
		for k := 1 + rand.IntN(5); ; k += 5 {
			disk := crashfs.New()
			s := newPurgeStore(t, disk, "sealed", removal, 3000)
			kit.Check(t, s.FS.SyncAll())
			disk.CutAt(len(disk.Ops()) + k)
			_ = purgeAll(s)
			if !disk.PowerCut() {
				break
			}
			left := disk.Crash(crashfs.Keep)
			if _, err := left.Lstat(kit.TestID(60000).String() + "/" + ctxfolder.ErasingFile); err != nil {
				continue // the purge had not begun, or was over
			}
			s = kit.Must[*engine.Store](t)(kit.OpenCrash(left))
			kit.Must[[]erase.Removal](t)(kit.Erase(s, kit.TestID(60000), kit.TestID(1), erase.Options{Shared: true}))
			kit.Check(t, purgeAll(s))
			if found := kit.Must[[]string](t)(kit.FilesWithCanary(left)); len(found) > 0 {
				t.Fatalf("%s, stopped at %d (%s): the canary is in %v", removal, k, kit.LastOp(disk), found)
			}
			kit.Check(t, s.Close())
		}
	}
}

// TestPurgeOneAfterPurgeStopped: a purge of one item finishes one that was interrupted in its context, since the end of it
// removes the note of both; beside the note of an interrupted erase, too.
func TestPurgeOneAfterPurgeStopped(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	id := kit.TestID(60000)
	for _, removal := range []string{"rewind", "branch rm"} {
		stopped := 0
		for k := 1; ; k++ {
			disk := crashfs.New()
			s := newPurgeStore(t, disk, "sealed", removal, 3000)
			erasing := k%2 == 0
			if erasing {
				folder := kit.Must[vfs.FS](t)(s.FS.Sub(id.String()))
				kit.Check(t, ctxfolder.WriteErasing(folder, ctxfolder.Erasing{Messages: []uuid.UUID{kit.TestID(9)}}), folder.Close())
			}
			kit.Check(t, s.FS.SyncAll())
			disk.CutAt(len(disk.Ops()) + k)
			_ = purgeAll(s)
			if !disk.PowerCut() {
				break
			}
			left := disk.Crash(crashfs.Keep)
			folder := kit.Must[vfs.FS](t)(left.Sub(id.String()))
			if n, err := ctxfolder.ReadErasing(folder); err != nil || len(n.Cut) == 0 {
				continue // no line was about to end, or none is left to end
			}
			stopped++
			s = kit.Must[*engine.Store](t)(kit.OpenCrash(left))
			c := kit.Must[*engine.Context](t)(s.Context(ctx, id))
			kit.Check(t, c.Active().Replace(ctx, kit.TestID(1), engine.Draft{Body: []byte(`{"other":1}`)}, engine.Shared()), c.Close())
			var version []uuid.UUID
			for x, err := range trash.List(ctx, s, id) {
				if kit.Check(t, err); x.Kind == ctxfolder.TrashVersion {
					version = append(version, x.Item)
				}
			}
			for x, err := range trash.Purge(ctx, s, version, 0, false) {
				kit.Check(t, err, x.Problem)
			}
			kit.Check(t, kit.CollectAll(s, 0)) // of a line whose end was not committed
			if found := kit.Must[[]string](t)(kit.FilesWithCanary(left)); len(found) > 0 || len(version) != 1 {
				t.Fatalf("%s, stopped at %d (%s): %d versions; the canary is in %v", removal, k, kit.LastOp(disk), len(version), found)
			}
			if n, err := ctxfolder.ReadErasing(folder); erasing != (err == nil) || erasing && len(n.Messages) != 1 {
				t.Fatalf("%s, stopped at %d (%s): the note is %+v, %v", removal, k, kit.LastOp(disk), n, err)
			}
			kit.Check(t, s.Close())
		}
		if stopped == 0 {
			t.Error("no purge was interrupted with its note left")
		}
	}
}
