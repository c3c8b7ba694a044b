package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/migrate"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// TestRestoreLegacyCut cuts the power at every operation of giving a legacy context its place back: there is the
// context or the legacy one, whole, or the context is in the trash, and done again it ends.
func TestRestoreLegacyCut(t *testing.T) {
	ctx := context.Background()
	for _, split := range []bool{false, true} {
		begun, id, _ := legacyOnDisk(t, split)
		s := kit.Must[*engine.Store](t)(kit.OpenCrash(begun))
		c := kit.Must[*engine.Context](t)(s.Context(ctx, id))
		kit.Check(t, c.Close(), s.Close())
		name := map[bool]string{false: id.String() + ".json", true: id.String()}[split]
		states := 0
		for k := 1; ; k++ {
			disk := begun.Clone()
			disk.CutAt(len(disk.Ops()) + k)
			done := false
			if s, err := kit.OpenCrash(disk); err == nil {
				_, err = migrate.RestoreLegacy(ctx, s, id, migrate.RollbackOptions{})
				if done = !disk.PowerCut(); done {
					kit.Check(t, err)
				}
				_ = s.Close()
			}
			choices := []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill}
			for seed := range 8 {
				choices = append(choices, crashfs.Random(uint64(100*k+seed)))
			}
			for _, choice := range choices {
				states++
				if err := afterRestoreCut(disk.Crash(choice), id, name, done); err != nil {
					t.Fatalf("power cut at operation %d (%s), disk %s, split %v: %v\n%s",
						k, kit.LastOp(disk), choice, split, err, disk.Crash(choice).Dump())
				}
			}
			if done {
				break
			}
		}
		t.Logf("%d disk states", states)
	}
}

func afterRestoreCut(disk *crashfs.FS, id uuid.UUID, name string, done bool) error {
	ctx := context.Background()
	s, err := kit.OpenCrash(disk)
	if err != nil {
		return err
	}
	defer s.Close()
	format, err := s.Legacy(id)
	if err != nil {
		return err
	}
	back := format != ""
	if _, err := disk.Lstat(id.String()); errors.Is(err, fs.ErrNotExist) && !back { // between the two moves of a folder
		for item, err := range trash.List(ctx, s) {
			if err != nil {
				return err
			}
			if item.Kind == "context" {
				if _, err := trash.Restore(ctx, s, item.Item); err != nil {
					return err
				}
			}
		}
	}
	if done && !back {
		return errors.New("the legacy context is not in its place")
	}
	if _, err := migrate.RestoreLegacy(ctx, s, id, migrate.RollbackOptions{}); err != nil && !back {
		return fmt.Errorf("done again: %w", err)
	}
	f, err := legacy.Open(disk, name, legacy.Options{})
	if err != nil {
		return err
	}
	defer f.Close()
	if f.Len() != 2 || len(f.Branches) != 1 {
		return fmt.Errorf("%s is another one", name)
	}
	c, err := s.Context(ctx, id) // it can be migrated once more
	if err != nil {
		return err
	}
	defer c.Close()
	if n, err := c.Active().Len(ctx); n != 2 || err != nil {
		return fmt.Errorf("%d messages, %w", n, err)
	}
	return nil
}
