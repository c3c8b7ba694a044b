package engine

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"sync"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
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

// inTurn makes calls of the hook wait for each other, where an operation works in several goroutines.
func inTurn(hook func(crashfs.Op) error) func(crashfs.Op) error {
	var mu sync.Mutex
	return func(o crashfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		return hook(o)
	}
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
			for k := 1; ; k += *faultStride * stride() {
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
	s, err := Init("disk", onCrashFS(disk, inOrder())...)
	if err != nil {
		return false, 0, err
	}
	defer s.Close()
	hook := fault(len(disk.Ops()) + k)
	disk.Fail(inTurn(func(o crashfs.Op) error {
		err := hook(o)
		fired = fired || err != nil
		return err
	}))
	w := &world{ctx: context.Background(), store: s, id: testID(60000)}
	before := said{}
	for _, st := range workload() {
		after := before.clone()
		st.then(after)
		certain := true
		if serr := st.do(w); serr != nil {
			disk.Fail(nil)
			failed++
			if certain, err = st.recovers(w, serr, before, after); err != nil {
				return fired, failed, fmt.Errorf("in %q, which said %q: %w", st.name, serr, err)
			}
		}
		if fired {
			got, err := read(disk.Crash(crashfs.Lose), w.id)
			if !certain && errors.Is(err, ErrNotExist) && len(before) == 0 || !certain && err == nil && equal(got, before) {
				err, got = nil, after
			}
			if err != nil || !equal(got, after) {
				err = errors.Join(err, allowed(got, after, after, nil))
				return fired, failed, fmt.Errorf("a power cut behind %q takes what was acknowledged: %w", st.name, err)
			}
		}
		before = after
	}
	disk.Fail(nil)
	return fired, failed, verify(disk, before, before, nil, true)
}

// recovers looks at what an operation left that failed, and does it again. certain says that it succeeded then: not,
// when it finds that it was done before, as far as can be seen.
func (st *step) recovers(w *world, failed error, before, after said) (certain bool, err error) {
	if !errors.Is(failed, syscall.EIO) && !errors.Is(failed, syscall.ENOSPC) && !errors.Is(failed, ErrDurability) {
		return false, errors.New("that is not what failed")
	}
	disk := w.store.opts.fs.(*crashfs.FS)
	got, err := read(disk, w.id)
	if errors.Is(err, ErrNotExist) && len(before) == 0 {
		return true, st.do(w)
	}
	if err != nil {
		return false, fmt.Errorf("through a new handle: %w", err)
	}
	if err := allowed(got, before, after, st); err != nil {
		return false, fmt.Errorf("through a new handle: %w", err)
	}
	err = st.do(w)
	if (errors.Is(err, ErrExist) || errors.Is(err, ErrNotExist)) && equal(got, after) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("done again: %w", err)
	}
	return true, nil
}
