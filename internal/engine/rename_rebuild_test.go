package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// TestRebuildDuringARename: an index that is made anew while a branch's folder does not bear its new name yet has every message.
func TestRebuildDuringARename(t *testing.T) {
	ctx := context.Background()
	c, dir := newContext(t, WithFoldBytes(-1))
	fill(t, c.Active(), 20)
	if err := c.Fold(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.log.Exclusively(ctx, c.log.Retire); err != nil {
		t.Fatal(err)
	}
	// What a rename has done when the power goes before the folder's own.
	m := c.Metadata()
	m.Branches[0].Name, m.ActiveBranch, m.Lines[0].Folder = "other", "other", "branch-other"
	m.Renaming = &ctxfolder.Renaming{From: "branch-main", To: "branch-other"}
	m.Revision++
	if _, err := c.dir.WriteMetadata(m); err != nil {
		t.Fatal(err)
	}
	for _, cache := range []string{"index.json", "index"} {
		if err := os.RemoveAll(filepath.Join(dir, cache)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		again := must[*Context](t)(c.store.Context(ctx, c.ID()))
		ms := must[[]*Message](t)(again.Active().Load(ctx))
		for i, m := range ms {
			if m.Unavailable != nil {
				t.Errorf("position %d: %v", i, m.Unavailable)
			}
		}
		if len(ms) < 20 {
			t.Errorf("%d messages", len(ms))
		}
		fill(t, again.Active(), 1) // finishes the rename
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
		s := must[*Store](t)(Init("disk", onCrashFS(disk, inOrder())...))
		c := must[*Context](t)(s.Create(ctx, Metadata{ID: testID(60000)}))
		fill(t, c.Active(), 4)
		check(t, c.Fold(ctx))
		for _, m := range must[[]*Message](t)(c.Active().Range(ctx, 1, 3)) {
			check(t, c.Active().Replace(ctx, m.ID, Draft{Body: []byte(`{"newer":1}`)}))
		}
		fill(t, c.Active(), 2)
		disk.CutAt(len(disk.Ops()) + k)
		err := c.Rename(ctx, "main", "other")
		choices := []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill}
		for seed := range 8 {
			choices = append(choices, crashfs.Random(uint64(k*100+seed)))
		}
		for _, choice := range choices {
			states++
			after := disk.Crash(choice)
			again := must[*Store](t)(openCrash(after))
			if err := settles(ctx, again); err != nil {
				t.Fatalf("power cut at operation %d (%s), disk %s: %v\n%s", k, lastOp(disk), choice, err, after.Dump())
			}
			shows := must[said](t)(read(after, c.ID()))
			if len(shows["main"])+len(shows["other"]) != 6 {
				t.Fatalf("power cut at operation %d (%s), disk %s: it shows %v", k, lastOp(disk), choice, shows)
			}
			check(t, again.Close())
		}
		if !disk.PowerCut() {
			check(t, err)
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
		c, dir := newContext(t, WithFoldBytes(-1))
		first := must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(`{}`)}))
		slow := must[*Context](t)(c.store.Context(ctx, c.ID()))
		slow.dir.Lock = &afterRelease{slow.dir.Lock, func() {
			check(t, c.Rename(ctx, "main", "other"))
			if anew {
				fill(t, must[*Branch](t)(c.Active().ForkAt(ctx, "main", first.ID)), 1)
			}
		}}
		a := must[Appended](t)(slow.Active().Append(ctx, Draft{Body: []byte(`{}`)}))
		if _, err := os.Lstat(filepath.Join(dir, "messages", "branch-other", a.ID.String()+".json")); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(filepath.Join(dir, "messages", "branch-main")); errors.Is(err, fs.ErrNotExist) == anew {
			t.Errorf("the folder of the old name: %v", err)
		}
		for f, err := range c.store.Check(ctx, nil, CheckOptions{}) {
			t.Errorf("%v: %+v", err, f)
		}
		check(t, slow.Close())
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
