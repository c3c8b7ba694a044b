package trash_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/collected"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// TestNothingIsPurgedEarly: neither a clock that was set back when something was removed makes it old, nor one that is
// set back later; what does not say when it was removed is as old as the younger one of its name and its folder.
func TestNothingIsPurgedEarly(t *testing.T) {
	ctx := context.Background()
	clock := kit.NewClock()
	real := clock.Now()
	s, dir := kit.NewStore(t, engine.WithClock(clock.Now))
	year := 365 * 24 * time.Hour
	clock.Jump(-year) // the battery was empty
	c, _ := kit.NewOrphan(t, s)
	deleted := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	kit.Fill(t, deleted.Active(), 1)
	kit.Check(t, deleted.Close())
	kit.Must[engine.TrashItem](t)(s.Delete(ctx, deleted.ID()))
	a := kit.Load(t, c.Active())[0]
	kit.Check(t, c.Active().Replace(ctx, a.ID, engine.Draft{Body: []byte(`{}`)}, engine.Shared()))
	if moved, purged := kit.Collect(t, s, trash.CollectOptions{Grace: trash.DefaultGrace}); len(moved) != 0 || len(purged) != 0 {
		t.Fatalf("%+v moved, %+v purged", moved, purged)
	}
	bare := filepath.Join(dir, "trash", uuid.Must(uuid.NewV7()).String())
	harmed := filepath.Join(dir, c.ID().String(), "trash", uuid.Must(uuid.NewV7()).String())
	old := filepath.Join(dir, "trash", uuid.Must(uuid.NewV7()).String())
	was := uuid.Must(uuid.NewV7())
	copy(was[:6], []byte{1, 0x60, 0, 0, 0, 0}) // years ago
	kit.Check(t, os.Mkdir(filepath.Join(dir, "trash", was.String()), 0o700))
	kit.Check(t, os.Mkdir(bare, 0o700), os.Mkdir(harmed, 0o700), os.Mkdir(old, 0o700),
		os.WriteFile(harmed+"/item.json", []byte(`{"ctxdir":"trash/1"`), 0o600), os.Chtimes(old, time.Time{}, real.Add(-year)))
	foreign := filepath.Join(dir, "trash", "notes.txt")
	kit.Check(t, os.WriteFile(foreign, nil, 0o600), os.Chtimes(foreign, time.Time{}, real.Add(-year)))
	const all = 7
	for _, at := range []time.Time{real.Add(-year), real, real.Add(6 * 24 * time.Hour), real.Add(-10 * year)} {
		clock.Set(at)
		if _, purged := kit.Collect(t, s, trash.CollectOptions{Grace: trash.DefaultGrace}); len(purged) != 0 {
			t.Errorf("at %v %+v purged", at, purged)
		}
	}
	if n := len(kit.TrashOf(t, s, "")); n != all {
		t.Errorf("%d items in trash, wanted %d", n, all)
	}
	clock.Set(real.Add(8 * 24 * time.Hour))
	_, planned := kit.Collect(t, s, trash.CollectOptions{Grace: trash.DefaultGrace, DryRun: true})
	if len(planned) != all || len(kit.TrashOf(t, s, "")) != all {
		t.Errorf("a dry run: %+v purged, %d left", planned, len(kit.TrashOf(t, s, "")))
	}
	if _, purged := kit.Collect(t, s, trash.CollectOptions{Grace: trash.DefaultGrace}); len(purged) != all || len(kit.TrashOf(t, s, "")) != 0 {
		t.Errorf("a week later %+v purged, %d left", purged, len(kit.TrashOf(t, s, "")))
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Error("what is no item of ours was removed")
	}
	kit.Check(t, c.Close())
}

// TestEveryKindExpires: items of all kinds, in both kinds of trash, and half-purged ones go.
func TestEveryKindExpires(t *testing.T) {
	ctx := context.Background()
	clock := kit.NewClock()
	s, dir := kit.NewStore(t, engine.WithClock(clock.Now))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	for _, kind := range []string{ctxfolder.TrashTail, ctxfolder.TrashDamaged, ctxfolder.TrashBlobs, ctxfolder.TrashContext, "of the future"} {
		kit.Must[string](t)(ctxfolder.NewTrash(c.Dir.FS, ctxfolder.TrashItem{Kind: kind, Name: "x"}))
		kit.Must[string](t)(ctxfolder.NewTrash(s.FS, ctxfolder.TrashItem{Kind: kind, Name: "x"}))
	}
	kit.Check(t, c.Dir.TrashVersion(uuid.New(), 3, []byte(`{}`), clock.Now()))
	half := filepath.Join(dir, "trash", "."+uuid.NewString())
	kit.Check(t, os.MkdirAll(half+"/x/y", 0o700))
	clock.Jump(8 * 24 * time.Hour)
	if _, purged := kit.Collect(t, s, trash.CollectOptions{Grace: trash.DefaultGrace, Contexts: []uuid.UUID{c.ID()}}); len(purged) != 6 {
		t.Errorf("%d purged of one context: %+v", len(purged), purged)
	}
	if _, purged := kit.Collect(t, s, trash.CollectOptions{Grace: trash.DefaultGrace}); len(purged) != 5 {
		t.Errorf("%d purged of the store: %+v", len(purged), purged)
	}
	if _, err := os.Stat(half); !os.IsNotExist(err) {
		t.Error("a half-purged item is still there")
	}
	kit.Check(t, c.Close())
}

// TestCollectBesideWriters: branches are made, written to, removed and purged, all at once. Nothing that was
// acknowledged on a branch that is still there is missing.
func TestCollectBesideWriters(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t, engine.WithDurability(engine.Relaxed), engine.WithSealBytes(4000))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	other := kit.Must[*engine.Store](t)(kit.Open(dir, engine.WithDurability(engine.Relaxed)))
	defer other.Close()
	stop := make(chan struct{})
	var collecting, writing sync.WaitGroup
	collecting.Go(func() {
		for {
			if err := kit.CollectAll(other, 0); err != nil {
				t.Error(err)
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
				_, err := h.Active().Append(ctx, engine.Draft{Body: []byte(`{}`)})
				b := h.Active()
				if err == nil {
					b, err = h.Active().Fork(ctx, name, 1)
				}
				if err == nil {
					_, err = b.AppendBatch(ctx, []engine.Draft{{Body: []byte(`{"a":1}`)}, {Body: []byte(`{"a":2}`)}})
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
	kit.Check(t, kit.CollectAll(other, 0), c.Refresh(ctx), c.Seal(ctx))
	if n := len(kit.Bodies(t, c.Active())); n != writers*rounds {
		t.Errorf("main shows %d messages, wanted %d", n, writers*rounds)
	}
	infos := kit.Must[[]engine.BranchInfo](t)(c.Branches(ctx))
	if len(infos) != 1+writers*rounds/2 {
		t.Errorf("%d branches", len(infos))
	}
	for _, info := range infos[1:] {
		if n := len(kit.Bodies(t, kit.Must[*engine.Branch](t)(c.Branch(info.Name)))); n != 3 {
			t.Errorf("branch %s shows %d messages", info.Name, n)
		}
	}
	if n := len(kit.TrashOf(t, s, "line")); n != 0 {
		t.Errorf("%d removed branches are left", n)
	}
	kit.Check(t, c.Close())
}

// TestCollectIfDue: once a day and when nobody else does. The log does not grow for ever.
func TestCollectIfDue(t *testing.T) {
	ctx := context.Background()
	clock := kit.NewClock()
	s, dir := kit.NewStore(t, engine.WithClock(clock.Now))
	c, _ := kit.NewOrphan(t, s)
	clock.Jump(8 * 24 * time.Hour)
	inTrash := func() int { return len(kit.TrashOf(t, s, "line")) }
	lock := s.FS.Lock(engine.CollectionLock)
	kit.Check(t, lock.Acquire(ctx))
	if kit.Check(t, trash.CollectIfDue(ctx, s, trash.CollectOptions{Grace: trash.DefaultGrace})); inTrash() != 1 {
		t.Error("it collected while another process did")
	}
	kit.Check(t, lock.Release(), lock.Close())
	if kit.Check(t, trash.CollectIfDue(ctx, s, trash.CollectOptions{Grace: trash.DefaultGrace})); inTrash() != 0 {
		t.Error("it did not collect")
	}
	log := func() string {
		b, err := os.ReadFile(filepath.Join(dir, "collected.jsonl"))
		kit.Check(t, err)
		return string(b)
	}
	if got := log(); strings.Count(got, `"record":"run"`) != 1 || strings.Count(got, `"record":"purged"`) != 1 ||
		!strings.HasPrefix(got, `{"ctxdir":"collected/1"`) {
		t.Errorf("log: %s", got)
	}
	again := kit.Must[*engine.Branch](t)(c.NewBranch(ctx, "again"))
	kit.Fill(t, again, 1)
	kit.Check(t, c.Remove(ctx, "again"))
	for _, step := range []struct {
		jump time.Duration
		want int
	}{{0, 1}, {23 * time.Hour, 1}, {time.Hour + time.Second, 0}} {
		clock.Jump(step.jump)
		if kit.Check(t, trash.CollectIfDue(ctx, s, trash.CollectOptions{})); inTrash() != step.want {
			t.Errorf("%v later: %d in trash, wanted %d", step.jump, inTrash(), step.want)
		}
	}
	// A torn line does no harm, and neither does one with a wrong checksum; a log that is too large is begun anew.
	damaged := `{"record":"run","at":"2001-01-01T00:00:00Z","check":"0000000000000000"}` + "\n"
	kit.Check(t, os.WriteFile(filepath.Join(dir, "collected.jsonl"), []byte(log()+damaged+`{"record":"ru`), 0o600))
	if !collected.Last(s).Equal(clock.Now()) {
		t.Errorf("last collected %v, it is %v", collected.Last(s), clock.Now())
	}
	kit.Check(t, os.WriteFile(filepath.Join(dir, "collected.jsonl"), []byte(strings.Repeat("x", trash.MaxLogBytes)+"\n"), 0o600))
	if kit.Check(t, trash.CollectIfDue(ctx, s, trash.CollectOptions{Grace: trash.DefaultGrace})); len(log()) > 10_000 {
		t.Errorf("the log has %d bytes", len(log()))
	}
	clock.Jump(-time.Hour) // a clock that was ahead is set right
	if !trash.IsCollectionDue(s) {
		t.Error("a collection in the future keeps the next one away")
	}
	kit.Check(t, c.Close())
}

// TestNoCollectionWithoutTime: a collection that is given no time changes nothing.
func TestNoCollectionWithoutTime(t *testing.T) {
	s, _ := kit.NewStore(t)
	c, want := kit.NewOrphan(t, s)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_ = trash.CollectIfDue(gone, s, trash.CollectOptions{})
	if items := kit.TrashOf(t, s, ""); len(items) != 1 || len(want) != 6 {
		t.Errorf("%+v", items)
	}
	kit.Check(t, c.Close())
}

// TestUnnamed: a line that has neither a branch nor an entry among the removed lines is not purged. Its grace period
// begins with the first collection that finds it.
func TestUnnamed(t *testing.T) {
	ctx := context.Background()
	clock := kit.NewClock()
	s, _ := kit.NewStore(t, engine.WithClock(clock.Now))
	for _, restores := range []bool{true, false} {
		c, want := kit.NewOrphan(t, s)
		kit.Check(t, c.Change(ctx, func(m *engine.Metadata) error {
			m.Removed = nil // as another program may leave it
			return nil
		}))
		clock.Jump(30 * 24 * time.Hour)
		only := trash.CollectOptions{Grace: trash.DefaultGrace, Contexts: []uuid.UUID{c.ID()}}
		dry := only
		dry.DryRun = true
		if planned, purged := kit.Collect(t, s, dry); len(planned) != 1 || len(purged) != 0 {
			t.Errorf("a dry run: %+v, %+v", planned, purged)
		}
		moved, purged := kit.Collect(t, s, only)
		if len(moved) != 1 || moved[0].Kind != "line" || moved[0].RemovedAt.Before(clock.Now().Add(-time.Minute)) || len(purged) != 0 {
			t.Fatalf("%+v moved, %+v purged", moved, purged)
		}
		if moved, purged := kit.Collect(t, s, only); len(moved) != 0 || len(purged) != 0 {
			t.Errorf("a second time: %+v moved, %+v purged", moved, purged)
		}
		if restores {
			r := kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, s, moved[0].Item))
			kit.Check(t, c.Refresh(ctx))
			if got := kit.Bodies(t, kit.Must[*engine.Branch](t)(c.Branch(r.Branch))); !slices.Equal(got, want) {
				t.Errorf("%q shows %v", r.Branch, got)
			}
			kit.Check(t, c.Close())
			continue
		}
		clock.Jump(8 * 24 * time.Hour)
		if moved, purged := kit.Collect(t, s, only); len(moved) != 0 || len(purged) != 1 {
			t.Errorf("after the grace period: %+v moved, %+v purged", moved, purged)
		}
		kit.Check(t, c.Close())
	}
}
