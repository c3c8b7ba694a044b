package storetest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// archiveTogether archives contexts in one call.
func archiveTogether(t *testing.T, s *engine.Store, ids ...uuid.UUID) (done []archiving.Result) {
	t.Helper()
	for x, err := range archiving.Archive(context.Background(), s, ids, archiving.Options{}) {
		kit.Check(t, err)
		done = append(done, x)
	}
	return done
}

// TestArchiveCosts: archiving one context opens nothing of the others, however many there are; archiving all opens the file
// of each message once, before it goes.
func TestArchiveCosts(t *testing.T) {
	ctx := context.Background()
	opened := map[string][]int{}
	for _, others := range []int{2, 12} {
		k := newCounted(t, engine.WithTextThreshold(1<<10))
		var ids []uuid.UUID
		for i := range others + 1 {
			c := kit.Must[*engine.Context](t)(k.store.Create(ctx, engine.Metadata{ID: kit.TestID(60000 + i)}))
			kit.Fill(t, c.Active(), 20)
			kit.Append(t, c.Active(), engine.Draft{Body: []byte(kit.LargeBody(c.ID().String()))})
			kit.Check(t, c.Seal(ctx), c.Close())
			ids = append(ids, c.ID())
		}
		one := func(calls []crashfs.Op, inside string) (n int) {
			for _, o := range calls {
				if o.Kind == crashfs.KindOpen && strings.Contains(o.Path, inside) {
					n++
				}
			}
			return n
		}
		calls := k.during(func() {
			c := kit.Must[*engine.Context](t)(k.store.Context(ctx, ids[0]))
			kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{}))
			kit.Check(t, c.Close())
		})
		opened["one"] = append(opened["one"], one(calls, ""))
		for _, id := range ids[1:] {
			if n := one(calls, id.String()); n > 0 {
				t.Errorf("archiving another context opens %d files of %s", n, id)
			}
		}
		calls = k.during(func() {
			if done := archiveTogether(t, k.store); len(done) != others+1 {
				t.Errorf("%d contexts", len(done))
			}
		})
		opened["all"] = append(opened["all"], one(calls, "")/others) // one has nothing left to archive
		files := map[string]int{}
		for _, o := range calls {
			if o.Kind == crashfs.KindOpen && strings.Contains(o.Path, "/messages/") && path.Ext(o.Path) == ".json" {
				files[o.Path]++
			}
		}
		for file, n := range files {
			if n > 1 {
				t.Errorf("%s is opened %d times", file, n)
			}
		}
	}
	for what, n := range opened {
		if n[1] > n[0]+n[0]/4 {
			t.Errorf("%s: %d opens with 2 other contexts, %d with 12", what, n[0], n[1])
		}
	}
}

// inBubble runs a test with fake time, in which a sleep ends when all goroutines wait. It does so in another process:
// the compressors that the process keeps for later have channels, which belong to one bubble.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	const variable = "CTXDIR_TEST_BUBBLE"
	if os.Getenv(variable) != "" {
		synctest.Test(t, f)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), variable+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestArchiveSharesSyncs: while each sync takes long, archiving sixteen contexts takes hardly more syncs in a row than
// archiving one.
func TestArchiveSharesSyncs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		took := map[int]time.Duration{}
		for _, n := range []int{1, 16} {
			ctx := context.Background()
			disk := crashfs.New()
			s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk), engine.WithLockTimeout(time.Hour)))
			for i := range n {
				c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000 + i)}))
				kit.Fill(t, c.Active(), 10)
				kit.Check(t, c.Close())
			}
			disk.Fail(func(o crashfs.Op) error {
				if len(syncs([]crashfs.Op{o})) > 0 {
					time.Sleep(time.Second) // until all others wait, too
				}
				return nil
			})
			began := time.Now()
			if done := archiveTogether(t, s); len(done) != n || done[n-1].Messages != 10 {
				t.Errorf("archived %+v", done)
			}
			took[n] = time.Since(began)
			disk.Fail(nil)
			kit.Check(t, s.Close())
		}
		if took[1] < 5*time.Second || took[16] > 2*took[1]+2*time.Second {
			t.Errorf("archiving takes %v for one context, %v for 16, where a sync takes 1s", took[1], took[16])
		}
	})
}

// TestArchiveFailedSync: if the sync that contexts share fails, those of which it lost a write fail, and no message is
// lost; after the next call all are archived.
func TestArchiveFailedSync(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		failed := 0
		for k := range 8 {
			failed += archiveFailing(t, k)
		}
		if failed == 0 {
			t.Error("no context failed")
		}
	})
}

// archiveFailing archives five contexts while the shared sync with the index k fails, and again without a failure. It returns how many
// failed.
func archiveFailing(t *testing.T, k int) (failed int) {
	t.Helper()
	ctx := context.Background()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk), engine.WithLockTimeout(time.Hour)))
	for i := range 5 {
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000 + i)}))
		kit.Fill(t, c.Active(), 10)
		kit.Check(t, c.Close())
	}
	shared := 0
	disk.Fail(func(o crashfs.Op) error {
		if len(syncs([]crashfs.Op{o})) > 0 {
			time.Sleep(time.Second)
		}
		if o.Kind == crashfs.KindSyncAll {
			if shared++; shared == k+1 {
				return syscall.EIO
			}
		}
		return nil
	})
	for _, err := range archiving.Archive(ctx, s, nil, archiving.Options{}) {
		if errors.Is(err, syscall.EIO) {
			failed++
		}
	}
	disk.Fail(nil)
	shows := func(when string, s *engine.Store) {
		t.Helper()
		for i := range 5 {
			c := kit.Must[*engine.Context](t)(s.Context(ctx, kit.TestID(60000+i)))
			if n := len(kit.Bodies(t, c.Active())); n != 10 {
				t.Errorf("%s: context %d shows %d messages", when, i, n)
			}
			kit.Check(t, c.Close())
		}
	}
	shows("after the failure", s)
	cut := kit.Must[*engine.Store](t)(kit.OpenCrash(disk.Crash(crashfs.Lose)))
	shows("after a power cut", cut)
	kit.Check(t, cut.Close())
	archiveTogether(t, s)
	for i := range 5 { // some of those that failed had committed it
		c := kit.Must[*engine.Context](t)(s.Context(ctx, kit.TestID(60000+i)))
		if n := c.Metadata().Lines[0].Archived; n != 10 {
			t.Errorf("the next call leaves context %d with %d archived messages; %d had failed", i, n, failed)
		}
		kit.Check(t, c.Close())
	}
	shows("archived", s)
	clean(t, s)
	kit.Check(t, s.Close())
	return failed
}
