package erase_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestEraseCut cuts the power at every operation of an erase. Whatever the disk holds then, the other messages are
// there; the message is what it was or erased; and to erase again leaves nothing of it, also after another cut.
func TestEraseCut(t *testing.T) {
	t.Parallel()
	states := 0
	for k := range kit.Cuts(1) {
		disk := crashfs.New()
		s, want := kit.NewCanaryStore(t, disk)
		disk.CutAt(len(disk.Ops()) + k)
		_, err := kit.Erase(s, kit.TestID(60000), kit.TestID(2), erase.Options{Shared: true})
		over := err == nil && !disk.PowerCut()
		if err != nil && !disk.PowerCut() {
			t.Fatal(err)
		}
		choices := []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill}
		for seed := range *kit.PowercutSeeds {
			choices = append(choices, crashfs.Random(uint64(k*1000+seed)))
		}
		for _, choice := range choices {
			states++
			if err := verifyErase(disk.Crash(choice), want, over); err != nil {
				t.Fatalf("power cut at operation %d (%s), disk %s: %v", k, kit.LastOp(disk), choice, err)
			}
		}
		if over {
			break
		}
	}
	t.Logf("%d disk states", states)
}

func verifyErase(disk *crashfs.FS, want kit.Transcript, over bool) error {
	if err := kit.VerifyAllBut(disk, want, kit.TestID(2), over); err != nil {
		return err
	}
	s, err := kit.OpenCrash(disk)
	if err != nil {
		return err
	}
	defer s.Close()
	if over {
		if found, err := kit.FilesWithCanary(disk); err != nil || len(found) > 0 {
			return fmt.Errorf("after the erase: the canary is in %v, %w", found, err)
		}
	}
	if _, err := kit.Erase(s, kit.TestID(60000), kit.TestID(2), erase.Options{Shared: true}); err != nil {
		return fmt.Errorf("erasing again: %w", err)
	}
	for _, d := range []*crashfs.FS{disk, disk.Crash(crashfs.Lose)} {
		if found, err := kit.FilesWithCanary(d); err != nil || len(found) > 0 {
			return fmt.Errorf("after erasing again: the canary is in %v, %w", found, err)
		}
		if err := kit.VerifyAllBut(d, want, kit.TestID(2), true); err != nil {
			return fmt.Errorf("after erasing again: %w", err)
		}
	}
	if err := kit.VerifyRepair(context.Background(), s); err != nil {
		return fmt.Errorf("after erasing again: %w", err)
	}
	return kit.VerifyAllBut(disk, want, kit.TestID(2), true)
}
