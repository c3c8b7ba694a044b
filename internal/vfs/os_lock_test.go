package vfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
)

func lockOf(t *testing.T, dir string) Lock {
	t.Helper()
	fsys, err := OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	l := fsys.Lock("lock")
	t.Cleanup(func() {
		_ = l.Close()
		_ = fsys.Close()
	})
	return l
}

// TestPassingOn: a lock goes from one goroutine to the next without being free in between, and is free when the last
// one has given it back.
func TestPassingOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l, other := lockOf(t, dir), lockOf(t, dir)
		ctx := context.Background()
		if err := l.Acquire(ctx); err != nil {
			t.Fatal(err)
		}
		held, handed, last := 0, 0, l.Tenure()
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range 200 {
					if err := l.Acquire(ctx); err != nil {
						t.Error(err)
						return
					}
					if held++; held != 1 {
						t.Error("two hold it")
					}
					tenure := l.Tenure()
					if tenure == 0 || tenure < last {
						t.Errorf("tenure %d behind %d", tenure, last)
					}
					if tenure == last {
						handed++
					}
					last = tenure
					held--
					if err := l.Release(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		synctest.Wait()                     // all of them wait
		if err := l.Release(); err != nil { // passes it on
			t.Fatal(err)
		}
		group.Wait()
		if handed == 0 {
			t.Error("it was never passed on")
		}
		if ok, err := other.TryAcquire(); !ok || err != nil {
			t.Errorf("the lock is not free at the end: %v", err)
		}
	})
}

// TestGivingUp: a lock that was to be passed on to a waiter who gives up at that moment is free afterwards.
func TestGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l, other := lockOf(t, dir), lockOf(t, dir)
		for round := range 8000 {
			if err := l.Acquire(context.Background()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			waiting := make(chan error)
			go func() { waiting <- l.Acquire(ctx) }()
			synctest.Wait() // it waits
			released := make(chan struct{})
			release := func() {
				defer close(released)
				_ = l.Release()
			}
			if round%2 == 0 {
				go release()
				cancel()
			} else {
				go cancel()
				release()
			}
			if err := <-waiting; err == nil {
				<-released
				_ = l.Release()
			}
			<-released
			if ok, err := other.TryAcquire(); !ok || err != nil {
				t.Fatalf("nobody holds the lock, and it is not free: %v", err)
			}
			if err := other.Release(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestTwoHandles: a lock that another handle holds is waited for, and giving up leaves nothing behind that keeps it
// from others.
func TestTwoHandles(t *testing.T) {
	dir := t.TempDir()
	l, other := lockOf(t, dir), lockOf(t, dir)
	ctx := context.Background()
	if err := other.Acquire(ctx); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(ctx)
	waiting := make(chan error)
	go func() { waiting <- l.Acquire(gone) }()
	cancel()
	if err := <-waiting; err == nil {
		t.Fatal("two handles hold the lock")
	}
	if ok, _ := l.TryAcquire(); ok {
		t.Fatal("two handles hold the lock")
	}
	go func() { waiting <- l.Acquire(ctx) }()
	if err := other.Release(); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; err != nil {
		t.Fatal(err)
	}
	if ok, _ := other.TryAcquire(); ok {
		t.Fatal("two handles hold the lock")
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}

// onWait is a context that calls a function when a goroutine is about to wait for the end of the context.
type onWait struct {
	context.Context
	call func()
}

func (c onWait) Done() <-chan struct{} {
	c.call()
	return c.Context.Done()
}

// TestGivenUp: a waiter that gave up does not hold the lock when it becomes free later. Otherwise the other waiters would
// never get it.
func TestGivenUp(t *testing.T) {
	dir := t.TempDir()
	lock := func() Lock {
		fsys, err := OS(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = fsys.Close() })
		l := fsys.Lock("lock")
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	holder, first, patient := lock(), lock(), lock()
	for hasty, round := first, 0; round < 20; hasty, round = lock(), round+1 {
		if err := holder.Acquire(context.Background()); err != nil {
			t.Fatal(err)
		}
		ends, cancel := context.WithCancel(context.Background())
		// A new handle asks the system; one that gave up a moment ago may only try.
		if err := hasty.Acquire(onWait{ends, cancel}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := holder.Release(); err != nil {
			t.Fatal(err)
		}
		if err := patient.Acquire(context.Background()); err != nil {
			t.Fatalf("it is free, and cannot be had: %v", err)
		}
		if err := patient.Release(); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Acquire(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestLockSwapped: a link in the place of the folder of locks, or of a lock, creates no file where it leads, at
// whatever moment it comes.
func TestLockSwapped(t *testing.T) {
	for name, swap := range map[string]func(dir, outside string) error{
		"folder": func(dir, outside string) error {
			return errors.Join(os.Rename(filepath.Join(dir, "locks"), filepath.Join(dir, "before")),
				os.Symlink(outside, filepath.Join(dir, "locks")))
		},
		"lock": func(dir, outside string) error {
			lock := filepath.Join(dir, "locks", "a")
			_ = os.Remove(lock)
			return os.Symlink(filepath.Join(outside, "a"), lock)
		},
	} {
		for _, held := range []bool{false, true} {
			dir, outside := t.TempDir(), t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "locks"), 0o700); err != nil {
				t.Fatal(err)
			}
			fsys, err := OS(dir)
			if err != nil {
				t.Fatal(err)
			}
			l := fsys.Lock("locks/a")
			if held { // it knows the folder
				if err := errors.Join(l.Acquire(t.Context()), l.Release()); err != nil {
					t.Fatal(err)
				}
			} else if err := l.(*osLock).locate(); err != nil {
				t.Fatal(err)
			}
			if err := swap(dir, outside); err != nil {
				t.Skip(err)
			}
			if ok, err := l.TryAcquire(); ok || err == nil {
				t.Errorf("%s: tried: %v, %v", name, ok, err)
			}
			if err := l.Acquire(t.Context()); err == nil {
				t.Errorf("%s: acquired", name)
			}
			if err := l.AcquireShared(t.Context()); err == nil {
				t.Errorf("%s: shared", name)
			}
			if made, err := os.ReadDir(outside); err != nil || len(made) > 0 {
				t.Errorf("%s, held before: %v: made outside: %v, %v", name, held, made, err)
			}
			_ = l.Close()
			_ = fsys.Close()
		}
	}
}

// TestLockFolderReplaced: after another folder took the place of the folder of locks, locks of an FS that had the old
// one open exclude those of an FS that opens the new one. No lock file is made in the old one.
func TestLockFolderReplaced(t *testing.T) {
	dir := t.TempDir()
	locks, before := filepath.Join(dir, "locks"), filepath.Join(dir, "before")
	open := func() FS {
		fsys, err := OS(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = fsys.Close() })
		return fsys
	}
	if err := os.Mkdir(locks, 0o700); err != nil {
		t.Fatal(err)
	}
	old := open()
	known := old.Lock("locks/known")
	if err := errors.Join(known.Acquire(t.Context()), known.Release()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(locks, before); err != nil {
		t.Skipf("this system does not rename an open folder, as Windows: %v", err)
	}
	if err := os.Mkdir(locks, 0o700); err != nil {
		t.Fatal(err)
	}
	fresh := open()
	for _, name := range []string{"locks/other", "locks/known"} {
		l := known
		if name != "locks/known" {
			l = old.Lock(name)
		}
		other := fresh.Lock(name)
		if err := l.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		if ok, err := other.TryAcquire(); ok || err != nil {
			t.Errorf("%s: taken twice: %v, %v", name, ok, err)
		}
		if err := errors.Join(l.Release(), l.Close(), other.Close()); err != nil {
			t.Error(err)
		}
	}
	if made, err := os.ReadDir(before); err != nil || len(made) != 1 {
		t.Errorf("in the old folder: %v, %v", made, err)
	}
}
