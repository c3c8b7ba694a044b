package erase_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// TestEraseRemoved: a message of a removed branch is erased in its place; nothing of it is left, and when the branch is
// restored its position is erased and the others are what they were.
func TestEraseRemoved(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, steps := range map[string]string{
		"before it is removed": "erase remove", "in place": "remove erase", "twice": "remove erase erase", "collected": "remove erase collect",
		"half collected": "remove leave erase",
	} {
		for _, size := range []int{10, 3000} {
			t.Run(fmt.Sprint(name, " ", size), func(t *testing.T) {
				c, folder := kit.NewContext(t, kit.Manual(1<<10)...)
				id, s := kit.TestID(7), c.Store
				kit.Fill(t, c.Active(), 1)
				gone := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "gone", 1))
				kit.Fill(t, gone, 1)
				kit.Append(t, gone, engine.Draft{ID: id, Body: kit.Secret(size + 20)})
				kit.Check(t, gone.Replace(ctx, id, engine.Draft{Body: kit.Secret(size)}))
				kit.Fill(t, gone, 2)
				want := kit.Bodies(t, gone)
				for _, step := range strings.Fields(steps) {
					switch step {
					case "erase":
						kit.Must[[]erase.Removal](t)(kit.Erase(s, c.ID(), id, erase.Options{}))
					case "remove":
						kit.Check(t, c.Refresh(ctx), c.Remove(ctx, "gone"))
					case "collect":
						kit.Collect(t, s, trash.CollectOptions{Grace: time.Hour})
					case "leave":
						torn := filepath.Join(folder, "trash", "."+uuid.NewString())
						kit.Check(t, os.MkdirAll(torn, 0o700), os.WriteFile(torn+"/log-00000000-1.jsonl", []byte("\x00\x00"+kit.Canary), 0o600))
					}
				}
				r := kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, s, kit.TrashOf(t, s, "line")[0].Item))
				if r.Branch != "gone" || r.Messages != 4 {
					t.Errorf("%+v", r)
				}
				again := kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
				got := kit.Load(t, kit.Must[*engine.Branch](t)(again.Branch("gone")))
				if len(got) != len(want) {
					t.Fatalf("%d messages", len(got))
				}
				for i, m := range got {
					if i == 2 && !errors.Is(m.Unavailable, engine.ErrErased) ||
						i != 2 && (m.Unavailable != nil || m.ID.String()+string(m.Stored) != want[i]) {
						t.Errorf("message %d is %s, %v", i, m.ID, m.Unavailable)
					}
				}
				kit.Check(t, again.Close())
				if found := inside(t, s.Path(), kit.Canary); len(found) > 0 {
					t.Errorf("the canary is in %v", found)
				}
			})
		}
	}
}

// TestEraseRemovedAndThere: a message on a removed line that is, under the same id, on another line in the same
// folder is erased in both places.
func TestEraseRemovedAndThere(t *testing.T) {
	ctx := context.Background()
	c, folder := kit.NewContext(t)
	kit.Fill(t, c.Active(), 1)
	kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(7), Body: kit.Secret(10)})
	kit.Check(t, c.Active().Rewind(ctx, 1))
	kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(7), Body: kit.Secret(20)})
	item := kit.TrashOf(t, c.Store, "line")[0].Item
	_, err := kit.Erase(c.Store, c.ID(), kit.TestID(7), erase.Options{})
	kit.Check(t, err, c.Refresh(ctx))
	if ms := kit.Load(t, c.Active()); len(ms) != 2 || !errors.Is(ms[1].Unavailable, engine.ErrErased) {
		t.Errorf("%+v", ms)
	}
	kit.Check(t, c.Active().Rewind(ctx, 1))
	kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(7), Body: []byte(`{"anew":1}`)}) // takes the file's name
	r := kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, c.Store, item))
	kit.Check(t, c.Refresh(ctx))
	if ms := kit.Load(t, c.Active()); len(ms) != 2 || ms[1].Unavailable != nil {
		t.Errorf("%+v", ms)
	}
	if ms := kit.Load(t, kit.Must[*engine.Branch](t)(c.Branch(r.Branch))); len(ms) != 2 || ms[1].ID != kit.TestID(7) ||
		!errors.Is(ms[1].Unavailable, engine.ErrErased) {
		t.Errorf("%+v", ms)
	}
	if found := kit.FilesWith(t, filepath.Dir(folder), kit.Canary); len(found) > 0 {
		t.Errorf("the canary is in %v", found)
	}
}

// TestEraseBesideACollection: nobody collects or restores while a message is erased, since he would write what he has
// read of it.
func TestEraseBesideACollection(t *testing.T) {
	s, _ := kit.NewStore(t, engine.WithLockTimeout(1))
	c, want := kit.NewOrphan(t, s)
	lock := s.FS.Lock(engine.CollectionLock)
	kit.Check(t, lock.Acquire(context.Background()))
	id := uuid.MustParse(want[3][:36])
	if _, err := kit.Erase(s, c.ID(), id, erase.Options{}); !errors.Is(err, engine.ErrLocked) {
		t.Errorf("%v, wanted ErrLocked", err)
	}
	kit.Check(t, lock.Release(), lock.Close(), c.Close())
}

// TestEraseRemovedCut cuts the power at every operation of an erase of a message that only a removed line has. A
// second erase finishes it, and the line comes back with its positions.
func TestEraseRemovedCut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	made := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(made), engine.WithSealBytes(-1), engine.WithTextThreshold(1<<10)))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
	kit.Fill(t, c.Active(), 1)
	gone := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "gone", 1))
	kit.Fill(t, gone, 1)
	kit.Append(t, gone, engine.Draft{ID: kit.TestID(2), Body: kit.Secret(3000)})
	kit.Fill(t, gone, 1)
	want := kit.Bodies(t, gone)
	kit.Check(t, c.Remove(ctx, "gone"), c.Close(), s.Close())
	verify := func(disk *crashfs.FS) error {
		s, err := kit.OpenCrash(disk)
		if err != nil {
			return err
		}
		defer s.Close()
		if _, err := kit.Erase(s, kit.TestID(60000), kit.TestID(2), erase.Options{}); err != nil {
			return err
		}
		item, err := kit.FindItem(s, "gone")
		if err == nil {
			_, err = trash.Restore(ctx, s, item.Item)
		}
		if err != nil {
			return err
		}
		if found, err := kit.FilesWithCanary(disk.Crash(crashfs.Lose)); err != nil || len(found) > 0 {
			return fmt.Errorf("the canary is in %v, %w", found, err)
		}
		c, err := s.Context(ctx, kit.TestID(60000))
		if err != nil {
			return err
		}
		defer c.Close()
		b, err := c.Branch("gone")
		if err != nil {
			return err
		}
		got, err := b.Load(ctx)
		if err != nil || len(got) != len(want) {
			return fmt.Errorf("%d messages, %w", len(got), err)
		}
		for i, m := range got {
			if i == 2 && !errors.Is(m.Unavailable, engine.ErrErased) ||
				i != 2 && (m.Unavailable != nil || m.ID.String()+string(m.Stored) != want[i]) {
				return fmt.Errorf("message %d: %s, %w", i, m.ID, m.Unavailable)
			}
		}
		return nil
	}
	for k := range kit.Cuts(1) {
		disk := made.Clone()
		s := kit.Must[*engine.Store](t)(kit.OpenCrash(disk))
		disk.CutAt(len(disk.Ops()) + k)
		_, err := kit.Erase(s, kit.TestID(60000), kit.TestID(2), erase.Options{})
		if err != nil && !disk.PowerCut() {
			t.Fatal(err)
		}
		for _, choice := range []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill, crashfs.Random(uint64(k))} {
			if err := verify(disk.Crash(choice)); err != nil {
				t.Fatalf("power cut at operation %d (%s), disk %s: %v", k, kit.LastOp(disk), choice, err)
			}
		}
		if !disk.PowerCut() {
			break
		}
	}
}
