package crashfs

import (
	"context"
	"errors"
	"os"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// Lock returns a lock on name. The first acquisition creates the file, which is an operation. Locks exclude each other
// within the instance. In the results of Crash and Clone all are free.
func (f *FS) Lock(name string) vfs.Lock {
	// The lock has its own FS: it outlives Close, as that of vfs.OS does.
	return &lock{f: &FS{d: f.d, root: f.root}, name: name}
}

func (l *lock) Acquire(ctx context.Context) error       { return l.wait(ctx, false) }
func (l *lock) AcquireShared(ctx context.Context) error { return l.wait(ctx, true) }

func (l *lock) TryAcquire() (bool, error) {
	freed, err := l.try(false)
	return err == nil && freed == nil, err
}

func (l *lock) wait(ctx context.Context, shared bool) error {
	for {
		freed, err := l.try(shared)
		if err != nil || freed == nil {
			return err
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		case <-l.f.d.off:
			return ErrPowerCut
		}
	}
}

// try takes the lock or returns a channel that closes when a retry is worthwhile.
func (l *lock) try(shared bool) (freed chan struct{}, err error) {
	h, err := l.f.OpenFile(l.name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	n := h.(*file).node
	err = l.f.d.run(func() Op { return Op{Kind: KindLock, Path: l.f.full(l.name)} }, func(_ Op, fault error) error {
		if fault != nil {
			return fault
		}
		if l.held != nil {
			freed = l.held.lock.freed
			return nil
		}
		s := &n.lock
		if s.freed == nil {
			s.freed, s.shared = make(chan struct{}), map[*lock]bool{}
		}
		switch {
		case s.excl != nil || !shared && len(s.shared) > 0:
			freed = s.freed
			return nil
		case shared:
			s.shared[l] = true
		default:
			s.excl = l
		}
		l.held = n
		l.tenure++
		return nil
	})
	return freed, pathError("lock", l.name, err)
}

// Tenure changes each time: Release always frees the lock.
func (l *lock) Tenure() uint64 { return l.tenure }

// Release releases the lock. Releasing a lock that is not held is an error.
func (l *lock) Release() error {
	l.f.d.mu.Lock()
	defer l.f.d.mu.Unlock()
	if l.held == nil {
		return errors.New("lock " + l.name + " is not held")
	}
	l.release()
	if l.f.d.dead {
		return ErrPowerCut
	}
	return nil
}

func (l *lock) Close() error {
	l.f.d.mu.Lock()
	defer l.f.d.mu.Unlock()
	if l.held != nil {
		l.release()
	}
	return nil
}

func (l *lock) release() {
	s := &l.held.lock
	if s.excl == l {
		s.excl = nil
	}
	delete(s.shared, l)
	close(s.freed)
	s.freed = make(chan struct{})
	l.held = nil
}
