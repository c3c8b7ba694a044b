package crashfs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

var bg = context.Background()

// waitContext is a context that ends when a goroutine is about to wait for its end.
type waitContext struct {
	context.Context
	end func()
}

func (c waitContext) Done() <-chan struct{} {
	c.end()
	return c.Context.Done()
}

func endOnWait() context.Context {
	ctx, end := context.WithCancel(bg)
	return waitContext{ctx, end}
}

func lockTable(t *testing.T, fsys vfs.FS) {
	try := func(l vfs.Lock, want bool) {
		t.Helper()
		ok, err := l.TryAcquire()
		if ok != want || err != nil {
			t.Errorf("TryAcquire: %v, %v; want %v", ok, err, want)
		}
	}
	a, b := fsys.Lock("l"), fsys.Lock("l")
	if _, err := fsys.Lstat("l"); err == nil {
		t.Error("Lock created the file")
	}
	try(a, true)
	if _, err := fsys.Lstat("l"); err != nil {
		t.Error(err)
	}
	try(a, false)
	try(b, false)
	try(fsys.Lock("other"), true)
	check(t, a.Release())
	try(b, true)
	if err := a.Acquire(endOnWait()); err != context.Canceled {
		t.Errorf("Acquire of a taken lock: %v", err)
	}
	if err := fsys.Lock("l").AcquireShared(endOnWait()); err != context.Canceled {
		t.Errorf("AcquireShared of a taken lock: %v", err)
	}
	check(t, b.Release())
	check(t, a.AcquireShared(bg))
	check(t, b.AcquireShared(bg))
	if err := a.AcquireShared(endOnWait()); err != context.Canceled {
		t.Errorf("one Lock taken twice: %v", err)
	}
	c := fsys.Lock("l")
	try(c, false)
	check(t, a.Release())
	try(c, false)
	check(t, b.Release())
	check(t, c.Acquire(bg)) // a waiter that gave up may hold it for a moment
	done := make(chan error)
	go func() { done <- a.Acquire(bg) }()
	check(t, c.Close())
	check(t, <-done)
	check(t, a.Release())
	if _, err := fsys.Lock("no/l").TryAcquire(); err == nil {
		t.Error("a lock in a missing folder was taken")
	}
	if err := fsys.Lock("no/l").Acquire(bg); err == nil {
		t.Error("a lock in a missing folder was taken")
	}
}

func TestLock(t *testing.T) {
	t.Run("os", func(t *testing.T) { lockTable(t, newOS(t)) })
	t.Run("crashfs", func(t *testing.T) { lockTable(t, New()) })
}

func TestLockPowerCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New()
		held := f.Lock("l")
		check(t, held.Acquire(bg))
		done := make(chan error)
		go func() { done <- f.Lock("l").Acquire(bg) }()
		synctest.Wait() // it waits
		f.Cut()
		if err := <-done; !errors.Is(err, ErrPowerCut) {
			t.Errorf("a waiter got %v", err)
		}
		if err := held.Release(); !errors.Is(err, ErrPowerCut) {
			t.Errorf("Release gave %v", err)
		}
		after := f.Crash(Keep)
		if ok, err := after.Lock("l").TryAcquire(); !ok || err != nil {
			t.Errorf("after the cut: %v, %v", ok, err)
		}
	})
}

func TestLockWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New()
		a, b, c := f.Lock("l"), f.Lock("l"), f.Lock("l")
		check(t, a.AcquireShared(bg))
		check(t, b.AcquireShared(bg))
		took := false
		go func() {
			check(t, c.Acquire(bg))
			took = true
		}()
		check(t, a.Release())
		synctest.Wait()
		if took {
			t.Error("taken beside a shared lock")
		}
		check(t, b.Close())
		synctest.Wait()
		if !took {
			t.Error("not taken when free")
		}
	})
}

// TestLockIsTheFile: a folder renamed takes its locks along; a file made anew is another lock.
func TestLockIsTheFile(t *testing.T) {
	f := New()
	check(t, f.Mkdir("d"))
	sub, err := f.Sub("d")
	check(t, err)
	check(t, sub.Lock("l").Acquire(bg))
	check(t, f.Rename("d", "e"))
	if ok, err := f.Lock("e/l").TryAcquire(); ok || err != nil {
		t.Errorf("after the rename: %v, %v", ok, err)
	}
	check(t, f.Remove("e/l"))
	if ok, err := f.Lock("e/l").TryAcquire(); !ok || err != nil {
		t.Errorf("after the removal: %v, %v", ok, err)
	}
}
