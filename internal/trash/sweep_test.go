package trash_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/backup"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/sweep"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// age makes every blob look as if nobody had wanted it for a month.
func age(t *testing.T, dir string) {
	t.Helper()
	for _, path := range kit.BlobFiles(t, dir) {
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-30*24*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSweep: a sweep moves what nothing refers to and was not wanted lately, and nothing else.
func TestSweep(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t, engine.WithTextThreshold(1<<10))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	small := `{"role":"tool","content":"` + strings.Repeat("small ", 1000) + `"}`
	for _, body := range []string{kit.LargeBody("a"), small} {
		kit.Append(t, c.Active(), engine.Draft{Body: []byte(body)})
	}
	gone := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	kit.Append(t, gone.Active(), engine.Draft{Body: []byte(kit.LargeBody("b"))})
	at := kit.Append(t, c.Active(), engine.Draft{Body: []byte(kit.LargeBody("c"))})
	if err := c.Active().Replace(ctx, at.ID, engine.Draft{Body: []byte(`{"final":true}`)}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Seal(ctx), gone.Seal(ctx), gone.Close()); err != nil {
		t.Fatal(err)
	}
	kit.Must[engine.TrashItem](t)(s.Delete(ctx, gone.ID()))
	if n := len(kit.BlobFiles(t, dir)); n != 4 {
		t.Fatalf("%d blobs, wanted 4", n)
	}
	if moved := kit.Sweep(t, s, 0); len(moved) != 0 {
		t.Errorf("%+v moved, though a context in trash and an old version refer to them", moved)
	}
	// What was in trash is purged, and the log is sealed that had the old version.
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, "trash")), os.Mkdir(filepath.Join(dir, "trash"), 0o700),
		os.RemoveAll(filepath.Join(dir, c.ID().String(), "trash"))); err != nil {
		t.Fatal(err)
	}
	if moved := kit.Sweep(t, s, 7*24*time.Hour); len(moved) != 0 {
		t.Errorf("%+v moved before the grace period is over", moved)
	}
	age(t, dir)
	planned := 0
	kit.Check(t, sweep.Run(ctx, s, 7*24*time.Hour, true, func(engine.TrashItem) bool { planned++; return true }))
	if planned != 2 || len(kit.BlobFiles(t, dir)) != 4 {
		t.Errorf("a dry run: %d, %d blobs left", planned, len(kit.BlobFiles(t, dir)))
	}
	moved := kit.Sweep(t, s, 7*24*time.Hour)
	if len(moved) != 2 || len(kit.BlobFiles(t, dir)) != 2 {
		t.Errorf("%+v moved, %d blobs left", moved, len(kit.BlobFiles(t, dir)))
	}
	for _, m := range moved {
		if info, err := os.Stat(filepath.Join(dir, m.Path)); err != nil || info.Size() != m.Bytes {
			t.Errorf("%+v: %v", m, err)
		}
	}
	for i, want := range []string{kit.LargeBody("a"), small} {
		if got := kit.BodyOf(kit.Load(t, c.Active())[i]); got != want {
			t.Errorf("message %d: %.80s", i, got)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSweepBesideAWriter: a writer that refers to an old blob, at any moment of a sweep, finds it afterwards.
func TestSweepBesideAWriter(t *testing.T) {
	ctx := context.Background()
	begin := func(t *testing.T) (*engine.Store, *engine.Context, string, blob.Sum) {
		s, dir := kit.NewStore(t)
		var payload string
		{
			b := kit.LargeBody("d")
			payload = b[len(`{"role":"tool","content":"`) : len(b)-2]
		}
		sum, _, err := s.Blobs.Put([]byte(payload))
		if err != nil {
			t.Fatal(err)
		}
		age(t, dir)
		return s, kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{})), dir, sum
	}
	check := func(t *testing.T, c *engine.Context) {
		t.Helper()
		if got := kit.BodyOf(kit.Load(t, c.Active())[0]); got != kit.LargeBody("d") {
			t.Errorf("%.200s", got)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write := func(t *testing.T, c *engine.Context) {
		t.Helper()
		kit.Append(t, c.Active(), engine.Draft{Body: []byte(kit.LargeBody("d"))})
	}

	t.Run("after the mark", func(t *testing.T) {
		s, c, _, sum := begin(t)
		err := trash.SweepAround(ctx, s, sum, func(marked map[blob.Sum]bool) {
			if marked[sum] {
				t.Fatal("a message refers to it")
			}
			write(t, c)
		}, func(x engine.TrashItem) { t.Errorf("%+v moved", x) })
		if err != nil {
			t.Fatal(err)
		}
		check(t, c)
	})
	t.Run("before the barrier", func(t *testing.T) {
		s, c, dir, _ := begin(t)
		write(t, c)
		age(t, dir)
		if moved := kit.Sweep(t, s, 0); len(moved) != 0 {
			t.Errorf("%+v moved", moved)
		}
		check(t, c)
	})
	t.Run("between blob and commit", func(t *testing.T) {
		_, _, dir, _ := begin(t)
		s := kit.Must[*engine.Store](t)(kit.Open(dir, engine.WithLockTimeout(time.Millisecond)))
		hold := engine.BlobHold{Store: s}
		if err := hold.Hold(ctx); err != nil {
			t.Fatal(err)
		}
		for _, err := range kit.SweepAll(ctx, s, 0) {
			if !errors.Is(err, engine.ErrLocked) {
				t.Errorf("a sweep began while a writer had found a blob and not committed: %v", err)
			}
		}
		hold.Release()
		if moved := kit.Sweep(t, s, 0); len(moved) != 1 {
			t.Errorf("%+v moved after the writer gave up", moved)
		}
	})
	t.Run("after it is gone", func(t *testing.T) {
		s, c, _, _ := begin(t)
		if moved := kit.Sweep(t, s, 0); len(moved) != 1 {
			t.Fatalf("%+v moved", moved)
		}
		write(t, c)
		check(t, c)
	})
}

// TestNoSweepBlind: where a message cannot be read, nobody knows what it refers to.
func TestNoSweepBlind(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	at := kit.Append(t, c.Active(), engine.Draft{Body: []byte(kit.LargeBody("e"))})
	if err := errors.Join(c.Seal(ctx), c.Close()); err != nil {
		t.Fatal(err)
	}
	unread(t, filepath.Join(dir, c.ID().String()), at.ID)
	age(t, dir)
	failed := false
	for _, err := range kit.SweepAll(ctx, s, 0) {
		failed = failed || err != nil
	}
	if !failed || len(kit.BlobFiles(t, dir)) != 1 {
		t.Errorf("failed %v, %d blobs left", failed, len(kit.BlobFiles(t, dir)))
	}
}

// TestSweepReady: a copy that a backup was about to put in its place when it was killed refers to its payloads.
func TestSweepReady(t *testing.T) {
	ctx := context.Background()
	disk := crashfs.New()
	from := kit.Must[*engine.Store](t)(kit.Init("from", engine.WithFS(crashfs.New()), engine.WithSealBytes(-1)))
	c := kit.Must[*engine.Context](t)(from.Create(ctx, engine.Metadata{ID: kit.TestID(1)}))
	kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(101), Body: []byte(kit.LargeBody("a"))})
	kit.Check(t, c.Close())
	stays := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk)))
	killed := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(disk)))
	dead := false
	disk.Fail(kit.Serialise(func(o crashfs.Op) error {
		if dead = dead || o.Kind == crashfs.KindRename && strings.HasSuffix(o.Path, ".ready"); dead {
			return errors.New("killed")
		}
		return nil
	}))
	if _, err := backup.Copy(ctx, from, kit.TestID(1), killed); err == nil || !dead {
		t.Fatalf("the backup was not killed: %v", err)
	}
	disk.Fail(nil)
	for range 2 {
		kit.Finish(t, trash.Collect(ctx, stays, trash.CollectOptions{}))
	}
	again := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(disk)))
	copied := kit.Must[*engine.Context](t)(again.Context(ctx, kit.TestID(1)))
	defer copied.Close()
	m := kit.Must[*engine.Message](t)(copied.Active().Message(ctx, kit.TestID(101)))
	kit.Must[json.RawMessage](t)(m.Body(ctx))
}
