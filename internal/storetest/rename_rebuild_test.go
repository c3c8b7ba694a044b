package storetest_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestRebuildDuringARename: an index that is made anew while a branch's folder does not bear its new name yet has every
// message.
func TestRebuildDuringARename(t *testing.T) {
	ctx := context.Background()
	c, dir := kit.NewContext(t, engine.WithFoldBytes(-1))
	kit.Fill(t, c.Active(), 20)
	if err := c.Fold(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Log.Exclusively(ctx, c.Log.Retire); err != nil {
		t.Fatal(err)
	}
	// What a rename has done when the power goes before the folder's own.
	m := c.Metadata()
	m.Branches[0].Name, m.ActiveBranch, m.Lines[0].Folder = "other", "other", "branch-other"
	m.Renaming = []ctxfolder.Renaming{{From: "branch-main", To: "branch-other"}}
	m.Revision++
	if _, err := c.Dir.WriteMetadata(m); err != nil {
		t.Fatal(err)
	}
	for _, cache := range []string{"index.json", "index"} {
		if err := os.RemoveAll(filepath.Join(dir, cache)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		again := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
		ms := kit.Load(t, again.Active())
		for i, m := range ms {
			if m.Unavailable != nil {
				t.Errorf("position %d: %v", i, m.Unavailable)
			}
		}
		if len(ms) < 20 {
			t.Errorf("%d messages", len(ms))
		}
		kit.Fill(t, again.Active(), 1) // finishes the rename
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRepairDuringARename: a power cut in the rename of a branch folder in which files were torn. A repair has
// everything in one place then.
func TestRepairDuringARename(t *testing.T) {
	ctx := context.Background()
	states := 0
	for k := 1; ; k++ {
		disk := crashfs.New()
		s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk, engine.InOrder())...))
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
		kit.Fill(t, c.Active(), 4)
		kit.Check(t, c.Fold(ctx))
		for _, m := range kit.Must[[]*engine.Message](t)(c.Active().Range(ctx, 1, 3)) {
			kit.Check(t, c.Active().Replace(ctx, m.ID, engine.Draft{Body: []byte(`{"newer":1}`)}))
		}
		kit.Fill(t, c.Active(), 2)
		disk.CutAt(len(disk.Ops()) + k)
		err := c.Rename(ctx, "main", "other")
		choices := []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill}
		for seed := range 8 {
			choices = append(choices, crashfs.Random(uint64(k*100+seed)))
		}
		for _, choice := range choices {
			states++
			after := disk.Crash(choice)
			again := kit.Must[*engine.Store](t)(kit.OpenCrash(after))
			if err := kit.VerifyRepair(ctx, again); err != nil {
				t.Fatalf("power cut at operation %d (%s), disk %s: %v\n%s", k, kit.LastOp(disk), choice, err, after.Dump())
			}
			shows := kit.Must[kit.Transcript](t)(kit.Read(after, c.ID()))
			if len(shows["main"])+len(shows["other"]) != 6 {
				t.Fatalf("power cut at operation %d (%s), disk %s: it shows %v", k, kit.LastOp(disk), choice, shows)
			}
			kit.Check(t, again.Close())
		}
		if !disk.PowerCut() {
			kit.Check(t, err)
			t.Logf("%d disk states", states)
			return
		}
	}
}

// TestSlowWriterAndARename: who has committed a message, and comes to make its file when another process has renamed
// the branch, and maybe begun another one of that name, makes it where it belongs.
func TestSlowWriterAndARename(t *testing.T) {
	ctx := context.Background()
	for _, anew := range []bool{false, true} {
		c, dir := kit.NewContext(t, engine.WithFoldBytes(-1))
		first := kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{}`)})
		slow := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
		slow.Dir.Lock = &afterRelease{slow.Dir.Lock, func() {
			kit.Check(t, c.Rename(ctx, "main", "other"))
			if anew {
				kit.Fill(t, kit.Must[*engine.Branch](t)(c.Active().ForkAt(ctx, "main", first.ID)), 1)
			}
		}}
		a := kit.Append(t, slow.Active(), engine.Draft{Body: []byte(`{}`)})
		if _, err := os.Lstat(filepath.Join(dir, "messages", "branch-other", a.ID.String()+".json")); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(filepath.Join(dir, "messages", "branch-main")); errors.Is(err, fs.ErrNotExist) == anew {
			t.Errorf("the folder of the old name: %v", err)
		}
		for f, err := range c.Store.Check(ctx, nil, engine.CheckOptions{}) {
			t.Errorf("%v: %+v", err, f)
		}
		kit.Check(t, slow.Close())
	}
}

// afterRelease is a lock that does something once after it was given back.
type afterRelease struct {
	vfs.Lock
	then func()
}

func (l *afterRelease) Release() error {
	err := l.Lock.Release()
	if then := l.then; then != nil {
		l.then = nil
		then()
	}
	return err
}
