package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// storeLock is held to make the store and to set a file of it aside.
const storeLock = ctxfolder.Locks + "/store"

// BlobsLock is held shared from the use of a blob to the commit that refers to it, and exclusively by a sweep.
const BlobsLock = "locks/blobs"

// CollectionLock is held to collect, purge, restore or erase.
const CollectionLock = ctxfolder.Locks + "/gc"

// Acquire takes a lock within the configured lock timeout.
func (s *Store) Acquire(ctx context.Context, lock vfs.Lock) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if ok, err := lock.TryAcquire(); ok || err != nil { // without the cost of a timer
		return err
	}
	return s.AcquireWith(ctx, lock.Acquire)
}

// acquireShared takes a shared lock within the configured lock timeout.
func (s *Store) acquireShared(ctx context.Context, lock vfs.Lock) error {
	return s.AcquireWith(ctx, lock.AcquireShared)
}

// AcquireWith runs acquire, which takes a lock, within the configured lock timeout. It fails with [ErrLocked].
func (s *Store) AcquireWith(ctx context.Context, acquire func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, s.Options.LockTimeout)
	defer cancel()
	err := acquire(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: waited %v", ErrLocked, s.Options.LockTimeout)
	}
	return err
}

// LockCollection takes [CollectionLock].
func (s *Store) LockCollection(ctx context.Context) (release func(), err error) {
	lock := s.FS.Lock(CollectionLock)
	if err := s.Acquire(ctx, lock); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return func() {
		_ = lock.Release()
		_ = lock.Close()
	}, nil
}

// TryLockCollection takes [CollectionLock] if it is free.
func (s *Store) TryLockCollection() (release func(), ok bool, err error) {
	lock := s.FS.Lock(CollectionLock)
	if ok, err = lock.TryAcquire(); !ok || err != nil {
		return nil, false, errors.Join(err, lock.Close())
	}
	return func() {
		_ = lock.Release()
		_ = lock.Close()
	}, true, nil
}

// BlobHold is a shared hold on the store's blobs.
type BlobHold struct {
	Store *Store
	mu    sync.Mutex
	lock  vfs.Lock
}

// Hold takes the hold, unless it is taken: no sweep moves a blob until Release.
func (b *BlobHold) Hold(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lock != nil {
		return nil
	}
	lock := b.Store.FS.Lock(BlobsLock)
	if err := b.Store.acquireShared(ctx, lock); err != nil {
		_ = lock.Close()
		return err
	}
	b.lock = lock
	return nil
}

// Release gives the hold back. Without a hold it does nothing.
func (b *BlobHold) Release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lock != nil {
		_ = b.lock.Release()
		_ = b.lock.Close()
		b.lock = nil
	}
}

// BlobsAlone runs f while no other process or goroutine holds blobs.
func (s *Store) BlobsAlone(ctx context.Context, f func() error) error {
	lock := s.FS.Lock(BlobsLock)
	defer lock.Close()
	if err := s.Acquire(ctx, lock); err != nil {
		return err
	}
	defer lock.Release()
	return f()
}
