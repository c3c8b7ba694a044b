package engine

import (
	"runtime"
	"sync"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// Wrote notes that records were committed. A seal that is due begins when commits pause: beside appends, its syncs would
// delay them.
func (c *Context) Wrote() {
	c.mu.Lock()
	c.wrote = true
	c.mu.Unlock()
}

// sealDue reports whether a log ended, or logs have so many bytes: those of a full log where nobody looks for the segments of
// a short one.
func (c *Context) sealDue(size int64) bool {
	if c.Store.Options.noSeal || c.Store.ReadOnly {
		return false
	}
	if !vfs.HasViews(c.Dir.FS) {
		size = c.Store.Options.sealBytes
	}
	n, ended, err := c.Index.UnsealedBytes()
	return err == nil && (ended || n >= min(size, c.Store.Options.sealBytes))
}

// summarise replaces index.json, a view for people and other programs. The caller holds the lock for sealing.
func (c *Context) summarise() {
	if !vfs.HasViews(c.Dir.FS) {
		return
	}
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
