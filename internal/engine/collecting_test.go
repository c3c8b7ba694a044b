package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// clock is a clock that tests set.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time       { return time.Unix(0, c.at.Load()) }
func (c *clock) set(at time.Time)     { c.at.Store(at.UnixNano()) }
func newClock() *clock                { c := &clock{}; c.set(time.Now()); return c }
func (c *clock) jump(d time.Duration) { c.set(c.now().Add(d)) }

// collect collects, and returns what was moved to trash and what was purged.
func collect(t *testing.T, s *Store, o Collecting) (moved, purged []Trashed) {
	t.Helper()
	for x, err := range s.Collect(context.Background(), o) {
		if err != nil {
			t.Fatal(err)
		}
		if x.Purged {
			purged = append(purged, x.Trashed)
		} else {
			moved = append(moved, x.Trashed)
		}
	}
	return moved, purged
}

func trashOf(t *testing.T, s *Store, kind string) (found []Trashed) {
	t.Helper()
	for x, err := range s.Trash(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if kind == "" || x.Kind == kind {
			found = append(found, x)
		}
	}
	return found
}

func bodies(t *testing.T, b *Branch) (all []string) {
	t.Helper()
	for m, err := range b.Messages(context.Background()) {
		if err != nil || m.Unavailable != nil {
			t.Fatal(err, m.Unavailable)
		}
		all = append(all, m.ID.String()+string(m.Stored))
	}
	return all
}

func check(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// orphaned makes a context with a removed branch "gone" of five messages of its own, forked at 1, beside main, and collects.
func orphaned(t *testing.T, s *Store) (c *Context, want []string) {
	t.Helper()
	ctx := context.Background()
	c = must[*Context](t)(s.Create(ctx, Metadata{}))
	fill(t, c.Active(), 3)
	gone := must[*Branch](t)(c.Active().Fork(ctx, "gone", 1))
	fill(t, gone, 5)
	want = bodies(t, gone)
	check(t, c.Remove(ctx, "gone"))
	return c, want
}

// TestNothingIsPurgedEarly: neither a clock that was set back when something was removed makes it old, nor one that is set back
// later; what does not say when it was removed is as old as the younger one of its name and its folder.
func TestNothingIsPurgedEarly(t *testing.T) {
	ctx := context.Background()
	clock := newClock()
	real := clock.now()
	s, dir := newStore(t, withClock(clock.now))
	year := 365 * 24 * time.Hour
	clock.jump(-year) // the battery was empty
	c, _ := orphaned(t, s)
	deleted := must[*Context](t)(s.Create(ctx, Metadata{}))
	fill(t, deleted.Active(), 1)
	check(t, deleted.Close())
	must[Trashed](t)(s.Delete(ctx, deleted.ID()))
	a := must[[]*Message](t)(c.Active().Load(ctx))[0]
	check(t, c.Active().Replace(ctx, a.ID, Draft{Body: []byte(`{}`)}, Shared()))
	if moved, purged := collect(t, s, Collecting{Grace: DefaultGrace}); len(moved) != 1 || len(purged) != 0 {
		t.Fatalf("%+v moved, %+v purged", moved, purged)
	}
	bare := filepath.Join(dir, "trash", uuid.Must(uuid.NewV7()).String())
	harmed := filepath.Join(dir, c.ID().String(), "trash", uuid.Must(uuid.NewV7()).String())
	old := filepath.Join(dir, "trash", uuid.Must(uuid.NewV7()).String())
	was := uuid.Must(uuid.NewV7())
	copy(was[:6], []byte{1, 0x60, 0, 0, 0, 0}) // years ago
	check(t, os.Mkdir(filepath.Join(dir, "trash", was.String()), 0o700))
	check(t, os.Mkdir(bare, 0o700), os.Mkdir(harmed, 0o700), os.Mkdir(old, 0o700),
		os.WriteFile(harmed+"/item.json", []byte(`{"ctxdir":"trash/1"`), 0o600), os.Chtimes(old, time.Time{}, real.Add(-year)))
	foreign := filepath.Join(dir, "trash", "notes.txt")
	check(t, os.WriteFile(foreign, nil, 0o600), os.Chtimes(foreign, time.Time{}, real.Add(-year)))
	const all = 7
	for _, at := range []time.Time{real.Add(-year), real, real.Add(6 * 24 * time.Hour), real.Add(-10 * year)} {
		clock.set(at)
		if _, purged := collect(t, s, Collecting{Grace: DefaultGrace}); len(purged) != 0 {
			t.Errorf("at %v %+v purged", at, purged)
		}
	}
	if n := len(trashOf(t, s, "")); n != all {
		t.Errorf("%d items in trash, wanted %d", n, all)
	}
	clock.set(real.Add(8 * 24 * time.Hour))
	if _, purged := collect(t, s, Collecting{Grace: DefaultGrace, DryRun: true}); len(purged) != all || len(trashOf(t, s, "")) != all {
		t.Errorf("a dry run: %+v purged, %d left", purged, len(trashOf(t, s, "")))
	}
	if _, purged := collect(t, s, Collecting{Grace: DefaultGrace}); len(purged) != all || len(trashOf(t, s, "")) != 0 {
		t.Errorf("a week later %+v purged, %d left", purged, len(trashOf(t, s, "")))
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Error("what is no item of ours was removed")
	}
	check(t, c.Close())
}

// TestEveryKindExpires: items of all kinds, in both kinds of trash, and half-purged ones go.
func TestEveryKindExpires(t *testing.T) {
	ctx := context.Background()
	clock := newClock()
	s, dir := newStore(t, withClock(clock.now))
	c := must[*Context](t)(s.Create(ctx, Metadata{}))
	for _, kind := range []string{ctxfolder.TrashTail, ctxfolder.TrashDamaged, ctxfolder.TrashBlobs, ctxfolder.TrashContext, "of the future"} {
		must[string](t)(ctxfolder.NewTrash(c.dir.FS, ctxfolder.TrashItem{Kind: kind, Name: "x"}))
		must[string](t)(ctxfolder.NewTrash(s.fs, ctxfolder.TrashItem{Kind: kind, Name: "x"}))
	}
	check(t, c.dir.TrashVersion(uuid.New(), 3, []byte(`{}`), clock.now()))
	half := filepath.Join(dir, "trash", "."+uuid.NewString())
	check(t, os.MkdirAll(half+"/x/y", 0o700))
	clock.jump(8 * 24 * time.Hour)
	if _, purged := collect(t, s, Collecting{Grace: DefaultGrace, Contexts: []uuid.UUID{c.ID()}}); len(purged) != 6 {
		t.Errorf("%d purged of one context: %+v", len(purged), purged)
	}
	if _, purged := collect(t, s, Collecting{Grace: DefaultGrace}); len(purged) != 5 {
		t.Errorf("%d purged of the store: %+v", len(purged), purged)
	}
	if _, err := os.Stat(half); !os.IsNotExist(err) {
		t.Error("a half-purged item is still there")
	}
	check(t, c.Close())
}

// TestCollectedFilesStayAway: message files that a crash left behind, or brought back, are removed by the next collection, and at the
// latest when the item that explains them is purged. Those of other lines in the folder stay.
func TestCollectedFilesStayAway(t *testing.T) {
	ctx := context.Background()
	clock := newClock()
	s, dir := newStore(t, withClock(clock.now))
	c, _ := orphaned(t, s)
	folder := filepath.Join(dir, c.ID().String(), "messages", "branch-gone")
	saved := t.TempDir()
	check(t, os.CopyFS(saved, os.DirFS(folder)))
	moved, _ := collect(t, s, Collecting{Grace: DefaultGrace})
	if len(moved) != 1 {
		t.Fatalf("%+v", moved)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the folder of a branch of which nothing is left: %v", err)
	}
	again := must[*Branch](t)(c.NewBranch(ctx, "gone")) // gets the folder
	fill(t, again, 2)
	count := func() int {
		files, _ := filepath.Glob(folder + "/*.json")
		return len(files)
	}
	back := func() {
		check(t, os.CopyFS(folder, os.DirFS(saved)), os.Remove(filepath.Join(dir, moved[0].Path, "cleared")))
		if count() != 7 {
			t.Fatalf("%d files", count())
		}
	}
	back()
	if collect(t, s, Collecting{Grace: DefaultGrace}); count() != 2 {
		t.Errorf("%d message files after the next collection, wanted 2", count())
	}
	back()
	clock.jump(8 * 24 * time.Hour)
	if collect(t, s, Collecting{Grace: DefaultGrace}); count() != 2 {
		t.Errorf("%d message files after the item was purged, wanted 2", count())
	}
	if n := len(bodies(t, again)); n != 2 {
		t.Errorf("the branch shows %d messages", n)
	}
	check(t, c.Close())
}

// TestCollectBesideWriters: branches come and go, are written to and collected, all at once. Nothing that was acknowledged on a
// branch that is still there is missing.
func TestCollectBesideWriters(t *testing.T) {
	ctx := context.Background()
	s, dir := newStore(t, WithDurability(Relaxed), WithFoldBytes(4000))
	c := must[*Context](t)(s.Create(ctx, Metadata{}))
	other := must[*Store](t)(Open(dir, WithDurability(Relaxed)))
	defer other.Close()
	stop := make(chan struct{})
	var collecting, writing sync.WaitGroup
	collecting.Go(func() {
		for {
			for _, err := range other.Collect(ctx, Collecting{Grace: DefaultGrace}) {
				if err != nil {
					t.Error(err)
				}
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	const writers, rounds = 3, 12
	for w := range writers {
		writing.Go(func() {
			h, err := s.Context(ctx, c.ID())
			if err != nil {
				t.Error(err)
				return
			}
			defer h.Close()
			for i := range rounds {
				name := fmt.Sprintf("b%d-%d", w, i)
				_, err := h.Active().Append(ctx, Draft{Body: []byte(`{}`)})
				b := h.Active()
				if err == nil {
					b, err = h.Active().Fork(ctx, name, 1)
				}
				if err == nil {
					_, err = b.AppendBatch(ctx, []Draft{{Body: []byte(`{"a":1}`)}, {Body: []byte(`{"a":2}`)}})
				}
				if err == nil && i%2 == 0 {
					err = h.Remove(ctx, name)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writing.Wait()
	close(stop)
	collecting.Wait()
	check(t, c.Refresh(ctx), c.Fold(ctx))
	if n := len(bodies(t, c.Active())); n != writers*rounds {
		t.Errorf("main shows %d messages, wanted %d", n, writers*rounds)
	}
	infos := must[[]BranchInfo](t)(c.Branches(ctx))
	if len(infos) != 1+writers*rounds/2 {
		t.Errorf("%d branches", len(infos))
	}
	for _, info := range infos[1:] {
		if n := len(bodies(t, must[*Branch](t)(c.Branch(info.Name)))); n != 3 {
			t.Errorf("branch %s shows %d messages", info.Name, n)
		}
	}
	collect(t, other, Collecting{Grace: DefaultGrace})
	if n := len(trashOf(t, s, "line")); n != writers*rounds/2 {
		t.Errorf("%d removed branches in trash", n)
	}
	check(t, c.Close())
}

// TestCollectIfDue: once a day and when nobody else does. The log does not grow for ever.
func TestCollectIfDue(t *testing.T) {
	ctx := context.Background()
	clock := newClock()
	s, dir := newStore(t, withClock(clock.now))
	c, _ := orphaned(t, s)
	inTrash := func() int { return len(trashOf(t, s, "line")) }
	lock := s.fs.Lock(collectLock)
	check(t, lock.Acquire(ctx))
	if check(t, s.CollectIfDue(ctx, DefaultGrace)); inTrash() != 0 {
		t.Error("it collected beside somebody else")
	}
	check(t, lock.Release(), lock.Close())
	if check(t, s.CollectIfDue(ctx, DefaultGrace)); inTrash() != 1 {
		t.Error("it did not collect")
	}
	log := func() string {
		b, err := os.ReadFile(filepath.Join(dir, "collected.jsonl"))
		check(t, err)
		return string(b)
	}
	if got := log(); strings.Count(got, `"record":"run"`) != 1 || strings.Count(got, `"record":"trashed"`) != 1 ||
		!strings.HasPrefix(got, `{"ctxdir":"collected/1"`) {
		t.Errorf("log: %s", got)
	}
	again := must[*Branch](t)(c.NewBranch(ctx, "again"))
	fill(t, again, 1)
	check(t, c.Remove(ctx, "again"))
	for _, step := range []struct {
		jump time.Duration
		want int
	}{{0, 1}, {23 * time.Hour, 1}, {time.Hour + time.Second, 2}} {
		clock.jump(step.jump)
		if check(t, s.CollectIfDue(ctx, DefaultGrace)); inTrash() != step.want {
			t.Errorf("%v later: %d in trash, wanted %d", step.jump, inTrash(), step.want)
		}
	}
	// A torn line and one of another day do no harm; a log that is too large is begun anew.
	check(t, os.WriteFile(filepath.Join(dir, "collected.jsonl"), []byte(log()+`{"record":"ru`), 0o600))
	if !s.LastCollected().Equal(clock.now()) {
		t.Errorf("last collected %v, it is %v", s.LastCollected(), clock.now())
	}
	check(t, os.WriteFile(filepath.Join(dir, "collected.jsonl"), []byte(strings.Repeat("x", maxCollected)+"\n"), 0o600))
	if check(t, s.CollectIfDue(ctx, DefaultGrace)); len(log()) > 10_000 {
		t.Errorf("the log has %d bytes", len(log()))
	}
	clock.jump(-time.Hour) // a clock that was ahead is set right
	if !s.collectionDue() {
		t.Error("a collection in the future keeps the next one away")
	}
	check(t, c.Close())
}

// TestNoCollectionWithoutTime: a collection that is given no time changes nothing.
func TestNoCollectionWithoutTime(t *testing.T) {
	s, _ := newStore(t)
	c, want := orphaned(t, s)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.CollectIfDue(gone, 0)
	if items := trashOf(t, s, ""); len(items) != 0 || len(want) != 6 {
		t.Errorf("%+v", items)
	}
	check(t, c.Close())
}
