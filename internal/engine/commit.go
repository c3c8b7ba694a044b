package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/google/uuid"
)

// CommitResult is the outcome of a commit.
type CommitResult struct {
	Sequence uint64         // the number of its last record
	Appended []AppendResult // in order
}

// Commit commits what f does: all of it, or nothing. f runs under the context's lock, on the newest state. It must not
// call methods of the context or its branches that write. One
// fdatasync makes the commit durable.
//
// Crash order: the records are one group, so a crash leaves all of them or none. Files are made behind the commit.
func (c *Context) Commit(ctx context.Context, f func(tx *Tx) error, opts ...WriteOption) (result CommitResult, err error) {
	var tx *Tx
	o, err := conditionsOf(opts, "position", "sequence")
	if err == nil {
		tx, err = Use(c, func() (*Tx, error) { return c.run(ctx, false, o, f) })
	}
	if err != nil {
		return result, Wrap(Error{Op: "commit", Context: c.Dir.ID}, err)
	}
	for _, r := range tx.results {
		result.Appended = append(result.Appended, r.AppendResult)
	}
	result.Sequence = tx.after
	return result, nil
}

// Change changes the metadata as f says.
func (c *Context) Change(ctx context.Context, f func(m *Metadata) error) error {
	return c.use(func() error {
		_, err := c.run(ctx, false, conditions{}, func(tx *Tx) error {
			tx.m, tx.changed = tx.m.Clone(), true
			return f(tx.m)
		})
		return err
	})
}

// Update changes title, labels, config, state, parent, unknown members, and the system prompts and further members of
// branches. It undoes what f does to ids, kind, lines, branch names, the active branch, revision and times: other
// methods change these. If f moves UpdatedAt forward, but not beyond now, that is the time of the change.
func (c *Context) Update(ctx context.Context, f func(m *Metadata) error, opts ...WriteOption) error {
	return c.one(ctx, "update", "", func(tx *Tx) error { return tx.Update(f) }, opts...)
}

// ReplaceMetadata commits metadata in place of the current one, in a group with other records, for upkeep: the context does
// not count as updated. The caller holds the lock.
func (c *Context) ReplaceMetadata(m *Metadata, before ...Item) error {
	tx := &Tx{c: c}
	tx.reset(m)
	tx.changed, tx.upkeep, tx.items, tx.of = true, true, before, make([]*BatchResult, len(before))
	return tx.write()
}

// one commits one change; f is a call of a method of [Tx].
func (c *Context) one(ctx context.Context, op, name string, f func(tx *Tx) error, opts ...WriteOption) error {
	o, err := conditionsOf(opts, "sequence")
	if err == nil {
		err = c.use(func() error {
			_, err := c.run(ctx, false, o, f)
			return err
		})
	}
	return Wrap(Error{Op: op, Context: c.Dir.ID, Branch: name}, err)
}

// run prepares and commits a Tx. In a batch, each record stands for itself, and tx.stored says after an error which
// messages are durable.
func (c *Context) run(ctx context.Context, batch bool, o conditions, f func(tx *Tx) error) (*Tx, error) {
	tx := &Tx{c: c, ctx: ctx, batch: batch, conditions: o, blobs: &BlobHold{Store: c.Store}}
	defer tx.blobs.Release()
	if c.Store.ReadOnly {
		return tx, ErrReadOnly // before any blob is made
	}
	err := c.Write(ctx, func(m *Metadata) error {
		pending, err := c.pending()
		if err != nil {
			return err
		}
		tx.reset(m)
		err = tx.prepare(f)
		if err == nil {
			err = tx.write()
		}
		if len(tx.commits) > 0 && len(pending) > 0 {
			tx.pending = c.expectMissing(pending, tx.m)
		}
		return err
	})
	err = tx.finish(err)
	tx.pending.end(nil)
	return tx, err
}

// prepare runs the caller's function. A failed method fails the commit even if f ignores its error.
func (tx *Tx) prepare(f func(tx *Tx) error) (err error) {
	at, err := tx.c.Index.At()
	if err != nil {
		return err
	}
	tx.before = at.Seq
	if tx.sequence != nil && *tx.sequence != tx.before {
		return fmt.Errorf("%w: expected commit %d to be the newest, but %d is", ErrPosition, *tx.sequence, tx.before)
	}
	if err := f(tx); err != nil {
		return err
	}
	if tx.failure == nil && tx.position != nil && len(tx.results) == 0 {
		return fmt.Errorf("%w: position %d was expected, but the commit appends no message", ErrInvalid, *tx.position)
	}
	return tx.failure
}

// CommitBytes bounds one write of a batch to the log, in bytes. MaxCommit bounds a commit that has to be one write.
const (
	CommitBytes = 16 << 20
	MaxCommit   = 256 << 20
)

// write writes the records. If the commit changes the metadata or replaces messages, write also waits until it is
// durable, and makes these files. The caller holds the lock.
//
// Crash order: the records are durable before metadata.json is replaced, which happens later and is not synced.
func (tx *Tx) write() (err error) {
	c := tx.c
	if tx.changed {
		if !tx.upkeep {
			tx.m.UpdatedAt = time.Now().UTC()
			if tx.updatedAt.Before(tx.m.UpdatedAt) && !tx.updatedAt.IsZero() {
				tx.m.UpdatedAt = tx.updatedAt
			}
		}
		tx.m.Revision++
		item, err := c.Index.MetadataItem(tx.m)
		if err != nil {
			return err
		}
		tx.items, tx.of = append(tx.items, Item{Item: item}), append(tx.of, nil)
	}
	tx.expectFiles()
	switch {
	case len(tx.items) > 0:
		err = tx.append()
	case len(tx.existed) > 0: // a retry may overtake the sync of the first attempt
		tx.commits = []*index.Commit{c.Index.Barrier()}
	}
	if err == nil && (tx.changed || len(tx.durable) > 0) {
		err = tx.settle()
	}
	tx.after = tx.before + uint64(len(tx.items))
	return err
}

// append writes the records to the log: as one group, or in pieces where each record stands for itself. Only an
// error of the first piece means that nothing was written.
func (tx *Tx) append() error {
	if !tx.batch {
		if size := sizeOf(tx.items); size > MaxCommit {
			return fmt.Errorf("%w: a commit of %d bytes exceeds the limit of %d", ErrTooLarge, size, MaxCommit)
		}
		commit := tx.c.append(tx.items, true)
		if commit.Err == nil {
			tx.commits = []*index.Commit{commit}
		}
		return commit.Err
	}
	for from := 0; from < len(tx.items); {
		n := 1
		for from+n < len(tx.items) && sizeOf(tx.items[from:from+n+1]) <= CommitBytes {
			n++
		}
		commit := tx.c.append(tx.items[from:from+n], false)
		if commit.Err != nil && from == 0 && commit.Written == 0 {
			return commit.Err
		}
		tx.commits = append(tx.commits, commit)
		if commit.Err != nil {
			return commit.Err
		}
		from += n
	}
	return nil
}

// settle waits until the commit is durable, even in a relaxed store if the metadata changes, and then shows it.
func (tx *Tx) settle() error {
	c, wait := tx.c, (*index.Commit).Wait
	if tx.changed {
		wait = (*index.Commit).Sync
	}
	tx.settled = true
	for _, commit := range tx.commits {
		if err := c.wait(commit, wait); err != nil {
			c.prepared = 0
			return err
		}
	}
	for _, f := range tx.durable {
		f()
	}
	if tx.changed {
		c.show(tx.m)
	}
	return nil
}

// show makes committed metadata that of the handle. metadata.json follows: it is read again only if somebody changes it.
// The caller holds the lock.
func (c *Context) show(m *Metadata) {
	before := c.Current()
	if committed, err := c.Index.Metadata(); err == nil && committed != nil {
		m = committed
	}
	c.mu.Lock()
	c.metadata, c.journaled, c.projection = m, m, ctxfolder.ProjectionStale
	c.mu.Unlock()
	c.noteChange(before, m)
	c.projectSoon()
}

// expectFiles opens a batch for the files of the new messages, before others can see these: who waits for files then waits
// for them, and for those of replaced messages, which come under the lock. The caller holds the lock.
func (tx *Tx) expectFiles() {
	if len(tx.lines)+len(tx.durable) == 0 {
		return
	}
	folders := make(map[uuid.UUID]string, len(tx.lines))
	for id := range tx.lines {
		if line, ok := tx.m.Line(id); ok {
			folders[id] = line.Folder
		}
	}
	tx.files = tx.c.expectFiles(folders)
}

// finish waits until the records are durable, and leaves the message files to the projector. err is the error of the
// write.
func (tx *Tx) finish(err error) error {
	c := tx.c
	if len(tx.commits) == 0 {
		tx.files.end(nil)
		return err
	}
	if err != nil && tx.settled {
		tx.files.end(err) // a flush makes the files, if the records are there then
		return err
	}
	written := 0
	for _, commit := range tx.commits {
		tx.files.take(tx.items[written:], commit.Written)
		written += commit.Written
	}
	c.queueBlobs(tx.items[:written], tx.commits[0].Log())
	for _, commit := range tx.commits {
		if tx.settled || commit.Written == 0 && commit.Err != nil {
			continue
		}
		if werr := commit.Wait(); werr != nil {
			tx.files.end(werr)
			tx.files = nil
			if werr = c.recover(commit, werr); werr != nil {
				return werr
			}
		}
	}
	for _, r := range slices.Concat(tx.of[:written], tx.existed) {
		if r != nil {
			tx.stored[r] = true
		}
	}
	tx.files.queue()
	c.queuePending(tx.pending)
	tx.pending = nil
	c.Wrote()
	return err
}

func sizeOf(items []Item) (size int) {
	for _, it := range items {
		size += len(it.Body)
	}
	return size
}
