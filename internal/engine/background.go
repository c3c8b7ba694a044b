package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/views"
)

const (
	// pause is the time without a commit after which a burst begins.
	pause = 20 * time.Millisecond
	// maxDelay is the time from the first waiting file to the burst that makes it, if commits do not pause.
	maxDelay = 250 * time.Millisecond
	// burstFiles and burstBytes are what waits when a burst begins at once.
	burstFiles = 1024
	burstBytes = 8 << 20
	// maxWaitingFiles and maxWaitingBytes bound what waits in a store. Beyond them appends wait.
	maxWaitingFiles = 2 * burstFiles
	maxWaitingBytes = 2 * burstBytes
)

// add queues a batch, and waits while too much is queued. With now it waits until the files are made.
func (p *projector) add(b *fileBatch, now bool) {
	p.mu.Lock()
	p.waiting = append(p.waiting, b)
	p.queued, p.files, p.bytes = p.queued+len(b.files), p.files+len(b.files), p.bytes+b.bytes
	now = now || p.files > maxWaitingFiles || p.bytes > maxWaitingBytes
	switch {
	case now || p.due || b.c.Store.Options.files == FilesHeld:
	case p.queued >= burstFiles || p.bytes >= burstBytes:
		p.due = true
		go p.run(background)
	default:
		p.soon()
	}
	p.mu.Unlock()
	if now {
		p.run(writers)
	}
}

// queue leaves the files of a batch to the projector. Their records are durable.
func (b *fileBatch) queue() {
	if b == nil {
		return
	}
	if len(b.files) == 0 {
		b.end(nil)
		return
	}
	b.c.Store.projector.add(b, b.c.Store.Options.files == FilesOnReturn)
}

// soon has a burst begin when commits pause. The caller holds mu.
func (p *projector) soon() {
	p.last = time.Now()
	if p.timer == nil {
		p.first, p.timer = p.last, time.AfterFunc(pause, p.runInPause)
	}
}

// runInPause begins a burst, or waits on if a commit came meanwhile.
func (p *projector) runInPause() {
	p.mu.Lock()
	rest := min(pause-time.Since(p.last), maxDelay-time.Since(p.first))
	begin := p.timer != nil && rest <= 0
	if p.timer != nil && !begin {
		p.timer.Reset(rest)
	}
	p.mu.Unlock()
	if begin {
		p.run(background)
	}
}

// addContext leaves the metadata.json of a handle to the next burst.
func (p *projector) addContext(c *Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stale == nil {
		p.stale = map[*Context]bool{}
	}
	p.stale[c] = true
	if c.Store.Options.files != FilesHeld {
		p.soon()
	}
}

// removeContext reports whether the metadata.json of a handle waits, and takes it over. It waits for a running burst,
// which may be replacing the file with the handle's lock held.
func (p *projector) removeContext(c *Context) bool {
	p.making.Lock()
	defer p.making.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	waits := p.stale[c]
	delete(p.stale, c)
	return waits
}

// run makes the files that wait, and returns when they are made, those of a running burst included. It leaves seals that
// are due to the background.
func (p *projector) run(workers int) {
	p.making.Lock()
	defer p.making.Unlock()
	p.mu.Lock()
	batches, stale := p.waiting, p.stale
	p.waiting, p.queued, p.due, p.stale = nil, 0, false, nil
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.mu.Unlock()
	written := map[*Context]bool{}
	for _, b := range batches {
		b.make(workers)
		p.mu.Lock()
		p.files, p.bytes = p.files-len(b.files), p.bytes-b.bytes
		p.mu.Unlock()
		written[b.c] = true
	}
	for c := range stale {
		if !c.projectBehind() {
			p.addContext(c)
		}
		written[c] = true
	}
	for c := range written {
		c.sealIfDue()
	}
}

// projectSoon leaves a stale metadata.json to the projector, or replaces it now if files are made on return. The caller
// holds the lock.
func (c *Context) projectSoon() {
	if c.projectionNow() != ctxfolder.ProjectionStale {
		return
	}
	if o := c.Store.Options; o.files == FilesOnReturn || o.inOrder {
		c.project()
		return
	}
	c.Store.projector.addContext(c)
}

// Write runs f with the lock held, the metadata current, and the log ready for an append.
func (c *Context) Write(ctx context.Context, f func(m *Metadata) error) error {
	if c.Store.ReadOnly {
		return ErrReadOnly
	}
	if err := c.Store.Acquire(ctx, c.Dir.Lock); err != nil {
		return err
	}
	defer c.Dir.Lock.Release()
	// Within one tenure of the lock, no other process can have written since this handle looked.
	tenure := c.Dir.Lock.Tenure()
	if c.prepared != tenure || !c.Index.Ready() {
		c.prepared = 0
		if err := c.prepare(); err != nil {
			return err
		}
		c.prepared = tenure
		c.projectSoon()
	}
	return f(c.Current())
}

// awaitFiles makes the files that wait, with so many workers, and returns why one could not be made since the last
// call.
func (c *Context) awaitFiles(workers int) error {
	c.Store.projector.run(workers)
	return c.fileFailure()
}

// makeMissing makes the missing files of messages that are not sealed, with so many workers, and replaces those of older
// versions. It returns the place up to which it did. A failure is kept for the next flush.
func (c *Context) makeMissing(ctx context.Context, workers int) (made journal.Position, err error) {
	var b *fileBatch
	var commit *index.Commit
	err = c.Write(ctx, func(m *Metadata) error {
		entries, err := c.Index.Unsealed()
		if err == nil {
			b, commit = c.expectMissing(entries, m), c.Index.Barrier()
			made = commit.At
		}
		return err
	})
	if err == nil {
		err = commit.Wait()
	}
	if err == nil {
		b.queue()
	} else {
		b.end(nil)
	}
	err = errors.Join(err, c.awaitFiles(workers))
	if err == nil && b != nil && len(b.touched) > 0 {
		err = c.replaceStale(ctx, b.touched)
	}
	if err != nil {
		c.keepFailure(err)
	}
	return made, err
}

// replaceStale replaces those files that have an older version of a message: a writer was stopped before it did.
func (c *Context) replaceStale(ctx context.Context, touched []index.Entry) error {
	return c.Write(ctx, func(m *Metadata) error {
		for i := range touched {
			e := &touched[i]
			line, ok := m.Line(e.Line)
			if !ok {
				continue
			}
			now, ok, err := c.Index.Entry(e.Line, e.Position)
			if err != nil {
				return err
			}
			if _, is, _ := views.Read(c.Dir, line.Folder, e); !ok || now.Seq != e.Seq || is != views.Stale {
				continue
			}
			raw, err := c.Index.ReadOne(e)
			if err == nil {
				err = c.Dir.ReplaceMessage(line.Folder, e.ID, raw, e.StoredAt())
			}
			if err != nil {
				return fmt.Errorf("replacing the file of message %s: %w", e.ID, err)
			}
		}
		return nil
	})
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
