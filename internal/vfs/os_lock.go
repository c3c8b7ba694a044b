package vfs

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

func (o *osFS) Lock(name string) Lock {
	p := filepath.Join(o.dir, filepath.FromSlash(name))
	return &osLock{
		fs: o, name: name,
		inner: make(chan struct{}, 1),
		f:     flock.New(p, flock.SetFlag(os.O_RDWR|openFlags)), // do not let flock create the file: the path may lead elsewhere
	}
}

// osLock is a flock behind a mutex: one handle does not exclude the goroutines that share it.
type osLock struct {
	fs    *osFS
	name  string
	inner chan struct{} // full while a goroutine holds or requests the lock
	f     *flock.Flock

	// The goroutine that filled inner owns these fields.
	folder FS     // the folder of the lock file
	asked  *asked // a pending system call for the lock
	passed int    // how often the lock was passed on since the system granted it
	tenure uint64 // how often the system granted it

	mu      sync.Mutex
	waiters int  // goroutines that wait for inner
	kept    bool // the system's lock was not released; the next goroutine that fills inner has it
}

// asked is a pending call for the system's lock. Nothing can cancel it: a goroutine that gives up leaves it to the next
// that wants the lock, so there is at most one. If none wants the granted lock, ask releases it.
type asked struct {
	shared bool
	answer chan error
	wanted bool // a goroutine waits for the answer; guarded by osLock.mu
}

// errGivenBack is the answer if no goroutine wanted the lock any more.
var errGivenBack = errors.New("the lock was given back")

// same checks that the file locked by path is the one in the folder: the path may lead elsewhere by now.
func (l *osLock) same() error {
	held, err := l.f.Stat()
	if err != nil {
		return err
	}
	for range 2 {
		if err := l.locate(); err != nil {
			return err
		}
		var there fs.FileInfo
		if there, err = l.folder.Lstat(path.Base(l.name)); err == nil && SameFile(held, there) {
			return nil
		}
		// The folder of locks may be another one now.
		_ = l.folder.Close()
		l.folder = nil
	}
	if err == nil {
		err = &fs.PathError{Op: "lock", Path: l.name, Err: fs.ErrNotExist}
	}
	return err
}

// locate opens the folder of the lock file without following links.
func (l *osLock) locate() error {
	if l.folder != nil {
		return nil
	}
	folder, err := l.fs.Sub(path.Dir(l.name))
	if err == nil {
		l.folder = folder
	}
	return err
}

func (l *osLock) Acquire(ctx context.Context) error       { return l.wait(ctx, false) }
func (l *osLock) AcquireShared(ctx context.Context) error { return l.wait(ctx, true) }

func (l *osLock) wait(ctx context.Context, shared bool) error {
	if err := l.enter(ctx); err != nil {
		return err
	}
	if l.take(shared) {
		return nil
	}
	err := l.get(ctx, shared)
	if err == nil {
		if err = l.same(); err != nil {
			_ = l.f.Unlock()
		}
	}
	if err != nil {
		<-l.inner
	}
	return err
}

// enter fills inner.
func (l *osLock) enter(ctx context.Context) error {
	select {
	case l.inner <- struct{}{}:
		return nil
	default:
	}
	l.mu.Lock()
	l.waiters++
	l.mu.Unlock()
	var err error
	select {
	case l.inner <- struct{}{}:
	case <-ctx.Done():
		err = ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiters--
	if err != nil && l.waiters == 0 && l.kept {
		// The lock may have been kept for this goroutine.
		select {
		case l.inner <- struct{}{}:
			l.kept = false
			_ = l.f.Unlock()
			<-l.inner
		default: // another goroutine has it
		}
	}
	return err
}

// most limits how often this process passes the lock on while other processes may be waiting.
const most = 32

// take takes over a lock that the last holder kept.
func (l *osLock) take(shared bool) bool {
	l.mu.Lock()
	kept := l.kept
	l.kept = false
	l.mu.Unlock()
	if kept && (shared || l.passed >= most) {
		_ = l.f.Unlock()
		kept = false
	}
	if kept {
		l.passed++
	} else {
		l.passed = 0
		l.tenure++
	}
	return kept
}

func (l *osLock) Tenure() uint64 { return l.tenure }

// tries is how often get tries the lock before it waits in the system. A holder needs some ten microseconds; waking a
// waiter takes longer.
const tries = 3

func (l *osLock) get(ctx context.Context, shared bool) error {
	if l.asked != nil {
		other := l.asked.shared != shared
		err := l.answer(ctx)
		if err == nil && other {
			_ = l.f.Unlock()
		} else if !errors.Is(err, errGivenBack) {
			return err
		}
	}
	for i := range tries {
		if ok, err := l.try(shared); ok || err != nil {
			return err
		}
		pause := 10 * time.Microsecond << i
		time.Sleep(pause/2 + rand.N(pause))
	}
	l.asked = &asked{shared: shared, answer: make(chan error, 1), wanted: true}
	go l.ask(l.asked)
	return l.answer(ctx)
}

// ask waits for the lock in the system.
func (l *osLock) ask(a *asked) {
	lock := l.f.Lock
	if a.shared {
		lock = l.f.RLock
	}
	err := lock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && !a.wanted {
		_ = l.f.Unlock()
		err = errGivenBack
	}
	a.answer <- err
}

func (l *osLock) try(shared bool) (ok bool, err error) {
	if err := l.locate(); err != nil {
		return false, err
	}
	lock := l.f.TryLock
	if shared {
		lock = l.f.TryRLock
	}
	if ok, err = lock(); errors.Is(err, fs.ErrNotExist) {
		if err = l.create(); err == nil {
			ok, err = lock()
		}
	}
	return ok, err
}

// create makes the lock file in its current folder.
func (l *osLock) create() error {
	_ = l.folder.Close()
	l.folder = nil
	if err := l.locate(); err != nil {
		return err
	}
	f, err := l.folder.OpenFile(path.Base(l.name), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	return f.Close()
}

// answer waits for the pending call.
func (l *osLock) answer(ctx context.Context) error {
	l.want(true)
	select {
	case err := <-l.asked.answer:
		l.asked = nil
		return err
	case <-ctx.Done():
	}
	l.want(false)
	select {
	case err := <-l.asked.answer: // the answer came in between
		if l.asked = nil; err == nil {
			_ = l.f.Unlock()
		}
	default:
	}
	return ctx.Err()
}

func (l *osLock) want(wanted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked.wanted = wanted
}

func (l *osLock) TryAcquire() (ok bool, err error) {
	select {
	case l.inner <- struct{}{}:
	default:
		return false, nil
	}
	defer func() {
		if !ok {
			<-l.inner
		}
	}()
	if l.take(false) {
		return true, nil
	}
	if l.asked != nil {
		select {
		case err = <-l.asked.answer:
			ok = err == nil && !l.asked.shared
			if err == nil && !ok {
				_ = l.f.Unlock()
			}
			if errors.Is(err, errGivenBack) {
				err = nil
			}
			l.asked = nil
		default:
			return false, nil
		}
	}
	if !ok && err == nil {
		ok, err = l.try(false)
	}
	if ok {
		if err = l.same(); err != nil {
			ok = false
			_ = l.f.Unlock()
		}
	}
	return ok, err
}

// Release passes the lock on to a waiting goroutine without releasing it to the system.
func (l *osLock) Release() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiters > 0 && l.f.Locked() {
		l.kept = true
	} else {
		err = l.f.Unlock()
	}
	// Hold mu here: a waiter that gives up in between must find inner free, or nothing would release the system's lock.
	select {
	case <-l.inner:
	default: // it was not held
	}
	return err
}

func (l *osLock) Close() (err error) {
	select {
	case l.inner <- struct{}{}:
	default: // the caller holds it
	}
	if l.asked == nil {
		err = l.f.Unlock()
	} else {
		go func(a *asked) {
			if <-a.answer == nil {
				_ = l.f.Unlock()
			}
		}(l.asked)
		l.asked = nil
	}
	if l.folder != nil {
		_ = l.folder.Close()
		l.folder = nil
	}
	<-l.inner
	return err
}
