package storetest

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// Serialise makes calls of the hook wait for each other, where an operation works in several goroutines.
func Serialise(hook func(crashfs.Op) error) func(crashfs.Op) error {
	var mu sync.Mutex
	return func(o crashfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		return hook(o)
	}
}

// VerifyRecovery checks what a failed operation left behind, and repeats the operation. certain is false if the repeat
// reports that the work was already done: then the failed attempt had apparently succeeded.
func (st *Step) VerifyRecovery(w *World, failed error, before, after Transcript) (certain bool, err error) {
	if !errors.Is(failed, syscall.EIO) && !errors.Is(failed, syscall.ENOSPC) && !errors.Is(failed, engine.ErrDurability) {
		return false, errors.New("that is not what failed")
	}
	disk := w.Store.Options.FS.(*crashfs.FS)
	got, err := Read(disk, w.ID)
	if errors.Is(err, engine.ErrNotExist) && len(before) == 0 {
		return true, st.Do(w)
	}
	if err != nil {
		return false, fmt.Errorf("through a new handle: %w", err)
	}
	if err := VerifyAllowed(got, before, after, st); err != nil {
		return false, fmt.Errorf("through a new handle: %w", err)
	}
	err = st.Do(w)
	if (errors.Is(err, engine.ErrExist) || errors.Is(err, engine.ErrNotExist)) && Equal(got, after) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("done again: %w", err)
	}
	return true, nil
}

// FailLook lets the k-th look at the disk fail: an open, a read, or a question about a file or a folder. failed is empty
// until that happens, and then says which look it was.
func FailLook(disk *crashfs.FS, k int) (failed *string) {
	failed = new(string)
	disk.Fail(func(o crashfs.Op) error {
		switch o.Kind {
		case crashfs.KindOpen, crashfs.KindRead, crashfs.KindStat, crashfs.KindReadDir:
			if k--; k == 0 {
				*failed = fmt.Sprintf("%s %s", o.Kind, o.Path)
				return syscall.EIO
			}
		}
		return nil
	})
	return failed
}
