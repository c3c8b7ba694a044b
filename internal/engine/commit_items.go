package engine

import (
	"context"
	"errors"

	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/journal"
)

// append writes records. With group they are one commit. The caller holds the lock, and has brought the handle up to date.
func (c *Context) append(items []Item, group bool) *index.Commit {
	plain := make([]journal.Item, len(items))
	for i := range items {
		plain[i] = items[i].Item
	}
	return c.Index.Append(plain, group)
}

// CommitItems writes items to the log and waits until they are durable. The caller holds the lock.
func (c *Context) CommitItems(items []Item) error {
	return c.commitNow(c.append(items, false), items, (*index.Commit).Wait)
}

// CommitDurably is CommitItems, regardless of the store's durability option.
func (c *Context) CommitDurably(items []Item) error {
	return c.commitNow(c.append(items, false), items, (*index.Commit).Sync)
}

func (c *Context) commitNow(commit *index.Commit, items []Item, wait func(*index.Commit) error) error {
	if commit.Err != nil {
		return commit.Err
	}
	c.queueBlobs(items, commit.Log())
	return c.wait(commit, wait)
}

// wait waits until a commit is durable. The caller holds the lock.
func (c *Context) wait(commit *index.Commit, wait func(*index.Commit) error) error {
	err := wait(commit)
	if err == nil {
		return nil
	}
	if rerr := c.Index.Recover(commit); rerr != nil {
		return errors.Join(err, rerr)
	}
	return nil
}

// recover makes a commit durable whose sync failed, in other blocks. It returns nil if it could.
func (c *Context) recover(commit *index.Commit, cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.Store.Options.LockTimeout)
	defer cancel()
	if err := c.Dir.Lock.Acquire(ctx); err != nil {
		return cause
	}
	defer c.Dir.Lock.Release()
	if err := c.Dir.Check(); err != nil {
		return errors.Join(cause, err)
	}
	if err := c.Index.Recover(commit); err != nil {
		return errors.Join(cause, err)
	}
	return nil
}
