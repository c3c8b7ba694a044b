package trash_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestPurgeCut cuts the power at every operation of a purge. Whatever the disk holds then, the messages that stay are
// there, and the next collection ends what was begun: no file holds the canary, after another cut neither.
func TestPurgeCut(t *testing.T) {
	for state := range purgeStates {
		for removal := range removals {
			t.Run(state+"/"+removal, func(t *testing.T) {
				t.Parallel()
				states := 0
				for k := 1; ; k += kit.Stride() {
					disk := crashfs.New()
					s := newPurgeStore(t, disk, state, removal, 3000)
					kit.Check(t, s.FS.SyncAll())
					disk.CutAt(len(disk.Ops()) + k)
					err := purgeAll(s)
					over := !disk.PowerCut()
					if err != nil && over {
						t.Fatal(err)
					}
					choices := []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill}
					for seed := range *kit.PowercutSeeds {
						choices = append(choices, crashfs.Random(uint64(k*1000+seed)))
					}
					for _, choice := range choices {
						states++
						if err := verifyPurge(disk.Crash(choice), removal, over); err != nil {
							t.Fatalf("power cut at operation %d (%s), disk %s: %v", k, kit.LastOp(disk), choice, err)
						}
					}
					if over {
						break
					}
				}
				t.Logf("%d disk states", states)
			})
		}
	}
}

// verifyPurge purges a disk again, with a collection first as a process does that opens the store.
func verifyPurge(disk *crashfs.FS, removal string, over bool) error {
	s, err := kit.OpenCrash(disk)
	if err != nil {
		return err
	}
	defer s.Close()
	if !over {
		if err := kit.CollectAll(s, 0); err != nil {
			return fmt.Errorf("the next collection: %w", err)
		}
	}
	for _, d := range []*crashfs.FS{disk, disk.Crash(crashfs.Lose)} {
		if found, err := kit.FilesWithCanary(d); err != nil || len(found) > 0 {
			return fmt.Errorf("over %v: the canary is in %v, %w", over, found, err)
		}
	}
	ctx := context.Background()
	if err := kit.VerifyRepair(ctx, s); err != nil {
		return err
	}
	c, err := s.Context(ctx, kit.TestID(60000))
	if removal == "rm" {
		if err == nil {
			err = errors.New("the removed context is there")
		} else {
			err = nil
		}
		return err
	}
	if err != nil {
		return err
	}
	defer c.Close()
	got, err := c.Active().Load(ctx)
	want := []uuid.UUID{kit.TestID(1)}
	if removal == "replace" {
		want = append(want, kit.TestID(2))
	}
	if err != nil || len(got) != len(want) {
		return fmt.Errorf("%d messages, wanted %d, %w", len(got), len(want), err)
	}
	for i, m := range got {
		if m.ID != want[i] || m.Unavailable != nil {
			return fmt.Errorf("message %d is %s, %w", i, m.ID, m.Unavailable)
		}
	}
	if _, err := c.Active().Append(ctx, engine.Draft{Body: []byte(`{"more":1}`)}); err != nil {
		return err
	}
	return c.Seal(ctx)
}
