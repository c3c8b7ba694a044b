package erase_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// TestEraseUnread lets each look at the disk fail once while a message is erased. What cannot be looked at may be there:
// an erase that reports success leaves no file with the message, and one that reports a failure leaves none when it is
// repeated.
func TestEraseUnread(t *testing.T) {
	t.Parallel()
	for k := 1 + rand.IntN(kit.Stride()); ; k += kit.Stride() {
		disk := crashfs.New()
		s, _ := kit.NewCanaryStore(t, disk)
		again := func() error {
			_, err := kit.Erase(s, kit.TestID(60000), kit.TestID(2), erase.Options{Shared: true})
			return err
		}
		failed := kit.FailLook(disk, k)
		first := again()
		disk.Fail(nil)
		if *failed == "" {
			kit.Check(t, first, s.Close())
			return
		}
		err := first
		if err != nil {
			err = again()
		}
		found, ferr := kit.FilesWithCanary(disk)
		if err = errors.Join(err, ferr); err != nil || len(found) > 0 {
			t.Errorf("look %d failed (%s), %v: the canary is in %v, %v", k, *failed, first, found, err)
		}
		kit.Check(t, s.Close())
	}
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
