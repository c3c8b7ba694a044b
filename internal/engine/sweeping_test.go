package engine

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/blob"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

func sweep(t *testing.T, s *Store, grace time.Duration, dryRun bool) (moved []Trashed) {
	t.Helper()
	for x, err := range s.Sweep(context.Background(), grace, dryRun) {
		if err != nil {
			t.Fatal(err)
		}
		moved = append(moved, x)
	}
	return moved
}

// age makes every blob look as if nobody had wanted it for a month.
func age(t *testing.T, dir string) {
	t.Helper()
	for _, path := range blobFiles(t, dir) {
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-30*24*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
}

func largeBody(letter string) string {
	return `{"role":"tool","content":"` + strings.Repeat(letter+"payload ", 20_000) + `"}`
}

// TestSweep: a sweep moves what nothing refers to and was not wanted lately, and nothing else.
func TestSweep(t *testing.T) {
	ctx := context.Background()
	s, dir := newStore(t, WithTextThreshold(1<<10))
	c := must[*Context](t)(s.Create(ctx, Metadata{}))
	small := `{"role":"tool","content":"` + strings.Repeat("small ", 1000) + `"}`
	for _, body := range []string{largeBody("a"), small} {
		must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(body)}))
	}
	gone := must[*Context](t)(s.Create(ctx, Metadata{}))
	must[Appended](t)(gone.Active().Append(ctx, Draft{Body: []byte(largeBody("b"))}))
	at := must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(largeBody("c"))}))
	if err := c.Active().Replace(ctx, at.ID, Draft{Body: []byte(`{"final":true}`)}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Fold(ctx), gone.Fold(ctx), gone.Close()); err != nil {
		t.Fatal(err)
	}
	must[Trashed](t)(s.Delete(ctx, gone.ID()))
	if n := len(blobFiles(t, dir)); n != 4 {
		t.Fatalf("%d blobs, wanted 4", n)
	}
	if moved := sweep(t, s, 0, false); len(moved) != 0 {
		t.Errorf("%+v moved, though a context in trash and an old version refer to them", moved)
	}
	// What was in trash is purged, and so is the journal that still held the old version.
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, "trash")), os.Mkdir(filepath.Join(dir, "trash"), 0o700),
		os.RemoveAll(filepath.Join(dir, c.ID().String(), "trash"))); err != nil {
		t.Fatal(err)
	}
	if moved := sweep(t, s, 7*24*time.Hour, false); len(moved) != 0 {
		t.Errorf("%+v moved before the grace period is over", moved)
	}
	age(t, dir)
	if moved := sweep(t, s, 7*24*time.Hour, true); len(moved) != 2 || len(blobFiles(t, dir)) != 4 {
		t.Errorf("a dry run: %+v, %d blobs left", moved, len(blobFiles(t, dir)))
	}
	moved := sweep(t, s, 7*24*time.Hour, false)
	if len(moved) != 2 || len(blobFiles(t, dir)) != 2 {
		t.Errorf("%+v moved, %d blobs left", moved, len(blobFiles(t, dir)))
	}
	for _, m := range moved {
		if info, err := os.Stat(filepath.Join(dir, m.Path)); err != nil || info.Size() != m.Bytes {
			t.Errorf("%+v: %v", m, err)
		}
	}
	for i, want := range []string{largeBody("a"), small} {
		if got := bodyOf(must[[]*Message](t)(c.Active().Load(ctx))[i]); got != want {
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
	begin := func(t *testing.T) (*Store, *Context, string, blob.Sum) {
		s, dir := newStore(t)
		var payload string
		{
			b := largeBody("d")
			payload = b[len(`{"role":"tool","content":"`) : len(b)-2]
		}
		sum, _, err := s.blobs.Put([]byte(payload))
		if err != nil {
			t.Fatal(err)
		}
		age(t, dir)
		return s, must[*Context](t)(s.Create(ctx, Metadata{})), dir, sum
	}
	check := func(t *testing.T, c *Context) {
		t.Helper()
		if got := bodyOf(must[[]*Message](t)(c.Active().Load(ctx))[0]); got != largeBody("d") {
			t.Errorf("%.200s", got)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write := func(t *testing.T, c *Context) {
		t.Helper()
		must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(largeBody("d"))}))
	}

	t.Run("after the mark", func(t *testing.T) {
		s, c, _, sum := begin(t)
		before, err := s.barrier(ctx)
		if err != nil {
			t.Fatal(err)
		}
		marked, err := s.mark(ctx)
		if err != nil || marked[sum] {
			t.Fatal(err, marked)
		}
		write(t, c)
		w := sweeping{s: s, before: before, yield: func(x Trashed) bool { t.Errorf("%+v moved", x); return true }, found: []blob.Sum{sum}}
		if _, err := w.flush(ctx); err != nil {
			t.Fatal(err)
		}
		check(t, c)
	})
	t.Run("before the barrier", func(t *testing.T) {
		s, c, dir, _ := begin(t)
		write(t, c)
		age(t, dir)
		if moved := sweep(t, s, 0, false); len(moved) != 0 {
			t.Errorf("%+v moved", moved)
		}
		check(t, c)
	})
	t.Run("between blob and commit", func(t *testing.T) {
		_, _, dir, _ := begin(t)
		s := must[*Store](t)(Open(dir, WithLockTimeout(time.Millisecond)))
		hold := blobsInUse{s: s}
		if err := hold.hold(ctx); err != nil {
			t.Fatal(err)
		}
		for _, err := range s.Sweep(ctx, 0, false) {
			if !errors.Is(err, ErrLocked) {
				t.Errorf("a sweep began while a writer had found a blob and not committed: %v", err)
			}
		}
		hold.release()
		if moved := sweep(t, s, 0, false); len(moved) != 1 {
			t.Errorf("%+v moved after the writer gave up", moved)
		}
	})
	t.Run("after it is gone", func(t *testing.T) {
		s, c, _, _ := begin(t)
		if moved := sweep(t, s, 0, false); len(moved) != 1 {
			t.Fatalf("%+v moved", moved)
		}
		write(t, c)
		check(t, c)
	})
}

// TestNoSweepBlind: where a message cannot be read, nobody knows what it refers to.
func TestNoSweepBlind(t *testing.T) {
	ctx := context.Background()
	s, dir := newStore(t)
	c := must[*Context](t)(s.Create(ctx, Metadata{}))
	at := must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(largeBody("e"))}))
	if err := errors.Join(c.Fold(ctx), c.Close()); err != nil {
		t.Fatal(err)
	}
	journals, _ := filepath.Glob(filepath.Join(dir, c.ID().String(), "journal-1*"))
	for _, j := range journals {
		if err := os.Remove(j); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, c.ID().String(), "messages", "branch-main", at.ID.String()+".json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	age(t, dir)
	failed := false
	for _, err := range s.Sweep(ctx, 0, false) {
		failed = failed || err != nil
	}
	if !failed || len(blobFiles(t, dir)) != 1 {
		t.Errorf("failed %v, %d blobs left", failed, len(blobFiles(t, dir)))
	}
}

// TestSweepReady: a copy that a backup was about to put in its place when it was killed refers to its payloads.
func TestSweepReady(t *testing.T) {
	ctx := context.Background()
	disk := crashfs.New()
	from := must[*Store](t)(Init("from", withFS(crashfs.New()), WithFoldBytes(-1)))
	c := must[*Context](t)(from.Create(ctx, Metadata{ID: testID(1)}))
	must[Appended](t)(c.Active().Append(ctx, Draft{ID: testID(101), Body: []byte(largeBody("a"))}))
	check(t, c.Close())
	stays := must[*Store](t)(Init("disk", withFS(disk)))
	killed := must[*Store](t)(Open("disk", withFS(disk)))
	dead := false
	disk.Fail(inTurn(func(o crashfs.Op) error {
		if dead = dead || o.Kind == crashfs.KindRename && strings.HasSuffix(o.Path, ".ready"); dead {
			return errors.New("killed")
		}
		return nil
	}))
	if _, err := from.Backup(ctx, testID(1), killed); err == nil || !dead {
		t.Fatalf("the backup was not killed: %v", err)
	}
	disk.Fail(nil)
	for range 2 {
		finish(t, stays.Collect(ctx, Collecting{}))
	}
	again := must[*Store](t)(Open("disk", withFS(disk)))
	copied := must[*Context](t)(again.Context(ctx, testID(1)))
	defer copied.Close()
	m := must[*Message](t)(copied.Active().Message(ctx, testID(101)))
	must[json.RawMessage](t)(m.Body(ctx))
}
