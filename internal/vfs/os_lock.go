package vfs

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"sync/atomic"
	"time"
)

func (o *osFS) Lock(name string) Lock {
	l := &osLock{fs: o, name: name, turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	return l
}

// osLock is a flock behind a mutex: one handle does not exclude the goroutines that share it. Release keeps the
// system's lock for a waiting goroutine.
type osLock struct {
	fs      *osFS
	name    string
	turn    chan struct{} // the mutex: empty while a goroutine holds or requests the lock
	waiters atomic.Int64  // goroutines that wait for turn
	asking  atomic.Bool   // a goroutine waits in the system, perhaps for a caller that gave up

	// The goroutine that emptied turn owns these fields.
	f      *fileLock   // nil before the first use
	folder *lockFolder // of the lock file
	kept   bool        // the last holder did not release the system's lock
	passed int         // how often the lock was passed on since the system granted it
	tenure uint64      // how often the system granted it
}

func (l *osLock) handle() *fileLock {
	return newFileLock(filepath.Join(l.fs.dir, filepath.FromSlash(l.name)))
}

func (l *osLock) Tenure() uint64 { return l.tenure }

func (l *osLock) Acquire(ctx context.Context) error { return l.acquire(ctx, false) }

func (l *osLock) AcquireShared(ctx context.Context) error { return l.acquire(ctx, true) }

// A goroutine tries some times before it waits in the system: a holder needs some ten microseconds. A waiter that the
// system wakes holds the lock from then on, perhaps for milliseconds before it gets the processor.
const (
	tries         = 20
	shortestPause = 10 * time.Microsecond
	longestPause  = 200 * time.Microsecond
)

func (l *osLock) acquire(ctx context.Context, shared bool) error {
	if err := l.await(ctx); err != nil {
		return err
	}
	ok, err := l.take(shared)
	for n, pause := 1, shortestPause; !ok && err == nil; n++ {
		if n > tries && l.asking.CompareAndSwap(false, true) {
			err = l.ask(ctx, shared)
			break
		}
		rest(pause/2 + rand.N(pause))
		if err = ctx.Err(); err == nil {
			ok, err = l.try(shared)
		}
		pause = min(2*pause, longestPause)
	}
	if err != nil {
		l.turn <- struct{}{}
	}
	return err
}

// ask waits for the lock in the system. Nothing can cancel that call. So when ctx ends, the call continues until it can
// give the lock back, and meanwhile others only try: there is never more than one such call.
func (l *osLock) ask(ctx context.Context, shared bool) error {
	f, answer := l.handle(), make(chan error)
	go func() {
		defer l.asking.Store(false)
		err := f.wait(shared)
		select {
		case answer <- err:
		case <-ctx.Done():
			_ = f.close()
		}
	}()
	select {
	case err := <-answer:
		_ = l.f.close()
		if l.f = f; err == nil {
			err = l.begin()
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// await empties turn.
func (l *osLock) await(ctx context.Context) error {
	select {
	case <-l.turn:
		return nil
	default:
	}
	l.waiters.Add(1)
	select {
	case <-l.turn:
		l.waiters.Add(-1)
		return nil
	case <-ctx.Done():
		l.waiters.Add(-1)
		_ = l.settle() // the lock may have been kept for this goroutine
		return ctx.Err()
	}
}

func (l *osLock) TryAcquire() (ok bool, err error) {
	select {
	case <-l.turn:
	default:
		return false, nil
	}
	if ok, err = l.take(false); !ok {
		l.turn <- struct{}{}
	}
	return ok, err
}

// maxPasses limits how often this process passes the lock on while other processes may be waiting.
const maxPasses = 32

// take takes over a kept lock, or tries to get the lock from the system.
func (l *osLock) take(shared bool) (ok bool, err error) {
	if l.kept && !shared && l.passed < maxPasses {
		l.kept = false
		l.passed++
		return true, nil
	}
	if err := l.free(); err != nil {
		return false, err
	}
	return l.try(shared)
}

// try gets the lock from the system if no other process has it. If the open file is no longer the one in the folder,
// try opens that one.
func (l *osLock) try(shared bool) (ok bool, err error) {
	if l.f == nil {
		l.f = l.handle()
	}
	for range 2 {
		if err := l.locate(); err != nil {
			return false, err
		}
		if ok, err = l.f.try(shared); errors.Is(err, fs.ErrNotExist) {
			if err = l.create(); err == nil {
				ok, err = l.f.try(shared)
			}
		}
		if !ok || err != nil {
			return false, err
		}
		if err = l.begin(); err == nil {
			return true, nil
		}
	}
	return false, err
}

// begin begins a tenure: the system has granted the lock.
func (l *osLock) begin() error {
	if err := l.same(); err != nil {
		_ = l.f.close()
		return err
	}
	l.passed = 0
	l.tenure++
	return nil
}

// Release keeps the system's lock for waiting goroutines.
func (l *osLock) Release() error {
	var err error
	if l.kept = l.f.exclusive; !l.kept {
		err = l.f.unlock() // a shared lock
	}
	l.turn <- struct{}{}
	return errors.Join(err, l.settle())
}

// settle releases a kept lock that no goroutine waits for. Both the last holder and the last waiter that gives up call
// it, after the one filled turn and the other stopped waiting. So one of them finds the lock.
func (l *osLock) settle() (err error) {
	if l.waiters.Load() > 0 {
		return nil
	}
	select {
	case <-l.turn:
		err = l.free()
		l.turn <- struct{}{}
	default: // another goroutine has the lock, and will release it
	}
	return err
}

// free releases a kept lock.
func (l *osLock) free() error {
	if !l.kept {
		return nil
	}
	l.kept = false
	return l.f.unlock()
}

// same checks that the locked file is the one in the folder: the path may lead elsewhere by now.
func (l *osLock) same() error {
	held, err := l.f.stat()
	if err != nil {
		return err
	}
	if same, _ := IsAt(l.fs, l.name, held); same {
		return nil
	}
	for range 2 {
		if err := l.locate(); err != nil {
			return err
		}
		folder, ferr := l.fs.Lstat(path.Dir(l.name))
		var there fs.FileInfo
		there, err = l.folder.Lstat(path.Base(l.name))
		if err == nil && ferr == nil && SameFile(held, there) && SameFile(folder, l.folder.self) {
			return nil
		}
		l.forget() // the folder of locks may be another one now
	}
	if err == nil {
		err = &fs.PathError{Op: "lock", Path: l.name, Err: fs.ErrNotExist}
	}
	return err
}

// locate opens the folder of the lock file without following links.
func (l *osLock) locate() (err error) {
	if l.folder == nil {
		l.folder, err = l.fs.lockFolder(path.Dir(l.name))
	}
	return err
}

func (o *osFS) lockFolder(name string) (*lockFolder, error) {
	o.locking.Lock()
	defer o.locking.Unlock()
	if folder := o.locks[name]; folder != nil {
		return folder, nil
	}
	folder, err := o.Sub(name)
	if err != nil {
		return nil, err
	}
	self, err := folder.Lstat(".")
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	if o.locks == nil {
		o.locks = map[string]*lockFolder{}
	}
	o.locks[name] = &lockFolder{folder, self}
	return o.locks[name], nil
}

// forget makes the next use open the folder again. Other locks may still use it; the garbage collector closes it.
func (l *osLock) forget() {
	l.fs.locking.Lock()
	defer l.fs.locking.Unlock()
	if name := path.Dir(l.name); l.folder != nil && l.fs.locks[name] == l.folder {
		delete(l.fs.locks, name)
	}
	l.folder = nil
}

// create makes the lock file in its current folder.
func (l *osLock) create() error {
	if now, err := l.fs.Lstat(path.Dir(l.name)); err != nil || !SameFile(now, l.folder.self) {
		l.forget()
	}
	if err := l.locate(); err != nil {
		return err
	}
	f, err := l.folder.OpenFile(path.Base(l.name), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	return f.Close()
}

func (l *osLock) Close() error {
	select {
	case <-l.turn:
	default: // the caller holds it
	}
	l.kept = false
	var err error
	if l.f != nil {
		err = l.f.close()
	}
	l.folder = nil
	l.turn <- struct{}{}
	return err
}
