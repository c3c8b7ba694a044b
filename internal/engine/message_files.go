package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/google/uuid"
)

// messageFiles is what a handle knows about the message files that follow its commits. While one is to come, the handle
// holds the context's lock on files in shared mode: a process that removes message files waits for that lock, so no
// file appears behind it.
type messageFiles struct {
	mu      sync.Mutex
	due     int   // batches whose files are to come
	failure error // why a file could not be made since the last flush; the journal has its message
	checked bool  // the handle has made the files that a killed process left unmade
}

// fileBatch is a set of pending message files. A nil batch makes none.
type fileBatch struct {
	c       *Context
	folders map[uuid.UUID]*ctxfolder.Folder // of the lines
	files   []messageFile
	bytes   int
}

// messageFile is a message file that is to come.
type messageFile struct {
	line  uuid.UUID
	entry index.Entry
	body  []byte // the envelope; nil if the journal has it, and the file may exist
}

// expectFiles opens a batch for files of lines, with the names of their folders, before their records are durable. The
// caller holds the context's lock: so the files reach their folders even if a rename gives the names to others. If no
// file can be made now, the next flush makes the files.
func (c *Context) expectFiles(folders map[uuid.UUID]string) *fileBatch {
	f := &c.messageFiles
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.due == 0 {
		if err := c.Store.AcquireWith(context.Background(), c.Dir.FilesLock.AcquireShared); err != nil {
			f.failure = cmp.Or(f.failure, err)
			return nil
		}
	}
	f.due++
	b := &fileBatch{c: c, folders: make(map[uuid.UUID]*ctxfolder.Folder, len(folders))}
	for id, name := range folders {
		folder, err := c.Dir.OpenFolder(name)
		if err != nil {
			f.failure = cmp.Or(f.failure, err)
			continue
		}
		b.folders[id] = folder
	}
	return b
}

// take adds the files of what a commit wrote of items.
func (b *fileBatch) take(items []index.Item, commit *index.Commit) {
	if b == nil {
		return
	}
	for i := range commit.Written {
		if items[i].Kind == index.KindAppend {
			b.add(messageFile{items[i].Envelope.Line, commit.Entries[i], items[i].Body})
		}
	}
}

func (b *fileBatch) add(f messageFile) {
	if b != nil && b.folders[f.line] != nil {
		b.files, b.bytes = append(b.files, f), b.bytes+len(f.body)
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

// end releases a batch. A failure is kept for the next flush.
func (b *fileBatch) end(failure error) {
	if b == nil {
		return
	}
	for _, folder := range b.folders {
		folder.Release()
	}
	f := &b.c.messageFiles
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failure = cmp.Or(f.failure, failure)
	if f.due--; f.due == 0 {
		_ = b.c.Dir.FilesLock.Release()
	}
}

func (b *fileBatch) makeFile(f *messageFile) error {
	folder := b.folders[f.line]
	if f.body == nil {
		if _, err := folder.Lstat(ctxfolder.MessageFile(f.entry.FileID())); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		record, ok := b.c.Log.ReadRecord(&f.entry)
		if !ok {
			return nil // reading the message reports this
		}
		f.body = record
	}
	err := folder.Create(f.entry.FileID(), f.body, f.entry.StoredAt())
	if errors.Is(err, fs.ErrExist) {
		return nil // it may be a newer version
	}
	if err != nil {
		return fmt.Errorf("making the file of message %s: %w", f.entry.ID, err)
	}
	return nil
}

// unmade returns the messages that are not folded, until a commit of this handle has made their files: a process may
// have been killed between a commit and its files. The caller holds the context's lock.
func (c *Context) unmade() (map[uuid.UUID][]index.Entry, error) {
	c.messageFiles.mu.Lock()
	defer c.messageFiles.mu.Unlock()
	if c.messageFiles.checked {
		return nil, nil
	}
	return c.Log.UnfoldedNow()
}

// queueUnmade leaves the files of what unmade returned to the projector. A commit that follows those messages is
// durable: so are they, even if the process that wrote them saw its sync fail.
func (c *Context) queueUnmade(b *fileBatch) {
	c.messageFiles.mu.Lock()
	c.messageFiles.checked = true
	c.messageFiles.mu.Unlock()
	b.queue()
}

// makeMissing makes the missing files of messages that are not folded, with so many workers.
func (c *Context) makeMissing(ctx context.Context, workers int) error {
	var b *fileBatch
	var commit *index.Commit
	err := c.Store.AcquireWith(ctx, func(ctx context.Context) (err error) {
		commit, err = c.Log.Unfolded(ctx, func(entries map[uuid.UUID][]index.Entry, folders map[uuid.UUID]string) {
			b = c.expectMissing(entries, folders)
		})
		return err
	})
	if err == nil && b != nil && commit != nil {
		err = commit.Wait()
	}
	if err == nil {
		b.queue()
	} else {
		b.end(nil)
	}
	return errors.Join(err, c.awaitFiles(workers))
}

// expectMissing opens a batch for files that may exist already.
func (c *Context) expectMissing(lines map[uuid.UUID][]index.Entry, folders map[uuid.UUID]string) *fileBatch {
	maps.DeleteFunc(folders, func(line uuid.UUID, _ string) bool { return len(lines[line]) == 0 })
	if len(folders) == 0 {
		return nil
	}
	b := c.expectFiles(folders)
	for line, entries := range lines {
		for _, e := range entries {
			b.add(messageFile{line: line, entry: e})
		}
	}
	return b
}

// Flush waits until every message of the context has its file. Files follow their commits a moment later; other
// programs see all of them after Flush. It also writes files that a killed process had not written, or that could not
// be made before. An error means that a file is missing, on a full disk for example; the journal has the message, and
// Flush can be repeated.
func (c *Context) Flush(ctx context.Context) error {
	return Wrap(Error{Op: "flush", Context: c.Dir.ID}, c.use(func() error { return c.flush(ctx) }))
}

func (c *Context) flush(ctx context.Context) error {
	if c.Store.ReadOnly {
		return ErrReadOnly
	}
	before := c.awaitFiles(writers)
	err := c.makeMissing(ctx, writers)
	if err == nil && before != nil {
		// Messages without files may be folded by now. A settle makes their files.
		err = c.Store.AcquireWith(ctx, func(ctx context.Context) error { return c.Log.Fold(ctx, true) })
	}
	if err != nil {
		c.keepFailure(err)
	}
	return errors.Join(err, c.flushProjection(ctx))
}

// awaitFiles makes the files that wait, with so many workers, and returns why one could not be made since the last
// call.
func (c *Context) awaitFiles(workers int) error {
	c.Store.projector.run(workers)
	f := &c.messageFiles
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.failure
	f.failure = nil
	return err
}

// AwaitFiles waits for the files of earlier commits of every process, see [ctxfolder.Dir.AwaitFiles]. The caller holds
// the context's lock.
func (c *Context) AwaitFiles(ctx context.Context) error { return c.Store.awaitFiles(ctx, c.Dir) }

func (s *Store) awaitFiles(ctx context.Context, dir *ctxfolder.Dir) error {
	s.projector.run(writers)
	return s.AcquireWith(ctx, dir.AwaitFiles)
}

func (c *Context) keepFailure(err error) {
	c.messageFiles.mu.Lock()
	defer c.messageFiles.mu.Unlock()
	c.messageFiles.failure = err
}
