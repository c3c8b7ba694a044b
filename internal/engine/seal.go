package engine

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
)

// Seal makes segments of all that logs have, now. A log that is long enough is sealed by itself. While another process
// seals the context, Seal waits.
func (c *Context) Seal(ctx context.Context) error {
	if c.Store.ReadOnly {
		return Wrap(Error{Op: "seal", Context: c.Dir.ID}, ErrReadOnly)
	}
	return Wrap(Error{Op: "seal", Context: c.Dir.ID}, c.use(func() error {
		return errors.Join(c.sealAll(ctx), c.flushProjection(ctx))
	}))
}

// Wrote notes that records were committed. A seal that is due begins when commits pause: beside appends, its syncs would
// delay them.
func (c *Context) Wrote() {
	c.mu.Lock()
	c.wrote = true
	c.mu.Unlock()
}

// sealDue reports whether a log ended, or logs have so many bytes.
func (c *Context) sealDue(size int64) bool {
	if c.Store.Options.noSeal || c.Store.ReadOnly {
		return false
	}
	n, ended, err := c.Index.UnsealedBytes()
	return err == nil && (ended || n >= min(size, c.Store.Options.sealBytes))
}

// sealIfDue starts a seal in the background, unless one is running. One that fails, on a full disk for instance, only
// costs a longer log: a later commit repeats it.
func (c *Context) sealIfDue() {
	if !c.sealDue(sealInPause) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	if c.sealing != nil {
		select {
		case <-c.sealing:
		default:
			return
		}
	}
	done := make(chan struct{})
	c.sealing = done
	go func() {
		defer close(done)
		_ = c.seal(false)
	}()
}

// seal makes the files of messages, and segments of what logs have. Without wait it leaves the latter to another process
// that does so now.
func (c *Context) seal(wait bool) error {
	limited, cancel := context.WithTimeout(context.Background(), c.Store.Options.LockTimeout)
	defer cancel()
	if wait {
		return c.sealAll(limited)
	}
	if ok, err := c.Dir.SealLock.TryAcquire(); !ok || err != nil {
		return err
	}
	defer c.Dir.SealLock.Release()
	return c.sealHeld(limited)
}

func (c *Context) sealAll(ctx context.Context) error {
	if err := c.Store.Acquire(ctx, c.Dir.SealLock); err != nil {
		return err
	}
	defer c.Dir.SealLock.Release()
	return c.sealHeld(ctx)
}

// sealHeld seals. The caller holds the lock for sealing.
//
// Crash order: see [index.Index.Seal]. The files of messages come first, so that a process that finds a sealed message without a
// file need not make it; once more for what others committed before the log ended.
func (c *Context) sealHeld(ctx context.Context) error {
	_ = c.awaitFiles(background) // as in flush
	made, err := c.makeMissing(ctx, background)
	isBehind := false
	if err == nil {
		err = c.Write(ctx, func(*Metadata) error {
			at, err := c.Index.At()
			if err != nil {
				return err
			}
			isBehind, c.prepared = at != made, 0 // another log begins
			return c.Index.Rotate()
		})
	}
	if err == nil && isBehind {
		_, err = c.makeMissing(ctx, background)
	}
	if err == nil {
		err = c.Index.Seal(archive.Options{})
	}
	if err == nil {
		err = c.Index.Merge(archive.Options{With: mergeCompressor()})
	}
	if err == nil {
		c.summarise()
	}
	return err
}

// summarise replaces index.json, a view for people and other programs. The caller holds the lock for sealing.
func (c *Context) summarise() {
	b, err := c.Index.Summary()
	if err == nil {
		err = c.Dir.ReplaceView(ctxfolder.IndexFile, b)
	}
	_ = err // nothing reads it here
}

// summariseNow is summarise for a caller without the lock for sealing, who may not know what others removed for good. If
// another process has the lock, it replaces the file in the end.
func (c *Context) summariseNow() {
	if ok, err := c.Dir.SealLock.TryAcquire(); !ok || err != nil {
		return
	}
	defer c.Dir.SealLock.Release()
	if c.Index.Refresh() == nil {
		c.summarise()
	}
}

// AwaitSeal waits for the seal in the background, if one is running.
func (c *Context) AwaitSeal() {
	c.mu.Lock()
	sealing := c.sealing
	c.mu.Unlock()
	if sealing != nil {
		<-sealing
	}
}

// mergeCompressor compresses merged segments, of all contexts.
var mergeCompressor = sync.OnceValue(func() *archive.Compressor { return archive.NewCompressor(archive.Fast, runtime.GOMAXPROCS(0)) })
