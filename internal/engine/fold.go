package engine

import (
	"context"
	"errors"
)

// Fold brings the journals into message files and index now, durably, so that they are no longer needed. Journals that
// have grown enough are folded automatically. While another process folds the context, Fold does nothing.
func (c *Context) Fold(ctx context.Context) error {
	if c.Store.ReadOnly {
		return Wrap(Error{Op: "fold", Context: c.Dir.ID}, ErrReadOnly)
	}
	return Wrap(Error{Op: "fold", Context: c.Dir.ID}, c.use(func() error {
		failure := c.awaitFiles(writers)
		err := c.foldEdited(ctx, func(ctx context.Context) error { return c.Log.Fold(ctx, true) }) // the settle makes missing files
		if err != nil && failure != nil {
			c.keepFailure(failure)
		}
		return errors.Join(err, c.flushProjection(ctx))
	}))
}

// foldAtClose divides the size at which a journal is folded: Close folds a journal from there on.
const foldAtClose = 16

// foldInBurst multiplies that size: from there on, a fold does not wait until commits pause.
const foldInBurst = 4

// shedAtClose multiplies that size: Close sheds unsettled journals from there on. It leaves smaller ones to followers
// that begin again.
const shedAtClose = 4

// Wrote notes that records were committed. A fold that is due begins when commits pause: beside appends, its syncs would
// delay them.
func (c *Context) Wrote() {
	c.mu.Lock()
	c.wrote = true
	c.mu.Unlock()
	c.foldIfDue(foldInBurst * c.Store.Options.foldBytes)
}

// foldIfDue starts a fold in the background if so many bytes of records have no rows, unless one is running. A fold that
// fails, on a full disk for instance, only costs a longer journal: a later commit retries it.
func (c *Context) foldIfDue(size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.Store.Options.noFold || !c.Log.FoldDue(size) {
		return
	}
	if c.folding != nil {
		select {
		case <-c.folding:
		default:
			return
		}
	}
	done := make(chan struct{})
	c.folding = done
	go func() {
		defer close(done)
		if err := c.fold(); err == nil && c.Log.FoldDue(size) { // a burst went on meanwhile
			_ = c.fold()
		}
	}()
}

// shed settles the journals and removes them.
func (c *Context) shed() error {
	limited, cancel := context.WithTimeout(context.Background(), c.Store.Options.LockTimeout)
	defer cancel()
	return c.foldEdited(limited, c.Log.Shed)
}

func (c *Context) fold() error {
	limited, cancel := context.WithTimeout(context.Background(), c.Store.Options.LockTimeout)
	defer cancel()
	if ok, err := c.Dir.FoldLock.TryAcquire(); !ok || err != nil {
		return err // another process folds
	}
	if err := c.Dir.FoldLock.Release(); err != nil {
		return err
	}
	err := c.awaitFiles(background)
	if err != nil || !c.Log.WroteUnfolded() {
		err = errors.Join(err, c.makeMissing(limited, background))
	}
	if err != nil {
		c.keepFailure(err)
	}
	return c.foldEdited(limited, func(ctx context.Context) error { return c.Log.Fold(ctx, false) })
}

// AwaitFold waits for the fold in the background, if one is running.
func (c *Context) AwaitFold() {
	c.mu.Lock()
	folding := c.folding
	c.mu.Unlock()
	if folding != nil {
		<-folding
	}
}
