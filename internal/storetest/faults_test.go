package storetest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

var faultStride = flag.Int("faults.stride", 5, "operations of the workload from one that fails to the next")

// faults are the ways in which calls fail, from the kth on.
func faults() map[string]func(k int) func(crashfs.Op) error {
	all := map[string]func(k int) func(crashfs.Op) error{"reading": unread}
	for kind := range faulty(0) {
		all[kind] = func(k int) func(crashfs.Op) error { return faulty(k)[kind] }
	}
	return all
}

// unread lets a call that only looks fail: the kth.
func unread(k int) func(crashfs.Op) error {
	n := 0
	return func(o crashfs.Op) error {
		switch o.Kind {
		case crashfs.KindOpen, crashfs.KindRead, crashfs.KindStat, crashfs.KindReadDir:
			if n++; n == k {
				return syscall.EIO
			}
		default:
		}
		return nil
	}
}

// TestFaultAtEveryOperation lets calls of the workload fail, one or all from there on. Each operation then succeeds or
// says what failed; nothing that was acknowledged is lost, through the same handle or a new one; and when the fault is
// gone, the operation works when it is done again, through the same handle, and lasts: a power cut right behind it
// takes nothing.
func TestFaultAtEveryOperation(t *testing.T) {
	for kind, fault := range faults() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			failures := 0
			for k := range kit.Cuts(*faultStride) {
				fired, failed, err := underFault(fault, k)
				if err != nil {
					t.Fatalf("from call %d on: %v", k, err)
				}
				failures += failed
				if !fired {
					break
				}
			}
			t.Logf("%d operations failed", failures)
			if failures == 0 {
				t.Error("no operation failed")
			}
		})
	}
}

// underFault does the workload while calls fail. The fault is gone when an operation has failed for it.
func underFault(fault func(k int) func(crashfs.Op) error, k int) (fired bool, failed int, err error) {
	disk := crashfs.New()
	s, err := kit.Init("disk", kit.CrashOptions(disk, engine.InOrder())...)
	if err != nil {
		return false, 0, err
	}
	defer s.Close()
	hook := fault(len(disk.Ops()) + k)
	disk.Fail(kit.Serialise(func(o crashfs.Op) error {
		err := hook(o)
		fired = fired || err != nil
		return err
	}))
	w := &kit.World{Ctx: context.Background(), Store: s, ID: kit.TestID(60000)}
	before := kit.Transcript{}
	for _, st := range workload() {
		after := before.Clone()
		st.Then(after)
		certain := true
		if serr := st.Do(w); serr != nil {
			disk.Fail(nil)
			failed++
			if certain, err = st.VerifyRecovery(w, serr, before, after); err != nil {
				return fired, failed, fmt.Errorf("in %q, which said %q: %w", st.Name, serr, err)
			}
		}
		if fired {
			got, err := kit.Read(disk.Crash(crashfs.Lose), w.ID)
			if !certain && errors.Is(err, engine.ErrNotExist) && len(before) == 0 || !certain && err == nil && kit.Equal(got, before) {
				err, got = nil, after
			}
			if err != nil || !kit.Equal(got, after) {
				err = errors.Join(err, kit.VerifyAllowed(got, after, after, nil))
				return fired, failed, fmt.Errorf("a power cut behind %q takes what was acknowledged: %w", st.Name, err)
			}
		}
		before = after
	}
	disk.Fail(nil)
	return fired, failed, kit.Verify(disk, before, before, nil, true)
}

// faulty are the ways in which operations fail from the k-th on.
func faulty(k int) map[string]func(crashfs.Op) error {
	writes := func(o crashfs.Op) bool {
		switch o.Kind {
		case crashfs.KindCreate, crashfs.KindWrite, crashfs.KindMkdir, crashfs.KindRename:
			return true
		default:
			return false
		}
	}
	return map[string]func(crashfs.Op) error{
		"one": func(o crashfs.Op) error {
			if o.Index == k {
				return syscall.EIO
			}
			return nil
		},
		"full": func(o crashfs.Op) error {
			if o.Index < k || !writes(o) {
				return nil
			}
			if o.Kind == crashfs.KindWrite && o.Size > 1 {
				return &crashfs.ShortWrite{N: int(o.Size / 2), Err: syscall.ENOSPC}
			}
			return syscall.ENOSPC
		},
		"unsynced": func(o crashfs.Op) error {
			if o.Index < k || !synced(o.Kind) {
				return nil
			}
			return syscall.EIO
		},
	}
}

// synced reports whether an operation is a sync.
func synced(kind crashfs.Kind) bool {
	switch kind {
	case crashfs.KindSync, crashfs.KindDatasync, crashfs.KindSyncDir, crashfs.KindSyncAll:
		return true
	default:
		return false
	}
}
