package pgfs

import (
	"context"
	"errors"
	"path"
	"sync"
	"syscall"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// slot is the name of a lock in its folder.
type slot struct {
	dir  *node
	name string
}

// holders are those who have the lock of a slot.
type holders struct {
	exclusive *lock
	shared    map[*lock]bool
	freed     chan struct{} // closed at each release
}

// lock is a lock within the process, since one process owns a user. It makes no file.
type lock struct {
	f      *FS
	name   string
	tenure uint64

	mu   sync.Mutex // guards held; taken before the volume's lock
	held *slot
}

// Lock returns a lock on name. The folder has to be there, and no file is made.
func (f *FS) Lock(name string) vfs.Lock {
	return &lock{f: &FS{v: f.v, root: f.root}, name: name} // it outlives Close
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
		}
	}
}

// try takes the lock, or returns a channel that closes when another try is worthwhile.
func (l *lock) try(shared bool) (freed chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err = l.f.locked("lock", l.name, func() error {
		dir, err := l.f.v.folder(l.f.root, path.Dir(l.name))
		if err != nil {
			return err
		}
		if dir.gone {
			return syscall.ENOENT
		}
		s := slot{dir, path.Base(l.name)}
		if l.held != nil {
			s = *l.held
		}
		h := l.f.v.locks[s]
		switch {
		case h == nil:
			h = &holders{shared: map[*lock]bool{}, freed: make(chan struct{})}
			l.f.v.locks[s] = h
			l.f.v.hold(dir)
		case l.held != nil || h.exclusive != nil || !shared && len(h.shared) > 0:
			freed = h.freed
			return nil
		}
		if shared {
			h.shared[l] = true
		} else {
			h.exclusive = l
		}
		l.held = &s
		l.tenure++
		return nil
	})
	return freed, err
}

// Tenure changes each time: Release always frees the lock.
func (l *lock) Tenure() uint64 { return l.tenure }

// Release releases the lock. Releasing a lock that is not held is an error.
func (l *lock) Release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		return errors.New("lock " + l.name + " is not held")
	}
	l.release()
	return nil
}

func (l *lock) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held != nil {
		l.release()
	}
	return nil
}

func (l *lock) release() {
	v := l.f.v
	v.mu.Lock()
	defer v.mu.Unlock()
	h := v.locks[*l.held]
	if h.exclusive == l {
		h.exclusive = nil
	}
	delete(h.shared, l)
	close(h.freed)
	h.freed = make(chan struct{})
	if h.exclusive == nil && len(h.shared) == 0 {
		delete(v.locks, *l.held)
		l.held.dir.refs--
	}
	l.held = nil
}
