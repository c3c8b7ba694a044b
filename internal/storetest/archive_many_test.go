package storetest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// archiveTogether archives contexts in one call.
func archiveTogether(t *testing.T, s *engine.Store, ids ...uuid.UUID) (done []engine.ArchiveResult) {
	t.Helper()
	for x, err := range s.Archive(context.Background(), ids, engine.ArchiveOptions{}) {
		kit.Check(t, err)
		done = append(done, x)
	}
	return done
}

// TestArchiveCosts: archiving one context opens nothing of the others, however many there are; archiving all opens each
// message with payloads of every context no more than twice, once to find out what they share.
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
			kit.Check(t, c.Fold(ctx), c.Close())
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
			kit.Must[engine.ArchiveResult](t)(c.Archive(ctx, engine.ArchiveOptions{}))
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
			if n > 3 { // by the settle, for the pack, and before the journal goes
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

// TestArchiveShared: of contexts that are archived in one call, a payload that several refer to stays a blob, once; the
// others go into packs. A context that is archived alone takes copies of all its payloads, and the blob stays as long
// as another context needs it.
func TestArchiveShared(t *testing.T) {
	ctx := context.Background()
	for _, together := range []bool{true, false} {
		s, dir := kit.NewStore(t, engine.WithTextThreshold(1<<10), engine.WithFoldBytes(-1))
		want := map[uuid.UUID][]string{}
		var ids []uuid.UUID
		for i := range 3 {
			c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000 + i)}))
			bodies := []string{kit.LargeBody("own" + c.ID().String()), kit.LargeBody("shared")}
			if i == 2 {
				bodies = bodies[:1]
			}
			for _, body := range bodies {
				kit.Append(t, c.Active(), engine.Draft{Body: []byte(body)})
			}
			kit.Check(t, c.Close())
			ids = append(ids, c.ID())
			want[c.ID()] = bodies
		}
		shows := func(when string) {
			t.Helper()
			for id, want := range want {
				c := kit.Must[*engine.Context](t)(s.Context(ctx, id))
				if got := kit.ResolvedBodies(t, c.Active()); !slices.Equal(got, want) {
					t.Errorf("together %v, %s: context %s changed", together, when, id)
				}
				kit.Check(t, c.Close())
			}
		}
		blobs := func() int {
			kit.Collect(t, s, trash.CollectOptions{Grace: 0})
			kit.Collect(t, s, trash.CollectOptions{Grace: 0})
			return len(kit.BlobFiles(t, dir))
		}
		if together {
			archiveTogether(t, s)
			if n := blobs(); n != 1 {
				t.Errorf("together: %d blobs, wanted the one that two contexts share", n)
			}
			shows("archived")
			clean(t, s)
			continue
		}
		for i, left := range []int{3, 2, 0} { // with the first one its own blob goes, with the second the shared one too
			archiveTogether(t, s, ids[[]int{0, 2, 1}[i]])
			if n := blobs(); n != left {
				t.Errorf("alone: %d blobs are left after %d contexts, wanted %d", n, i+1, left)
			}
			shows("archived")
		}
		clean(t, s)
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
// lost; the next call archives them.
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
	for _, err := range s.Archive(ctx, nil, engine.ArchiveOptions{}) {
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
	var messages int64
	for _, x := range archiveTogether(t, s) {
		messages += x.Messages
	}
	if messages != int64(failed)*10 {
		t.Errorf("the next call archived %d messages, wanted those of the %d contexts that failed", messages, failed)
	}
	shows("archived", s)
	clean(t, s)
	kit.Check(t, s.Close())
	return failed
}
